//! The options that all verbs share.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

use clap::{Arg, ArgAction, ArgMatches, Command};
use crosslock::{Locker, LockerBuilder};

use crate::output::{self, Words};
use crate::status::Failure;

/// Where locks live when `--url` doesn't say it.
const VARIABLE: &str = "CROSSLOCK_URL";

/// What all verbs heed.
#[derive(Clone, Debug)]
pub(crate) struct Globals {
    /// It may hold a password: it is shown to nobody. `None` if it is no text.
    url: Option<Secret>,
    /// Whether nobody has said where locks live.
    #[cfg(target_os = "linux")]
    pub(crate) is_default: bool,
    namespace: Option<String>,
    /// Whether what is said is JSON, a value a line.
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    pub(crate) verbose: bool,
}

/// A text that isn't shown.
#[derive(Clone)]
struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("..")
    }
}

pub(crate) fn command() -> Command {
    Command::new("crosslock")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Locks across processes and machines")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .args(globals())
        .after_help(URLS)
}

const URLS: &str = "URLs:
  file:                            this user's own directory, /tmp/crosslock-<uid>
  file:///dir                      a directory of this host, for all who may write there
  redis://host[:port][/db]         Redis or Valkey; also valkey://, unix:///path.sock
  rediss://host, valkeys://host    the same by TLS
  redis+sentinel://host,host/name  the master that sentinels name; also rediss+sentinel://
  redis+cluster://host,host        a cluster; also rediss+cluster://
  etcd://host,host                 etcd; etcds:// by TLS
  zk://host,host                   ZooKeeper
  memory:                          this process alone, for trying things out
A password in --url is seen by other users of this host: use CROSSLOCK_URL.";

fn globals() -> [Arg; 5] {
    let url = Arg::new("url")
        .long("url")
        .value_name("URL")
        .global(true)
        .help("Where locks live: see below [default: $CROSSLOCK_URL, else file:]");
    let namespace = Arg::new("namespace")
        .long("namespace")
        .value_name("NAMESPACE")
        .global(true)
        .help("Which application's locks [default: crosslock]");
    let json = flag("json").long("json").global(true);
    let quiet = flag("quiet").short('q').long("quiet").global(true);
    let verbose = flag("verbose").short('v').long("verbose").global(true);
    [
        url,
        namespace,
        json.help("Say everything as JSON, a value a line"),
        quiet.help("Say nothing but results"),
        verbose
            .help("Also say what the library logs")
            .conflicts_with("quiet"),
    ]
}

/// An option without a value.
pub(crate) fn flag(name: &'static str) -> Arg {
    Arg::new(name).action(ArgAction::SetTrue)
}

/// The name of one lock.
pub(crate) fn name() -> Arg {
    Arg::new("name")
        .value_name("NAME")
        .required(true)
        .help("The name of the lock")
}

/// The text of an argument that may be absent.
pub(crate) fn text<'a>(matches: &'a ArgMatches, name: &str) -> Option<&'a str> {
    matches.get_one::<String>(name).map(String::as_str)
}

impl Globals {
    pub(crate) fn of(matches: &ArgMatches) -> Self {
        let own = text(matches, "url").map(OsString::from);
        let url = own.or_else(|| env::var_os(VARIABLE));
        Globals {
            #[cfg(target_os = "linux")]
            is_default: url.is_none(),
            url: url
                .unwrap_or_else(|| "file:".into())
                .into_string()
                .ok()
                .map(Secret),
            namespace: text(matches, "namespace").map(str::to_owned),
            json: matches.get_flag("json"),
            quiet: matches.get_flag("quiet"),
            verbose: matches.get_flag("verbose"),
        }
    }

    pub(crate) fn words(&self) -> Words {
        Words::of(self.json, self.quiet)
    }

    /// Refuses a URL that nobody could understand: locks elsewhere would exclude nobody.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match self.url {
            Some(_) => Ok(()),
            None => Err(Failure::usage(format!(
                "invalid URL: {VARIABLE} isn't UTF-8"
            ))),
        }
    }

    /// The URL as it was given, with a password if it has one: never shown.
    pub(crate) fn url(&self) -> &str {
        self.url.as_ref().map_or("", |url| &url.0)
    }

    /// The same for locks that live elsewhere.
    pub(crate) fn at(&self, url: &str) -> Self {
        Globals {
            url: Some(Secret(url.to_owned())),
            ..self.clone()
        }
    }

    /// Whether the locks are in the directory of this user, where nobody else has any.
    pub(crate) fn is_private_directory(&self) -> bool {
        self.url().eq_ignore_ascii_case("file:")
    }

    /// Whether no other process can see the locks.
    #[cfg(target_os = "linux")]
    pub(crate) fn is_in_memory(&self) -> bool {
        let scheme = self.url().split(':').next();
        scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("memory"))
    }

    pub(crate) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("crosslock")
    }

    /// A builder for the locks that are meant.
    pub(crate) fn builder(&self) -> LockerBuilder {
        let builder = Locker::builder(self.url());
        match &self.namespace {
            Some(namespace) => builder.namespace(namespace),
            None => builder,
        }
    }

    /// A locker without options of the verb.
    pub(crate) fn locker(&self) -> Result<Locker, Failure> {
        Ok(self.builder().build()?)
    }

    /// With `-v` the library's log goes to standard error.
    pub(crate) fn set_up_log(&self) {
        if self.verbose {
            output::log_to_stderr();
        }
    }
}

const TEXT: &str = "locks of `file:` are those of this user alone: other users' commands run beside this one; \
                    for locks of all users of this host, use --url file:///var/lock/crosslock, a directory where all of them may write";

/// What all verbs say of it.
pub(crate) fn tell_private(words: Words) {
    words.say("hint", &[("reason", TEXT.into())], TEXT);
}

/// Whether another user of this host has such locks, too: then two may believe that they exclude each other.
#[cfg(target_os = "linux")]
pub(crate) fn has_other_user() -> bool {
    let own = rustix::process::geteuid().as_raw();
    let entries = fs::read_dir("/tmp").into_iter().flatten().flatten();
    let mut users = entries.filter_map(|entry| {
        let name = entry.file_name();
        let user = name
            .to_str()?
            .strip_prefix("crosslock-")?
            .parse::<u32>()
            .ok()?;
        // Anybody can make a directory with that name.
        let found = entry.metadata().ok()?;
        (found.is_dir() && found.uid() == user).then_some(user)
    });
    users.any(|user| user != own)
}
