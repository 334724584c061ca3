//! One server: its state, its scripts, and its clients.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crosslock_world::service::{Connection, Done, Host};

use super::about::About;
use super::keyspace::Bytes;
use super::log::Log;
use super::reply::{Input, Reply, Words};
use super::scripts::Scripts;
use super::slots::Favour;
use super::state::{From, State};
use super::table::Does;

#[derive(Debug)]
pub(super) struct Node {
    pub(super) state: Box<State>,
    pub(super) scripts: Scripts,
    clients: BTreeMap<Connection, Client>,
    /// The time since the world began.
    pub(super) now: Duration,
    /// Up to where each replica has said that it has what was written.
    pub(super) acks: BTreeMap<Host, u64>,
    pub(super) log: Log,
    password: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Client {
    input: Input,
    /// `None`: it hasn't said who it is, and has to.
    pub(super) user: Option<String>,
    pub(super) name: Option<Bytes>,
    /// Up to where its own commands have written.
    pub(super) offset: u64,
    pub(super) waits: Option<Waiting>,
    pub(super) favour: Favour,
    /// It is closed behind what was sent.
    pub(super) is_leaving: bool,
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
    pub(super) fn new(about: About, password: Option<&str>) -> Self {
        Node {
            state: Box::new(State::new(about, password)),
            scripts: Scripts::new(),
            clients: BTreeMap::new(),
            now: Duration::ZERO,
            acks: BTreeMap::new(),
            log: Log::default(),
            password: password.map(str::to_owned),
        }
    }

    /// It was killed, and begins anew: without what it had, unless that was on its disk.
    pub(super) fn restart(&mut self, with_data: bool) {
        let mut about = self.state.about.clone();
        about.restarted();
        let mut keys = std::mem::take(&mut self.state.keys);
        let (slots, watched) = (self.state.slots.take(), self.state.watched.take());
        *self = Node::new(about, self.password.clone().as_deref());
        if !with_data {
            keys.replace_all(BTreeMap::new());
        }
        keys.changed = keys.changed.map(|_| BTreeSet::new());
        self.state.keys = keys;
        (self.state.slots, self.state.watched) = (slots, watched);
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
        self.now = now;
        self.state.keys.wall = wall;
    }

    pub(super) fn connected(&mut self, client: Connection) {
        let user = self.state.users.at_first();
        let joined = Client {
            user,
            ..Client::default()
        };
        self.clients.insert(client, joined);
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
            known.input.add(bytes);
            self.go_on(client);
        }
    }

    /// Carries out what a client has sent, until it has to wait.
    fn go_on(&mut self, client: Connection) {
        let mut answers = Vec::new();
        while let Some(known) = self.clients.get_mut(&client)
            && known.waits.is_none()
            && !known.is_leaving
        {
            match known.input.next() {
                Ok(None) => break,
                Ok(Some(words)) => {
                    let reply = self.carry_out(client, &words);
                    reply.write(&mut answers);
                }
                Err(error) => {
                    known.is_leaving = true;
                    Reply::error(format!("ERR Protocol error: {error}")).write(&mut answers);
                }
            }
        }
        if !answers.is_empty() {
            self.state.done.push(Done::Send(client, answers));
        }
        if self
            .clients
            .get(&client)
            .is_some_and(|known| known.is_leaving)
        {
            self.state.done.push(Done::Close(client));
            self.closed(client);
        }
    }

    fn carry_out(&mut self, client: Connection, words: &Words) -> Reply {
        let favour = &mut self.client(client).favour;
        let given = *favour;
        favour.asks = false;
        self.state.favour = given;
        let user = self.client(client).user.clone();
        let has_user = user.is_some();
        self.state.user = user.unwrap_or_default();
        let needs_user = |name: &[u8]| super::table::find(name).is_some_and(|one| one.needs_user);
        if !has_user && needs_user(&words[0]) {
            return Reply::error("NOAUTH Authentication required.");
        }
        if self.state.channels.is_subscribed(client) && !is_of_channels(&words[0]) {
            let name = String::from_utf8_lossy(&words[0]).to_lowercase();
            return Reply::error(format!(
                "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed \
                 in this context"
            ));
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
        let offset = self.state.about.offset;
        self.client(client).offset = offset;
        reply
    }

    /// The clients that wait for replicas.
    pub(super) fn waiting(&self) -> Vec<Connection> {
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

    pub(super) fn end_wait(&mut self, client: Connection, reply: &Reply) {
        let mut bytes = Vec::new();
        reply.write(&mut bytes);
        self.state.done.push(Done::Send(client, bytes));
        self.client(client).waits = None;
        self.go_on(client);
    }

    /// What happens to the data of one server: see [`super::Single`].
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
            format!(
                "{name} {} {} {ttl}",
                entry.value.name(),
                short(&entry.value)
            )
        });
        lines.collect()
    }
}

/// What a client that hears on channels may send.
fn is_of_channels(name: &[u8]) -> bool {
    let name = name.to_ascii_uppercase();
    name.ends_with(b"SUBSCRIBE") || matches!(&*name, b"PING" | b"QUIT" | b"RESET")
}

fn short(value: &super::keyspace::Value) -> String {
    use super::keyspace::Value;
    const LONGEST: usize = 60;
    let text = match value {
        Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
        Value::List(list) => list.front().map_or(String::new(), |first| {
            format!("{} of [{}, ..]", list.len(), String::from_utf8_lossy(first))
        }),
        Value::Hash(hash) => format!("{} fields", hash.len()),
        Value::Sorted(sorted) => format!("{} members", sorted.len()),
    };
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}..", &text[..end]),
        None => text,
    }
}
