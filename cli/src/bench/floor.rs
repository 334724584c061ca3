//! The least that a cycle of lock and unlock could cost: what any lock there needs, without this library.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redis::io::tcp::TcpSettings;
use redis::{Client, Connection, ErrorKind, IntoConnectionInfo, RedisError, RedisResult, Script};

const TIMEOUT: Duration = Duration::from_secs(2);
const DELETE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

pub(super) enum Floor {
    /// A mutex of `std`.
    Memory(Arc<Mutex<()>>),
    /// Opens the file, locks and unlocks it.
    File(PathBuf),
    /// Two commands on one connection of the `redis` crate.
    Redis(Box<Redis>),
}

/// A lock on a server as simple as can be.
pub(super) struct Redis {
    connection: Connection,
    key: String,
    delete: Script,
}

impl Floor {
    pub(super) fn memory() -> Self {
        Floor::Memory(Arc::default())
    }

    pub(super) fn file(path: &Path) -> Result<Self, String> {
        File::create(path).map_err(|e| e.to_string())?;
        Ok(Floor::File(path.to_owned()))
    }

    pub(super) fn redis(url: &str, key: &str) -> Result<Self, String> {
        let connection = connect(url).map_err(|e| told(&e))?;
        let (key, delete) = (key.to_owned(), Script::new(DELETE));
        let mut redis = Box::new(Redis {
            connection,
            key,
            delete,
        });
        redis.cycle()?;
        Ok(Floor::Redis(redis))
    }

    /// What it does.
    pub(super) fn words(&self) -> &'static str {
        match self {
            Floor::Memory(_) => "std::sync::Mutex",
            Floor::File(_) => "open, flock, unlock",
            Floor::Redis(_) => "SET NX PX, EVALSHA",
        }
    }

    pub(super) fn cycle(&mut self) -> Result<(), String> {
        match self {
            Floor::Memory(mutex) => {
                drop(std::hint::black_box(mutex.lock()));
                Ok(())
            }
            Floor::File(path) => lock(path).map_err(|e| e.to_string()),
            Floor::Redis(redis) => redis.cycle(),
        }
    }
}

fn lock(path: &Path) -> std::io::Result<()> {
    let file = File::options().read(true).write(true).open(path)?;
    file.lock()?;
    file.unlock()
}

impl Redis {
    fn cycle(&mut self) -> Result<(), String> {
        self.try_cycle().map_err(|e| told(&e))
    }

    fn try_cycle(&mut self) -> RedisResult<()> {
        let mut set = redis::cmd("SET");
        set.arg(&self.key)
            .arg("owner")
            .arg("NX")
            .arg("PX")
            .arg(10_000);
        set.query::<Option<String>>(&mut self.connection)?;
        let mut call = self.delete.prepare_invoke();
        call.key(&self.key).arg("owner");
        call.invoke::<i64>(&mut self.connection).map(drop)
    }
}

/// Removes keys of nobody.
pub(super) fn remove(url: &str, keys: &[String]) -> Result<(), String> {
    let removed =
        connect(url).and_then(|mut connection| redis::cmd("DEL").arg(keys).exec(&mut connection));
    removed.map_err(|e| told(&e))
}

fn connect(url: &str) -> RedisResult<Connection> {
    // What the crate doesn't know is the same by another name.
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

/// Without what the server repeats of a command, in which a password may be.
fn told(error: &RedisError) -> String {
    match error.kind() {
        ErrorKind::Io => "the connection failed".to_owned(),
        _ => format!("it failed with {:?}", error.kind()),
    }
}
