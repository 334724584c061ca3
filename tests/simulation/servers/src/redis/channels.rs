//! Who hears on which channel.

use std::collections::BTreeSet;

use crosslock_world::service::{Connection, Done};

use super::keyspace::Bytes;
use super::reply::{Outcome, Reply, Words};
use super::state::State;

/// Plain channels, or those of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sort {
    Plain,
    Sharded,
}

/// Who hears on which.
#[derive(Debug, Default)]
pub(super) struct Channels(BTreeSet<(Connection, Sort, Bytes)>);

impl Sort {
    /// Of the command with that name.
    fn of(name: &[u8]) -> Self {
        match name {
            b"SPUBLISH" | b"SSUBSCRIBE" | b"SUNSUBSCRIBE" => Sort::Sharded,
            _ => Sort::Plain,
        }
    }

    fn word(self, plain: &str) -> String {
        match self {
            Sort::Plain => plain.to_owned(),
            Sort::Sharded => format!("s{plain}"),
        }
    }
}

impl Channels {
    pub(super) fn forget(&mut self, client: Connection) {
        self.0.retain(|(of, ..)| *of != client);
    }

    fn all_of(&self, client: Connection) -> impl Iterator<Item = &(Connection, Sort, Bytes)> {
        let all = self.0.range((client, Sort::Plain, Bytes::new())..);
        all.take_while(move |(of, ..)| *of == client)
    }

    /// A client of this kind may do little else.
    pub(super) fn is_subscribed(&self, client: Connection) -> bool {
        self.all_of(client).next().is_some()
    }

    pub(super) fn hear(&self, sort: Sort, channel: &[u8]) -> Vec<Connection> {
        let all = self.0.iter();
        let all = all.filter(|(_, its, name)| (*its, &**name) == (sort, channel));
        all.map(|(client, ..)| *client).collect()
    }

    /// Channels of slots, in their order, and who hears on them.
    pub(super) fn sharded(&self) -> BTreeSet<(Bytes, Connection)> {
        let all = self.0.iter().filter(|(_, sort, _)| *sort == Sort::Sharded);
        all.map(|(client, _, channel)| (channel.clone(), *client))
            .collect()
    }

    /// What a client is told of a channel that it hears on from now on, or doesn't any more.
    pub(super) fn change(
        &mut self,
        client: Connection,
        sort: Sort,
        channel: &[u8],
        hears: bool,
    ) -> Reply {
        let place = (client, sort, channel.to_vec());
        let what = if hears {
            self.0.insert(place);
            "subscribe"
        } else {
            self.0.remove(&place);
            "unsubscribe"
        };
        let left = self.all_of(client).filter(|(_, its, _)| *its == sort);
        let (what, left) = (Reply::text(sort.word(what)), Reply::count(left.count()));
        Reply::List(vec![what, Reply::text(channel), left])
    }
}

/// SUBSCRIBE and SSUBSCRIBE, UNSUBSCRIBE and SUNSUBSCRIBE, of these channels.
pub(super) fn subscribe(state: &mut State, client: Connection, words: &Words) -> Reply {
    let sort = Sort::of(&words[0]);
    let hears = !words[0].ends_with(b"UNSUBSCRIBE");
    let channels = words[1..].iter();
    let told = channels.map(|channel| state.channels.change(client, sort, channel, hears));
    Reply::Several(told.collect())
}

/// Sends a message to all that hear; says how many.
pub(super) fn deliver(state: &mut State, sort: Sort, channel: &[u8], message: &[u8]) -> usize {
    let hear = state.channels.hear(sort, channel);
    let word = sort.word("message").into_bytes();
    let told = Reply::texts([&word[..], channel, message]).bytes();
    let sent = hear.iter().map(|client| Done::Send(*client, told.clone()));
    state.done.extend(sent);
    hear.len()
}

/// PUBLISH and SPUBLISH.
pub(super) fn publish(state: &mut State, words: &Words) -> Outcome {
    let (sort, channel, message) = (Sort::of(&words[0]), &words[1], &words[2]);
    let heard = deliver(state, sort, channel, message);
    let published = (sort, channel.clone(), message.clone());
    state.published.push(published);
    Ok(Reply::count(heard))
}

/// PUBSUB NUMSUB and SHARDNUMSUB.
pub(super) fn count(state: &mut State, words: &Words) -> Outcome {
    let sort = match words[1].as_slice() {
        b"NUMSUB" => Sort::Plain,
        b"SHARDNUMSUB" => Sort::Sharded,
        _ => return Err(Reply::error("ERR unknown subcommand")),
    };
    let counts = words[2..].iter().flat_map(|channel| {
        let heard = state.channels.hear(sort, channel).len();
        [Reply::text(channel.clone()), Reply::count(heard)]
    });
    Ok(Reply::List(counts.collect()))
}
