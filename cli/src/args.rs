//! The options of all verbs.

use std::{env, ffi::OsString, fs, os::unix::fs::MetadataExt as _, time::Duration};

use clap::{Arg, ArgAction, ArgMatches, Command};
use crosslock::{Locker, LockerBuilder};

use crate::{output::Words, status::Failure};

/// The variable with the URL, if `--url` isn't given.
const VARIABLE: &str = "CROSSLOCK_URL";

/// The options of all verbs. There is no `Debug`, because the URL may contain a password.
#[derive(Clone)]
pub(crate) struct Globals {
    url: String,
    /// Whether neither `--url` nor the variable gives a URL.
    pub(crate) is_default: bool,
    namespace: Option<String>,
    pub(crate) words: Words,
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
  file:                            your own directory, /tmp/crosslock-<uid>
  file:///dir                      a directory, for all users of this host who can write to it
  redis://host[:port][/db]         Redis or Valkey; also valkey://, unix:///path.sock
  rediss://host, valkeys://host    the same over TLS
  redis+sentinel://host,host/name  the master that Sentinel names; also rediss+sentinel://
  redis+cluster://host,host        a cluster; also rediss+cluster://
  redis+quorum://a,b,c             a majority of independent servers; also rediss+quorum://
  etcd://host,host                 etcd; etcds:// over TLS
  zk://host,host                   ZooKeeper; zks:// over TLS
  memory:                          locks of this process only, to try things out

Other users of this host can read the command line: put a URL with a password into CROSSLOCK_URL.";

fn globals() -> [Arg; 5] {
    [
        option(
            "url",
            "URL",
            "URL of the locks: see crosslock --help [default: $CROSSLOCK_URL, else file:]",
        ),
        option(
            "namespace",
            "NAMESPACE",
            "Namespace of the locks [default: crosslock]",
        ),
        flag("json", "Print JSON, one object per line"),
        flag("quiet", "Print only results and failures").short('q'),
        flag("verbose", "Also print the log of the library")
            .short('v')
            .conflicts_with("quiet"),
    ]
    .map(|arg| arg.global(true))
}

/// An option with a value: `--name VALUE`.
pub(crate) fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

/// An option whose value is a time.
pub(crate) fn time(name: &'static str, help: &'static str) -> Arg {
    option(name, "DUR", help).value_parser(crate::time::parse)
}

/// An option without a value.
pub(crate) fn flag(name: &'static str, help: &'static str) -> Arg {
    let flag = Arg::new(name).long(name).help(help);
    flag.action(ArgAction::SetTrue)
}

/// The name of one lock.
pub(crate) fn name() -> Arg {
    Arg::new("name")
        .value_name("NAME")
        .required(true)
        .help("Name of the lock")
}

/// The text of an argument that may be absent.
pub(crate) fn text<'a>(matches: &'a ArgMatches, name: &str) -> Option<&'a str> {
    matches.get_one::<String>(name).map(String::as_str)
}

/// The time of an option that may be absent.
pub(crate) fn duration(matches: &ArgMatches, name: &str) -> Option<Duration> {
    matches.get_one(name).copied()
}

impl Globals {
    /// Refuses a URL that isn't UTF-8: with the default in its place, the locks would exclude nobody.
    pub(crate) fn of(words: Words, matches: &ArgMatches) -> Result<Self, Failure> {
        let own = text(matches, "url").map(OsString::from);
        let url = own.or_else(|| env::var_os(VARIABLE));
        let is_default = url.is_none();
        let url = url.unwrap_or_else(|| "file:".into()).into_string();
        let unreadable = || Failure::usage(format!("invalid URL: {VARIABLE} isn't UTF-8"));
        Ok(Globals {
            url: url.map_err(|_| unreadable())?,
            is_default,
            namespace: text(matches, "namespace").map(str::to_owned),
            words,
        })
    }

    /// The URL as the user gave it. It may contain a password: never print it.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The same options for another URL.
    pub(crate) fn at(&self, url: &str) -> Self {
        Globals {
            url: url.to_owned(),
            ..self.clone()
        }
    }

    /// Whether the locks are in the private directory of this user.
    pub(crate) fn is_private_directory(&self) -> bool {
        self.url().eq_ignore_ascii_case("file:")
    }

    /// Whether no other process can see the locks.
    pub(crate) fn is_in_memory(&self) -> bool {
        let scheme = self.url().split(':').next();
        scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("memory"))
    }

    pub(crate) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("crosslock")
    }

    /// A builder with the URL and the namespace.
    pub(crate) fn builder(&self) -> LockerBuilder {
        let builder = Locker::builder(self.url());
        match &self.namespace {
            Some(namespace) => builder.namespace(namespace),
            None => builder,
        }
    }

    /// A locker with these options alone.
    pub(crate) fn locker(&self) -> Result<Locker, Failure> {
        Ok(self.builder().build()?)
    }
}

/// Reports that the locks of `file:` belong to one user.
pub(crate) fn tell_private(words: Words) {
    words.say_why(
        "hint",
        "`file:` locks exclude only commands of this user; to exclude those of other users, use --url \
         file:///var/lock/crosslock, a directory that all of them can write to",
    );
}

/// Whether another user of this host has a private directory too: the two might expect to exclude each other.
pub(crate) fn has_other_user() -> bool {
    let own = rustix::process::geteuid().as_raw();
    let entries = fs::read_dir("/tmp").into_iter().flatten().flatten();
    let mut users = entries.filter_map(|entry| {
        let name = entry.file_name();
        let user: u32 = name.to_str()?.strip_prefix("crosslock-")?.parse().ok()?;
        // Anybody can make a directory with that name.
        let found = entry.metadata().ok()?;
        (found.is_dir() && found.uid() == user).then_some(user)
    });
    users.any(|user| user != own)
}
