//! What a test asks a server about, over connections that don't show in the answers.

use std::time::Duration;

use redis::io::tcp::TcpSettings;
use redis::{
    Client, Connection, ConnectionLike, FromRedisValue, IntoConnectionInfo, RedisResult, cmd,
};

use super::RedisServer;

/// The user of the tests' own connections, on a server that doesn't let everyone in.
pub(super) const RULE: &str = "user crosslock-admin on >admin ~* &* +@all";
pub(super) const LOGIN: (&str, &str) = ("crosslock-admin", "admin");
const CREDENTIALS: &str = "crosslock-admin:admin@";
const NAME: &str = "crosslock-admin";
const TIMEOUT: Duration = Duration::from_secs(5);

impl RedisServer {
    /// Opens a connection that may do everything and isn't counted by [`RedisServer::connected_clients`].
    pub fn connection(&self) -> Connection {
        connect(self.port(), self.settings.guarded).expect("connect to the server")
    }

    pub fn command_calls(&self, command: &str) -> u64 {
        // A failed call is counted by the server as a call as well, a rejected one isn't.
        self.command_stat(command, "calls") - self.command_stat(command, "failed_calls")
    }

    /// Returns how many calls of `command` the server refused to run, such as for want of a permission.
    pub fn rejected_calls(&self, command: &str) -> u64 {
        self.command_stat(command, "rejected_calls")
    }

    pub fn keys(&self) -> Vec<String> {
        let mut keys: Vec<_> = self
            .query::<Vec<Vec<u8>>>(&["KEYS", "*"])
            .iter()
            .map(|key| String::from_utf8_lossy(key).into_owned())
            .collect();
        keys.sort();
        keys
    }

    pub fn get(&self, key: &str) -> Option<String> {
        self.query(&["GET", key])
    }

    pub fn counter(&self, key: &str) -> Option<u64> {
        let text = self.get(key)?;
        let digits = text.trim_end_matches(['q', 'r']);
        Some(digits.parse().expect("a counter"))
    }

    /// Returns the milliseconds until `key` expires, -1 if it doesn't, -2 if there is no such key.
    pub fn pttl(&self, key: &str) -> i64 {
        self.query(&["PTTL", key])
    }

    /// Returns how many clients are connected, without the tests' own connections and without replicas.
    pub fn connected_clients(&self) -> usize {
        let own = format!(" name={NAME} ");
        self.query::<String>(&["CLIENT", "LIST", "TYPE", "normal"])
            .lines()
            .filter(|line| !line.contains(&own))
            .count()
    }

    pub fn info(&self, field: &str) -> Option<String> {
        info(&mut self.connection(), field).expect("ask the server")
    }

    /// Runs a command; panics if it fails or its reply doesn't fit.
    #[track_caller]
    pub fn query<T: FromRedisValue>(&self, words: &[&str]) -> T {
        self.try_query(words)
            .unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    pub fn try_query<T: FromRedisValue>(&self, words: &[&str]) -> RedisResult<T> {
        let mut command = cmd(words[0]);
        command.arg(&words[1..]);
        command.query(&mut connect(self.port(), self.settings.guarded)?)
    }

    /// Returns whether so many replicas confirm what is written now. One that has just been given all data is sent
    /// nothing more until it has said that it is there, which it does once a second.
    pub fn is_confirmed_by(&self, replicas: usize) -> RedisResult<bool> {
        let mut connection = connect(self.port(), self.settings.guarded)?;
        // It reaches replicas, and leaves no key.
        cmd("PUBLISH")
            .arg(&["replicated", "?"])
            .exec(&mut connection)?;
        let mut wait = cmd("WAIT");
        let confirming: usize = wait.arg(replicas).arg(2_000).query(&mut connection)?;
        Ok(confirming >= replicas)
    }

    fn command_stat(&self, command: &str, field: &str) -> u64 {
        let Some(stats) = self.info(&format!("cmdstat_{}", command.to_lowercase())) else {
            return 0;
        };
        stats
            .split(',')
            .find_map(|pair| pair.strip_prefix(field)?.strip_prefix('='))
            .map_or(0, |count| count.parse().expect("a number"))
    }
}

/// Returns whether the server at `port` has the process id `pid` and is ready for commands.
pub(super) fn answers(port: u16, guarded: bool, pid: u32) -> bool {
    connect(port, guarded).is_ok_and(|mut connection| {
        let found = info(&mut connection, "process_id").ok().flatten();
        // INFO is answered while data is being loaded, PING isn't.
        found == Some(pid.to_string()) && connection.check_connection()
    })
}

fn connect(port: u16, guarded: bool) -> RedisResult<Connection> {
    let credentials = if guarded { CREDENTIALS } else { "" };
    let info = format!("redis://{credentials}127.0.0.1:{port}/")
        .into_connection_info()?
        .set_tcp_settings(TcpSettings::default().set_nodelay(true));
    let mut connection = Client::open(info)?.get_connection_with_timeout(TIMEOUT)?;
    connection.set_read_timeout(Some(TIMEOUT))?;
    connection.set_write_timeout(Some(TIMEOUT))?;
    cmd("CLIENT")
        .arg(&["SETNAME", NAME])
        .exec(&mut connection)?;
    Ok(connection)
}

fn info(connection: &mut Connection, field: &str) -> RedisResult<Option<String>> {
    let text: String = cmd("INFO").arg("everything").query(connection)?;
    let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
    let found = pairs.find(|(name, _)| *name == field);
    Ok(found.map(|(_, value)| value.to_owned()))
}
