//! Threads that watch the servers, and whether a process has the time that it needs.

mod directory;
mod members;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use redis::{Client, Connection, FromRedisValue, RedisResult};

use super::delays::{Delays, watch_threads};
use super::history::{DRIVER, Event, History, LATE, SERVER, TRIED, WAITED, now};
use super::names::{NAMES, key_of};
use super::servers::{Members, Servers, Watched};
use support::Probe;

/// Threads that write down what they see until this is dropped.
#[derive(Debug)]
pub(crate) struct Watchers {
    ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    _probe: Probe,
}

impl Watchers {
    pub(crate) fn start(servers: &Servers, dir: &Path) -> io::Result<Self> {
        let ended = Arc::new(AtomicBool::new(false));
        let history = History::open(dir, "server.jsonl", DRIVER)?;
        let (watched, open) = (
            servers.watched().clone(),
            servers.members().map(Members::look),
        );
        let late = || History::open(dir, "lateness.jsonl", DRIVER);
        let directory = servers.directory().map(|one| one.path().to_owned());
        let (own, until, also_until) = (late()?, ended.clone(), ended.clone());
        Ok(Watchers {
            _probe: watch_process(late()?),
            threads: vec![
                thread::spawn(move || match (open, directory) {
                    (Some(open), _) => members::watch(&watched, open, &history, &until),
                    (_, Some(directory)) => directory::watch(&directory, &history, &until),
                    _ => watch_servers(&watched, &history, &until),
                }),
                thread::spawn(move || watch_threads(&own, &also_until)),
            ],
            ended,
        })
    }
}

impl Drop for Watchers {
    fn drop(&mut self) {
        self.ended.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            // If it panicked, it has said so.
            let _ = thread.join();
        }
    }
}

/// Writes down when threads of this process run late.
pub(crate) fn watch_process(history: History) -> Probe {
    Probe::start(Duration::ZERO, move |late| {
        if late >= LATE {
            history.tell_late(TRIED, late);
        }
    })
}

/// A connection that may do everything.
pub(crate) fn admin(server: SocketAddr) -> RedisResult<Connection> {
    const TIMEOUT: Duration = Duration::from_secs(2);
    let client = Client::open(format!("redis://crosslock-admin:admin@{server}/"))?;
    let connection = client.get_connection_with_timeout(TIMEOUT)?;
    connection.set_read_timeout(Some(TIMEOUT))?;
    connection.set_write_timeout(Some(TIMEOUT))?;
    Ok(connection)
}

/// All keys, each with its ttl and what it holds.
const LOOK: &str = "
    local all = {}
    for _, key in ipairs(redis.call('KEYS', '*')) do
      local kind = redis.call('TYPE', key).ok
      local value = ''
      if kind == 'string' then
        value = redis.call('GET', key)
      elseif kind == 'list' then
        value = table.concat(redis.call('LRANGE', key, 0, -1), ' ')
      elseif kind == 'zset' then
        value = table.concat(redis.call('ZRANGE', key, 0, -1, 'WITHSCORES'), ' ')
      end
      table.insert(all, {key, redis.call('PTTL', key), value})
    end
    return all";

/// A key that a server has, as it was at some time before.
struct Found {
    key: String,
    ttl: i64,
    text: String,
    before: u64,
}

/// Connections to servers, each with what its process waits for.
type Open = HashMap<SocketAddr, (Connection, Delays)>;

fn watch_servers(servers: &Watched, history: &History, ended: &AtomicBool) {
    const PAUSE: Duration = Duration::from_millis(12);
    let mut open = Open::new();
    let mut told = Told::default();
    while !ended.load(Relaxed) {
        thread::sleep(PAUSE);
        let now = servers.get();
        let all = |addr: &SocketAddr| now.masters.contains(addr) || now.others.contains(addr);
        open.retain(|addr, _| all(addr));
        for addr in &now.others {
            // It has what a master says.
            ask::<()>(&mut open, *addr, &["PING"], history);
        }
        let masters = now.masters.iter();
        let found: Option<Vec<_>> = masters
            .map(|addr| look_at(&mut open, *addr, history))
            .collect();
        // A lock that isn't with those that answer may be with the one that doesn't.
        if let Some(found) = found.filter(|found| !found.is_empty()) {
            let keys: Vec<_> = found.into_iter().flatten().collect();
            write_down(history, &keys, &mut told);
        }
    }
}

/// What a server has, unless it doesn't say.
fn look_at(open: &mut Open, addr: SocketAddr, history: &History) -> Option<Vec<Found>> {
    let before = now();
    let keys: Vec<(String, i64, String)> = ask(open, addr, &["EVAL", LOOK, "0"], history)?;
    let found = |(key, ttl, text)| Found {
        key,
        ttl,
        text,
        before,
    };
    Some(keys.into_iter().map(found).collect())
}

/// What a server answers, unless it is away, or busy. Writes down how late it is.
fn ask<T: FromRedisValue>(
    open: &mut Open,
    addr: SocketAddr,
    words: &[&str],
    history: &History,
) -> Option<T> {
    /// Where nothing is in its way.
    const LONGEST_LOOK: Duration = Duration::from_millis(5);
    let Some((connection, delays)) = open.get_mut(&addr) else {
        let mut connection = admin(addr).ok()?;
        let delays = Delays::of(pid(&mut connection)?);
        open.insert(addr, (connection, delays));
        return None;
    };
    let before = now();
    let answer = redis::cmd(words[0]).arg(&words[1..]).query(connection);
    let Ok(answer) = answer else {
        open.remove(&addr);
        return None;
    };
    let took = Duration::from_nanos(now() - before);
    tell_slow(history, took, LONGEST_LOOK);
    tell_waited(history, delays.look());
    Some(answer)
}

/// Writes down how late a server answered, where that usually takes no longer than this.
fn tell_slow(history: &History, took: Duration, usual: Duration) {
    if took > usual + LATE {
        history.tell_late_of(SERVER, 0, TRIED, took - usual);
    }
}

/// Writes down for how long a server waited for a processor.
fn tell_waited(history: &History, delay: Duration) {
    if delay >= LATE {
        history.tell_late_of(SERVER, 0, WAITED, delay);
    }
}

/// The process of a server.
fn pid(connection: &mut Connection) -> Option<u32> {
    let info: String = redis::cmd("INFO").arg("server").query(connection).ok()?;
    let mut lines = info.lines();
    lines.find_map(|line| line.strip_prefix("process_id:")?.trim().parse().ok())
}

fn write_down(history: &History, keys: &[Found], told: &mut Told) {
    let after = now();
    // A value stays.
    let is_bare = |found: &&Found| found.ttl == -1 && !found.key.ends_with(":value");
    for found in keys.iter().filter(is_bare) {
        let (name, until) = (found.key.clone(), found.ttl.unsigned_abs());
        history.tell(&Event {
            name,
            until,
            ..Event::now("bare")
        });
    }
    for name in NAMES {
        told.tell(history, seen_of(name, keys, after));
    }
}

/// What is to be told of a name.
fn seen_of(name: &str, keys: &[Found], after: u64) -> [Event; 4] {
    let lock = key_of(name);
    let find = |suffix: &str| {
        let wanted = format!("{lock}{suffix}");
        keys.iter().find(|found| found.key == wanted)
    };
    let text = |suffix| find(suffix).map_or(String::new(), |found| found.text.clone());
    let event = |op, detail| Event::shown(after, op, name, detail);
    let mut held = event("key", text(""));
    // Behind the number may stand which lines there are, and whose leases were broken.
    let counter = text(":fence");
    let (counter, broken) = counter.split_once('b').unwrap_or((&counter, ""));
    let number = counter.split(|c: char| !c.is_ascii_digit()).next();
    held.token = number.and_then(|number| number.parse().ok()).unwrap_or(0);
    if let Some(found) = find("") {
        held.until = found.before + found.ttl.unsigned_abs() * 1_000_000;
    }
    [
        held,
        event("line", text(":queue")),
        event("sharers", text(":holders")),
        event("broken", broken.to_owned()),
    ]
}

/// What was told last, of each name: only news are.
#[derive(Default)]
struct Told(HashMap<String, Event>);

impl Told {
    fn tell(&mut self, history: &History, events: impl IntoIterator<Item = Event>) {
        for event in events {
            let last = self.0.entry(event.op.clone() + &event.name).or_default();
            if !is_same(last, &event) {
                history.tell(&event);
                *last = event;
            }
        }
    }
}

/// But for what the times of two looks differ by.
fn is_same(before: &Event, now: &Event) -> bool {
    const NOISE: u64 = 2_000_000;
    before.detail == now.detail
        && before.token == now.token
        && before.until.abs_diff(now.until) < NOISE
        && !before.op.is_empty()
}
