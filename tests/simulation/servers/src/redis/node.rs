//! One server: its state, its scripts, and its clients.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crosslock_world::service::{Connection, Done, Host};

use super::channels::{Sort, deliver};
use super::keyspace::{Bytes, Entry, Value};
use super::reply::{Reply, Words, first};
use super::scripts::Scripts;
use super::state::{Address, From, State};
use super::table::Does;
use crate::short;

pub(super) struct Node {
    pub(super) state: Box<State>,
    pub(super) scripts: Scripts,
    clients: BTreeMap<Connection, Client>,
    /// The time since the world began.
    pub(super) now: Duration,
    /// Up to where each replica has said that it has what was written.
    pub(super) acks: BTreeMap<Host, u64>,
    /// What it has written and nobody was sent yet.
    pub(super) records: Vec<Arc<Record>>,
    /// Of which line of masters its data is.
    pub(super) history: u64,
}

/// What one command has written and published: others see all of it, or nothing.
pub(super) struct Record {
    changes: Vec<(Bytes, Option<Entry>)>,
    published: Vec<(Sort, Bytes, Bytes)>,
}

#[derive(Debug, Default)]
pub(super) struct Client {
    input: Bytes,
    /// Up to where its own commands have written.
    pub(super) offset: u64,
    pub(super) waits: Option<Waiting>,
    /// Whether its next command may be about a slot that comes.
    pub(super) asks: bool,
}

/// A client that waits until replicas have what it wrote.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) least: usize,
    pub(super) offset: u64,
    /// `None`: for ever.
    pub(super) until: Option<Duration>,
}

impl Node {
    pub(super) fn new(address: Address, mode: &'static str, scripts: Scripts) -> Self {
        Node {
            state: Box::new(State::new(address, mode)),
            scripts,
            clients: BTreeMap::new(),
            now: Duration::ZERO,
            acks: BTreeMap::new(),
            records: Vec::new(),
            history: 0,
        }
    }

    /// It was killed, and begins anew: without what it had, unless that was on its disk.
    pub(super) fn restart(&mut self, with_data: bool, history: u64) {
        let anew = Node::new((String::new(), 0), "", self.scripts.of_another());
        let before = std::mem::replace(self, anew);
        let is_copy = before.state.keys.is_copy;
        self.history = if is_copy { before.history } else { history };
        let (state, before) = (&mut self.state, *before.state);
        (state.starts, state.up_since) = (before.starts + 1, Some(before.now));
        (state.address, state.mode) = (before.address, before.mode);
        (state.master, state.offset) = (before.master, before.offset);
        (state.slots, state.watched) = (before.slots, before.watched);
        state.keys = before.keys;
        if !with_data {
            state.keys.replace_all(BTreeMap::new());
        }
        let changed = &mut state.keys.changed;
        *changed = changed.take().map(|_| BTreeSet::new());
    }

    /// All its connections are gone.
    pub(super) fn lose_clients(&mut self) {
        for client in std::mem::take(&mut self.clients).into_keys() {
            self.state.channels.forget(client);
        }
    }

    /// Closes all connections.
    pub(super) fn close_clients(&mut self) {
        let all = self.clients.keys().map(|client| Done::Close(*client));
        self.state.done.extend(all);
        self.lose_clients();
    }

    pub(super) fn set_time(&mut self, now: Duration, wall: Duration) {
        (self.now, self.state.now) = (now, now);
        self.state.keys.wall = wall;
    }

    pub(super) fn connected(&mut self, client: Connection) {
        self.clients.insert(client, Client::default());
    }

    pub(super) fn closed(&mut self, client: Connection) {
        self.clients.remove(&client);
        self.state.channels.forget(client);
    }

    pub(super) fn client(&mut self, client: Connection) -> &mut Client {
        self.clients.entry(client).or_default()
    }

    pub(super) fn received(&mut self, client: Connection, bytes: &[u8]) {
        if let Some(known) = self.clients.get_mut(&client) {
            known.input.extend_from_slice(bytes);
            self.go_on(client);
        }
    }

    /// Carries out what a client has sent, until it has to wait.
    fn go_on(&mut self, client: Connection) {
        let mut answers = Vec::new();
        let mut is_over = false;
        while let Some(known) = self.clients.get_mut(&client)
            && known.waits.is_none()
        {
            match first(&known.input) {
                Ok(None) => break,
                Ok(Some((words, length))) => {
                    known.input.drain(..length);
                    answers.extend(self.carry_out(client, &words).bytes());
                }
                Err(()) => {
                    answers.extend(Reply::error("ERR Protocol error").bytes());
                    is_over = true;
                    break;
                }
            }
        }
        if !answers.is_empty() {
            self.state.done.push(Done::Send(client, answers));
        }
        if is_over {
            self.state.done.push(Done::Close(client));
            self.closed(client);
        }
    }

    fn carry_out(&mut self, client: Connection, words: &Words) -> Reply {
        self.state.asks = std::mem::take(&mut self.client(client).asks);
        if self.state.channels.is_subscribed(client) && !is_of_channels(&words[0]) {
            return Reply::error("ERR only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING are allowed");
        }
        let command = match self.state.check(words, From::Client) {
            Ok(command) => command,
            Err(refusal) => return refusal,
        };
        let reply = match command.does {
            Does::Data(run) => self.state.carry_out(command, run, words),
            Does::Client(run) => run(self, client, words).unwrap_or_else(|error| error),
        };
        self.commit();
        self.client(client).offset = self.state.offset;
        reply
    }

    /// The same as one that others may copy.
    pub(super) fn with_log(mut self) -> Self {
        self.state.keys.changed = Some(BTreeSet::new());
        self
    }

    /// Makes a record of what was written since the last one.
    pub(super) fn commit(&mut self) {
        let published = std::mem::take(&mut self.state.published);
        let keys = &mut self.state.keys;
        let Some(changed) = keys.changed.as_mut() else {
            return;
        };
        let changed = std::mem::take(changed);
        if keys.is_copy || changed.is_empty() && published.is_empty() {
            return;
        }
        let changes = changed.into_iter();
        let changes = changes.map(|key| (keys.raw(&key).cloned(), key));
        let changes = changes.map(|(entry, key)| (key, entry)).collect();
        let record = Record { changes, published };
        self.records.push(Arc::new(record));
        self.state.offset += 1;
    }

    /// Takes over what the server has written that it copies.
    pub(super) fn apply(&mut self, record: &Record) {
        for (key, entry) in &record.changes {
            self.state.keys.put(key, entry.clone());
        }
        for (sort, channel, message) in &record.published {
            deliver(&mut self.state, *sort, channel, message);
        }
        self.state.offset += 1;
    }

    /// Takes over all that it has.
    pub(super) fn copy_all(&mut self, master: &Node) {
        let entries = master.state.keys.all().clone();
        self.state.keys.replace_all(entries);
        (self.state.offset, self.history) = (master.state.offset, master.history);
    }

    /// Becomes a master, with what it has.
    pub(super) fn promote(&mut self, history: u64) {
        self.state.master = None;
        self.state.keys.is_copy = false;
        self.history = history;
    }

    /// Becomes a copy of another.
    pub(super) fn follow(&mut self, master: Address) {
        self.state.master = Some(master);
        self.state.keys.is_copy = true;
        self.records.clear();
        self.acks.clear();
        let error = "UNBLOCKED force unblock from blocking operation, instance state changed";
        for client in self.waiting() {
            self.end_wait(client, &Reply::error(error));
        }
    }

    /// The clients that wait for replicas.
    fn waiting(&self) -> Vec<Connection> {
        let all = self.clients.iter();
        let all = all.filter(|(_, known)| known.waits.is_some());
        all.map(|(client, _)| *client).collect()
    }

    /// How many replicas have all up to there.
    pub(super) fn acknowledged(&self, offset: u64) -> usize {
        self.acks.values().filter(|ack| **ack >= offset).count()
    }

    /// Answers those that have waited long enough, or for enough replicas.
    pub(super) fn settle(&mut self) {
        let waiting = self.clients.iter();
        let waiting = waiting.filter_map(|(client, known)| Some((*client, known.waits?)));
        for (client, waits) in waiting.collect::<Vec<_>>() {
            let have = self.acknowledged(waits.offset);
            let is_over = waits.until.is_some_and(|until| until <= self.now);
            if have >= waits.least || is_over {
                self.end_wait(client, &Reply::count(have));
            }
        }
    }

    /// When something is due: a key ends, or somebody has waited long enough.
    pub(super) fn wakes_at(&self) -> Option<Duration> {
        let keys = &self.state.keys;
        let left = keys
            .next_end()
            .map(|ends| (ends - keys.now()).max(1).unsigned_abs());
        let ends = left.map(|left| self.now + Duration::from_millis(left));
        let waits = self.clients.values().filter_map(|known| known.waits?.until);
        waits.chain(ends).min()
    }

    fn end_wait(&mut self, client: Connection, reply: &Reply) {
        self.state.done.push(Done::Send(client, reply.bytes()));
        self.client(client).waits = None;
        self.go_on(client);
    }

    /// What happens to the data of one server.
    pub(super) fn suffer(&mut self, fault: &str, random: &mut fastrand::Rng) {
        let keys = &mut self.state.keys;
        match fault {
            "flush" => keys.clear(),
            "script flush" => self.scripts.forget_all(),
            "evict" => {
                let count = keys.volatile().count();
                let evicted = (count > 0).then(|| random.usize(..count));
                let evicted = evicted.and_then(|at| keys.volatile().nth(at).cloned());
                if let Some(key) = evicted {
                    keys.remove(&key);
                    keys.written(&key);
                }
            }
            "lose queues" => {
                let is_list = |entry: &Entry| matches!(entry.value, Value::List(_));
                let lists = keys.iter().filter(|(_, entry)| is_list(entry));
                let lists: Vec<_> = lists.map(|(key, _)| key.clone()).collect();
                for key in lists {
                    keys.remove(&key);
                    keys.written(&key);
                }
            }
            "full" => self.state.is_full = !self.state.is_full,
            _ => {}
        }
    }

    /// One line for each key: its name, what it holds, and for how many milliseconds.
    pub(super) fn contents(&self) -> Vec<String> {
        let keys = &self.state.keys;
        let lines = keys.iter().map(|(key, entry)| {
            let ttl = entry.ends.map(|ends| format!("{} ms", ends - keys.now()));
            let ttl = ttl.unwrap_or_else(|| "no ttl".to_owned());
            let name = String::from_utf8_lossy(key);
            let (kind, value) = (entry.value.name(), shown(&entry.value));
            format!("{name} {kind} {value} {ttl}")
        });
        lines.collect()
    }
}

/// What a client that hears on channels may send.
fn is_of_channels(name: &[u8]) -> bool {
    let name = name.to_ascii_uppercase();
    name.ends_with(b"SUBSCRIBE") || name == b"PING"
}

fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => short(text),
        Value::List(list) => format!("{} entries", list.len()),
        Value::Hash(hash) => format!("{} fields", hash.len()),
        Value::Sorted(sorted) => format!("{} members", sorted.len()),
    }
}
