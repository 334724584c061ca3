//! The lowest possible cost of a lock and an unlock at a place, measured without this library.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use redis::io::tcp::TcpSettings;
use redis::{Client, Connection, ErrorKind, IntoConnectionInfo, RedisError, RedisResult, Script};

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

    pub(super) fn memory() -> Self {
        let mutex = Mutex::new(());
        Floor::new("std::sync::Mutex", move || {
            drop(std::hint::black_box(mutex.lock()));
            Ok(())
        })
    }

    /// Opens the file, locks and unlocks it.
    pub(super) fn file(path: PathBuf) -> Result<Self, String> {
        File::create(&path).map_err(|e| e.to_string())?;
        let cycle = move || lock(&path).map_err(|e| e.to_string());
        Ok(Floor::new("open, flock, unlock", cycle))
    }

    /// Two commands on one connection of the `redis` crate.
    pub(super) fn redis(url: &str, key: String) -> Result<Self, String> {
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
pub(super) fn remove(url: &str, keys: &[String]) -> Result<(), String> {
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
