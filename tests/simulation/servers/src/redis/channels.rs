//! Who hears on which channel.

use std::collections::{BTreeMap, BTreeSet};

use crosslock_world::service::{Connection, Done};

use super::keyspace::Bytes;
use super::reply::{Outcome, Reply, Words};
use super::state::State;
use super::texts::matches;

/// Plain channels, or those of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sort {
    Plain,
    Sharded,
}

#[derive(Debug, Default)]
pub(super) struct Channels {
    hear: BTreeMap<(Sort, Bytes), BTreeSet<Connection>>,
    of: BTreeMap<Connection, BTreeSet<(Sort, Bytes)>>,
}

impl Sort {
    fn word(self, plain: &str) -> String {
        match self {
            Sort::Plain => plain.to_owned(),
            Sort::Sharded => format!("s{plain}"),
        }
    }
}

impl Channels {
    /// How many channels of that sort the client hears then.
    pub(super) fn subscribe(&mut self, client: Connection, sort: Sort, channel: &[u8]) -> usize {
        let channel = (sort, channel.to_vec());
        self.of.entry(client).or_default().insert(channel.clone());
        self.hear.entry(channel).or_default().insert(client);
        self.count_of(client, sort)
    }

    pub(super) fn unsubscribe(&mut self, client: Connection, sort: Sort, channel: &[u8]) -> usize {
        let channel = (sort, channel.to_vec());
        if let Some(all) = self.of.get_mut(&client) {
            all.remove(&channel);
            if all.is_empty() {
                self.of.remove(&client);
            }
        }
        if let Some(all) = self.hear.get_mut(&channel) {
            all.remove(&client);
            if all.is_empty() {
                self.hear.remove(&channel);
            }
        }
        self.count_of(client, sort)
    }

    pub(super) fn forget(&mut self, client: Connection) {
        for (sort, channel) in self.of.get(&client).cloned().unwrap_or_default() {
            self.unsubscribe(client, sort, &channel);
        }
    }

    pub(super) fn of(&self, client: Connection, sort: Sort) -> Vec<Bytes> {
        let all = self.of.get(&client).into_iter().flatten();
        let all = all.filter(|(its, _)| *its == sort);
        all.map(|(_, channel)| channel.clone()).collect()
    }

    /// A client of this kind may do little else.
    pub(super) fn is_subscribed(&self, client: Connection) -> bool {
        self.of.contains_key(&client)
    }

    fn count_of(&self, client: Connection, sort: Sort) -> usize {
        let all = self.of.get(&client).into_iter().flatten();
        all.filter(|(its, _)| *its == sort).count()
    }

    pub(super) fn hear(&self, sort: Sort, channel: &[u8]) -> Vec<Connection> {
        let all = self.hear.get(&(sort, channel.to_vec()));
        all.into_iter().flatten().copied().collect()
    }

    pub(super) fn all(&self, sort: Sort) -> Vec<Bytes> {
        let all = self.hear.keys().filter(|(its, _)| *its == sort);
        all.map(|(_, channel)| channel.clone()).collect()
    }
}

/// What a client is told of a channel: `subscribe` or `unsubscribe`.
pub(super) fn told(what: &str, sort: Sort, channel: Option<&[u8]>, left: usize) -> Reply {
    let what = Reply::text(sort.word(what));
    Reply::List(vec![what, Reply::maybe(channel), Reply::count(left)])
}

/// SUBSCRIBE and SSUBSCRIBE.
pub(super) fn subscribe(state: &mut State, client: Connection, sort: Sort, words: &Words) -> Reply {
    let told = words[1..].iter().map(|channel| {
        let left = state.channels.subscribe(client, sort, channel);
        told("subscribe", sort, Some(channel), left)
    });
    Reply::Several(told.collect())
}

/// UNSUBSCRIBE and SUNSUBSCRIBE.
pub(super) fn unsubscribe(
    state: &mut State,
    client: Connection,
    sort: Sort,
    words: &Words,
) -> Reply {
    let all = match &words[1..] {
        [] => state.channels.of(client, sort),
        some => some.to_vec(),
    };
    if all.is_empty() {
        return told("unsubscribe", sort, None, 0);
    }
    let told = all.iter().map(|channel| {
        let left = state.channels.unsubscribe(client, sort, channel);
        told("unsubscribe", sort, Some(channel), left)
    });
    Reply::Several(told.collect())
}

/// Sends a message to all that hear; says how many.
pub(super) fn deliver(state: &mut State, sort: Sort, channel: &[u8], message: &[u8]) -> usize {
    let hear = state.channels.hear(sort, channel);
    let word = sort.word("message").into_bytes();
    let told = Reply::texts([&word[..], channel, message]);
    let mut bytes = Vec::new();
    told.write(&mut bytes);
    let sent = hear.iter().map(|client| Done::Send(*client, bytes.clone()));
    state.done.extend(sent);
    hear.len()
}

fn publish_on(state: &mut State, sort: Sort, words: &Words) -> Outcome {
    let heard = deliver(state, sort, &words[1], &words[2]);
    state
        .published
        .push((sort, words[1].clone(), words[2].clone()));
    Ok(Reply::count(heard))
}

pub(super) fn publish(state: &mut State, words: &Words) -> Outcome {
    publish_on(state, Sort::Plain, words)
}

pub(super) fn publish_sharded(state: &mut State, words: &Words) -> Outcome {
    publish_on(state, Sort::Sharded, words)
}

/// PUBSUB.
pub(super) fn ask(state: &mut State, words: &Words) -> Outcome {
    let what = String::from_utf8_lossy(&words[1]).to_uppercase();
    let (sort, what) = match what.strip_prefix("SHARD") {
        Some(what) => (Sort::Sharded, what.to_owned()),
        None => (Sort::Plain, what),
    };
    match what.as_str() {
        "NUMSUB" => {
            let counts = words[2..].iter().flat_map(|channel| {
                let heard = state.channels.hear(sort, channel).len();
                [Reply::text(channel.clone()), Reply::count(heard)]
            });
            Ok(Reply::List(counts.collect()))
        }
        "CHANNELS" => {
            let pattern = words.get(2).map_or(&b"*"[..], |pattern| pattern);
            let all = state.channels.all(sort).into_iter();
            Ok(Reply::texts(
                all.filter(|channel| matches(pattern, channel)),
            ))
        }
        "NUMPAT" => Ok(Reply::Int(0)),
        _ => Err(super::state::unknown_subcommand(words)),
    }
}
