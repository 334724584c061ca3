//! All commands.

use crosslock_world::service::Connection;

use super::keyspace::Bytes;
use super::node::Node;
use super::reply::{Outcome, Words};
use super::state::State;
use super::{channels, connection, lists, slots, sorted, state, texts, watch};

pub(super) struct Command {
    name: &'static str,
    /// How many words it has; as many at least, if that is below 0.
    words: isize,
    keys: At,
    pub(super) writes: bool,
    pub(super) needs_memory: bool,
    pub(super) does: Does,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Does {
    /// What scripts may call, too.
    Data(fn(&mut State, &Words) -> Outcome),
    /// What is about the connection that it comes on.
    Client(fn(&mut Node, Connection, &Words) -> Outcome),
}

/// Which words are keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    None,
    First,
    All,
    /// So many as the third word says, behind it.
    Counted,
    /// The first is a channel that has a slot as keys have.
    Sharded,
}

impl Command {
    const fn of(name: &'static str, words: isize, keys: At, does: Does) -> Self {
        let (writes, needs_memory) = (false, false);
        Command {
            name,
            words,
            keys,
            writes,
            needs_memory,
            does,
        }
    }

    /// It writes.
    const fn writing(mut self) -> Self {
        self.writes = true;
        self
    }

    /// It writes, and needs memory.
    const fn growing(mut self) -> Self {
        self.needs_memory = true;
        self.writing()
    }

    pub(super) fn takes(&self, words: usize) -> bool {
        match self.words < 0 {
            true => words >= self.words.unsigned_abs(),
            false => words == self.words.unsigned_abs(),
        }
    }

    pub(super) fn keys_in<'a>(&self, words: &'a Words) -> Vec<&'a Bytes> {
        let range = match self.keys {
            At::None | At::Sharded => 0..0,
            At::First => 1..2,
            At::All => 1..words.len(),
            At::Counted => {
                let count = words.get(2).and_then(|word| str::from_utf8(word).ok());
                let count = count.and_then(|word| word.parse().ok()).unwrap_or(0);
                3..3usize.saturating_add(count)
            }
        };
        words.get(range).unwrap_or_default().iter().collect()
    }

    /// What has a slot: keys, or channels.
    pub(super) fn slotted_in<'a>(&self, words: &'a Words) -> Vec<&'a Bytes> {
        match self.keys {
            At::Sharded if self.name == "SPUBLISH" => vec![&words[1]],
            At::Sharded => words[1..].iter().collect(),
            _ => self.keys_in(words),
        }
    }

    /// Whether it is about channels that have a slot.
    pub(super) fn is_sharded(&self) -> bool {
        self.keys == At::Sharded
    }
}

pub(super) fn find(name: &[u8]) -> Option<&'static Command> {
    let upper = name.to_ascii_uppercase();
    let place = COMMANDS.binary_search_by(|command| command.name.as_bytes().cmp(&upper));
    place.ok().map(|at| &COMMANDS[at])
}

type Data = fn(&mut State, &Words) -> Outcome;
type Client = fn(&mut Node, Connection, &Words) -> Outcome;

const fn data(name: &'static str, words: isize, keys: At, run: Data) -> Command {
    Command::of(name, words, keys, Does::Data(run))
}

const fn link(name: &'static str, words: isize, keys: At, run: Client) -> Command {
    Command::of(name, words, keys, Does::Client(run))
}

/// In the order of their names.
#[rustfmt::skip]
const COMMANDS: &[Command] = &[
    link("ASKING", 1, At::None, connection::asking),
    data("CLUSTER", 2, At::None, slots::ask),
    data("DEL", -2, At::All, texts::delete).writing(),
    link("EVAL", -3, At::Counted, connection::eval),
    link("EVALSHA", -3, At::Counted, connection::eval_digest),
    data("EXISTS", -2, At::All, texts::exist),
    data("FLUSHALL", 1, At::None, texts::flush).writing(),
    data("GET", 2, At::First, texts::get),
    data("GETRANGE", 4, At::First, texts::get_range),
    data("HDEL", -3, At::First, lists::delete_fields).writing(),
    link("HELLO", 1, At::None, connection::hello),
    data("HEXISTS", 3, At::First, lists::has_field),
    data("HGET", 3, At::First, lists::field),
    data("HGETALL", 2, At::First, lists::all_fields),
    data("HLEN", 2, At::First, lists::count_fields),
    data("HMGET", -3, At::First, lists::fields),
    data("HSET", -4, At::First, lists::set_fields).growing(),
    data("INCR", 2, At::First, texts::increase).growing(),
    data("INFO", -1, At::None, state::info),
    data("LINDEX", 3, At::First, lists::index),
    data("LLEN", 2, At::First, lists::length),
    data("LPOP", 2, At::First, lists::pop).writing(),
    data("LPOS", 3, At::First, lists::position),
    data("LRANGE", 4, At::First, lists::list_range),
    data("LREM", 4, At::First, lists::list_remove).writing(),
    data("MGET", -2, At::All, texts::get_all),
    data("PERSIST", 2, At::First, texts::persist).writing(),
    data("PEXPIRE", 3, At::First, texts::expire).writing(),
    data("PEXPIREAT", 3, At::First, texts::expire).writing(),
    link("PING", -1, At::None, connection::ping),
    data("PTTL", 2, At::First, texts::millis_left),
    data("PUBLISH", 3, At::None, channels::publish),
    data("PUBSUB", -2, At::None, channels::count),
    data("ROLE", 1, At::None, state::role),
    data("RPUSH", -3, At::First, lists::push).growing(),
    data("SCAN", -2, At::None, texts::scan),
    link("SCRIPT", 3, At::None, connection::load),
    data("SENTINEL", 3, At::None, watch::ask),
    data("SET", -3, At::First, texts::set).growing(),
    data("SPUBLISH", 3, At::Sharded, channels::publish),
    link("SSUBSCRIBE", -2, At::Sharded, connection::subscribe),
    link("SUBSCRIBE", -2, At::None, connection::subscribe),
    link("SUNSUBSCRIBE", -2, At::Sharded, connection::subscribe),
    data("TIME", 1, At::None, state::time),
    link("UNSUBSCRIBE", -2, At::None, connection::subscribe),
    link("WAIT", 3, At::None, connection::wait),
    data("ZADD", -4, At::First, sorted::add).growing(),
    data("ZCARD", 2, At::First, sorted::card),
    data("ZCOUNT", 4, At::First, sorted::count),
    data("ZRANGE", -4, At::First, sorted::range),
    data("ZRANGEBYSCORE", -4, At::First, sorted::range),
    data("ZREM", -3, At::First, sorted::remove).writing(),
    data("ZREMRANGEBYSCORE", 4, At::First, sorted::remove_between).writing(),
    data("ZSCORE", 3, At::First, sorted::score_of),
];
