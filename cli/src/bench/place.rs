//! The place of a bench: its own name, and on `file:` its own directory; and the lowest possible cost of a lock and an
//! unlock there, measured without this library.

use std::fs::{self, DirBuilder, File};
use std::path::{Path, PathBuf};
use std::{os::unix::fs::DirBuilderExt, process, sync::Mutex, time::Duration};

use crosslock::Locker;
use redis::{
    Client, Connection, ErrorKind, IntoConnectionInfo, RedisError, RedisResult, Script,
    io::tcp::TcpSettings,
};

use crate::{args::Globals, status::Failure};

/// A place for locks that nobody else uses.
pub(super) struct Place {
    url: String,
    namespace: String,
    name: String,
    kind: Kind,
}

/// Decides how the floor is measured, and what is removed afterwards.
#[derive(Debug)]
enum Kind {
    Memory,
    /// A directory below that of the URL.
    Directory(PathBuf),
    Server,
    /// The program has no other client for these than the library: TLS, several servers, etcd, ZooKeeper.
    Other,
}

impl Place {
    /// Fails if locks aren't possible at this URL.
    pub(super) fn of(globals: &Globals) -> Result<Self, Failure> {
        drop(globals.locker()?);
        let name = format!("crosslock-bench-{}", process::id());
        Ok(Place::named(globals.url(), globals.namespace(), &name))
    }

    /// The place of a bench with this name.
    pub(super) fn named(url: &str, namespace: &str, name: &str) -> Self {
        let (scheme, rest) = url.split_once(':').unwrap_or_default();
        let mut url = url.to_owned();
        let kind = match scheme.to_ascii_lowercase().as_str() {
            "memory" => Kind::Memory,
            "file" => {
                let above = directory_of(rest);
                if rest.is_empty() {
                    // With the mode that the library uses. Otherwise it would be made readable for all.
                    let _ = DirBuilder::new().mode(0o700).create(&above);
                    url = format!("file://{}", above.display());
                }
                url = format!("{}/.{name}", url.trim_end_matches('/'));
                Kind::Directory(above.join(format!(".{name}")))
            }
            "rediss" | "valkeys" => Kind::Other,
            _ if url.as_str().into_connection_info().is_ok() => Kind::Server,
            _ => Kind::Other,
        };
        let [namespace, name] = [namespace, name].map(str::to_owned);
        Place {
            url,
            namespace,
            name,
            kind,
        }
    }

    /// A locker that shares nothing with others, as if it were in another process.
    pub(super) fn locker(&self) -> Result<Locker, Failure> {
        let builder = Locker::builder(&self.url).namespace(&self.namespace);
        Ok(builder.build()?)
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Or a text that says why there is none.
    pub(super) fn floor(&self) -> Result<Floor, String> {
        match &self.kind {
            Kind::Memory => Ok(Floor::memory()),
            Kind::Directory(directory) => Floor::file(directory.join("floor")),
            Kind::Server => Floor::redis(&self.url, self.key_of(":floor")),
            Kind::Other => Err("crosslock bench has no other client for this URL".to_owned()),
        }
    }

    /// A key of the lock on a server.
    fn key_of(&self, part: &str) -> String {
        format!("{{{}:{}}}{part}", self.namespace, self.name)
    }

    /// Removes what the bench has left. If that fails, the keys expire by themselves.
    pub(super) fn clean(&self) {
        match &self.kind {
            Kind::Memory | Kind::Other => {}
            Kind::Directory(directory) => {
                if let Err(e) = fs::remove_dir_all(directory) {
                    log::debug!("{}: {e}", directory.display());
                }
            }
            Kind::Server => {
                // The first key is the lock, which a killed bench may have held.
                let keys = [
                    "",
                    ":fence",
                    ":queue",
                    ":waiters",
                    ":read_queue",
                    ":holders",
                    ":floor",
                ];
                let keys = keys.map(|part| self.key_of(part));
                if let Err(e) = remove(&self.url, &keys) {
                    log::debug!(
                        "can't remove the keys of {}, which will expire: {e}",
                        self.name
                    );
                }
            }
        }
    }
}

/// The directory of a URL without its scheme. The library has checked the URL.
fn directory_of(rest: &str) -> PathBuf {
    if rest.is_empty() {
        let user = rustix::process::geteuid().as_raw();
        return format!("/tmp/crosslock-{user}").into();
    }
    let path = rest.strip_prefix("//").map_or(rest, |behind| {
        let slash = behind.find('/').unwrap_or(0);
        &behind[slash..]
    });
    path_of(path)
}

/// Decodes percent escapes.
fn path_of(text: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt as _;
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let digits = behind.get(..2);
        let digits = digits.and_then(|digits| str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        (rest, _) = match escaped.filter(|_| *first == b'%') {
            Some(byte) => (&behind[2..], bytes.push(byte)),
            None => (behind, bytes.push(*first)),
        };
    }
    std::ffi::OsString::from_vec(bytes).into()
}

const TIMEOUT: Duration = Duration::from_secs(2);
const DELETE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

/// The simplest lock and unlock.
pub(super) struct Floor {
    /// Its steps, for people.
    pub(super) words: &'static str,
    pub(super) cycle: Box<dyn FnMut() -> Result<(), String>>,
}

impl Floor {
    fn new(words: &'static str, cycle: impl FnMut() -> Result<(), String> + 'static) -> Self {
        let cycle = Box::new(cycle);
        Floor { words, cycle }
    }

    fn memory() -> Self {
        let mutex = Mutex::new(());
        Floor::new("std::sync::Mutex", move || {
            drop(std::hint::black_box(mutex.lock()));
            Ok(())
        })
    }

    /// Opens the file, locks and unlocks it.
    fn file(path: PathBuf) -> Result<Self, String> {
        File::create(&path).map_err(|e| e.to_string())?;
        let cycle = move || lock(&path).map_err(|e| e.to_string());
        Ok(Floor::new("open, flock, unlock", cycle))
    }

    /// Two commands on one connection of the `redis` crate.
    fn redis(url: &str, key: String) -> Result<Self, String> {
        let mut connection = connect(url).map_err(|e| told(&e))?;
        let delete = Script::new(DELETE);
        let mut cycle =
            move || set_and_delete(&mut connection, &key, &delete).map_err(|e| told(&e));
        cycle()?;
        Ok(Floor::new("SET NX PX, EVALSHA", cycle))
    }
}

fn lock(path: &Path) -> std::io::Result<()> {
    let file = File::options().read(true).write(true).open(path)?;
    file.lock()?;
    file.unlock()
}

fn set_and_delete(connection: &mut Connection, key: &str, delete: &Script) -> RedisResult<()> {
    let mut set = redis::cmd("SET");
    set.arg(key).arg("owner").arg("NX").arg("PX").arg(10_000);
    set.query::<Option<String>>(connection)?;
    let mut call = delete.prepare_invoke();
    call.key(key)
        .arg("owner")
        .invoke::<i64>(connection)
        .map(drop)
}

/// Removes keys.
fn remove(url: &str, keys: &[String]) -> Result<(), String> {
    let connection = connect(url);
    let removed = connection.and_then(|mut it| redis::cmd("DEL").arg(keys).exec(&mut it));
    removed.map_err(|e| told(&e))
}

fn connect(url: &str) -> RedisResult<Connection> {
    // The crate doesn't know this scheme, which means the same.
    let url = match url.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("valkey") => format!("redis://{rest}"),
        _ => url.to_owned(),
    };
    let info = url.into_connection_info()?;
    let info = info.set_tcp_settings(TcpSettings::default().set_nodelay(true));
    let connection = Client::open(info)?.get_connection_with_timeout(TIMEOUT)?;
    connection.set_read_timeout(Some(TIMEOUT))?;
    connection.set_write_timeout(Some(TIMEOUT))?;
    Ok(connection)
}

/// The text leaves out the server's answer, which may repeat a password.
fn told(error: &RedisError) -> String {
    match error.kind() {
        ErrorKind::Io => "the connection failed".to_owned(),
        _ => format!("it failed with {:?}", error.kind()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn directories_are_those_that_the_library_reads_from_the_url() {
        for (rest, directory) in [
            ("///a/b", "/a/b"),
            ("/a/b", "/a/b"),
            ("//localhost/a%20b", "/a b"),
            ("///100%25", "/100%"),
        ] {
            assert_eq!(directory_of(rest), Path::new(directory), "{rest}");
        }
        assert!(directory_of("").starts_with("/tmp"));
    }
}
