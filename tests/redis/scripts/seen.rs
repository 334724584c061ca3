//! What the scripts leave in the server, and what they tell.

use std::collections::BTreeMap;
use std::fmt::Debug;

use redis::{Connection, FromRedisValue, PubSub, Value};

use super::bench::{Bench, END, KEYS};
use super::{COUNTER_TTL, HAND_OVERS};

/// All that the server knows of the lock, and its clock.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    /// What the lock says, but not how many permits are out.
    pub(crate) holder: Option<String>,
    /// How many permits are out, as the lock says it, and of how many.
    pub(crate) out: Option<u64>,
    pub(crate) of: Option<u64>,
    pub(crate) counter: Option<u64>,
    /// The letters behind the counter: which lines there may be.
    pub(crate) letters: String,
    /// The ids of owners that it names, whose leases were broken, and until when it does, in milliseconds.
    pub(crate) broken: BTreeMap<String, u64>,
    pub(crate) line: Vec<String>,
    pub(crate) waiters: BTreeMap<String, String>,
    pub(crate) readers: Vec<String>,
    /// Who shares the lock, and when its lease ends, in milliseconds.
    pub(crate) shares: BTreeMap<String, u64>,
    /// Their tokens, by owner.
    pub(crate) tokens: BTreeMap<String, u64>,
    pub(crate) value: Option<String>,
    /// Of all keys, in the order of the scripts.
    pub(crate) pttls: [i64; KEYS + 1],
    pub(crate) micros: u64,
}

/// What the lock says while permits are out, and how many behind it.
const PERMITS: &str = "crosslock:permits";

/// A subscriber: what it hears, in order, and nothing else.
pub(crate) struct Ears<'a>(PubSub<'a>);

impl Seen {
    pub(crate) fn of(keys: &[String; KEYS + 1], connection: &mut Connection) -> Self {
        let [lock, fence, queue, waiters, readers, holders, value] = keys;
        let mut pipe = redis::pipe();
        pipe.atomic().get(lock).get(fence).lrange(queue, 0, -1);
        pipe.hgetall(waiters).lrange(readers, 0, -1);
        pipe.zrange_withscores(holders, 0, -1).get(value);
        keys.iter().for_each(|key| {
            pipe.pttl(key);
        });
        pipe.cmd("TIME");
        let answers: Vec<Value> = pipe.query(connection).expect("look");
        let answers = &mut answers.into_iter();
        let lock: Option<String> = next(answers);
        let permits = lock.as_deref().and_then(|text| text.strip_prefix(PERMITS));
        let out = permits.map(|out| out.trim_start().split_once('/').expect("of how many"));
        let holder = permits.map_or(lock.clone(), |_| Some(PERMITS.to_owned()));
        let counter: Option<String> = next(answers);
        let (line, waiters, readers) = (next(answers), next(answers), next(answers));
        let members: BTreeMap<String, i64> = next(answers);
        let (shares, tokens) = shares_of(&members);
        let value = next(answers);
        let pttls = [(); KEYS + 1].map(|()| next(answers));
        let (seconds, micros): (u64, u64) = next(answers);
        Seen {
            holder,
            out: out.map(|(out, _)| out.parse().expect("digits")),
            of: out.map(|(_, of)| of.parse().expect("digits")),
            counter: counter.as_ref().map(|text| number_of(text)),
            letters: letters_of(counter.as_deref().unwrap_or_default()).to_owned(),
            broken: broken_of(counter.as_deref().unwrap_or_default()),
            line,
            waiters,
            readers,
            shares,
            tokens,
            value,
            pttls,
            micros: seconds * 1_000_000 + micros,
        }
    }

    /// Who waits exclusively, or for permits, first come first; and all that wait have their details in another key.
    #[track_caller]
    pub(crate) fn line(&self) -> Vec<&str> {
        let mut waiting: Vec<_> = self.line.iter().chain(&self.readers).collect();
        waiting.sort_unstable();
        assert!(waiting.into_iter().eq(self.waiters.keys()), "{self:?}");
        self.line.iter().map(String::as_str).collect()
    }

    /// All but how long it lasts.
    pub(crate) fn contents(&self) -> impl PartialEq + Debug {
        let line = (&self.line, &self.readers, &self.waiters);
        let held = (&self.holder, self.out, &self.shares);
        (held, self.counter, line, &self.value)
    }

    /// All but the value, which stays until it is removed.
    #[track_caller]
    pub(crate) fn assert_every_key_expires(&self) {
        for pttl in &self.pttls[..KEYS] {
            assert!(*pttl == -2 || (0..=COUNTER_TTL).contains(pttl), "{self:?}");
        }
    }
}

fn letters_of(counter: &str) -> &str {
    let behind = counter.trim_start_matches(|c: char| c.is_ascii_digit());
    let letters = behind.split('b').next().expect("one part at least");
    assert!(["", "q", "r", "qr"].contains(&letters), "{counter}");
    letters
}

/// Behind the letters: when the last of these leases would have ended; and for each "until:id".
fn broken_of(counter: &str) -> BTreeMap<String, u64> {
    let Some((_, behind)) = counter.split_once('b') else {
        return BTreeMap::new();
    };
    assert!(behind.ends_with(' '), "{counter}");
    let (last, entries) = behind.split_once(' ').expect("the last end");
    let entries = entries.split_terminator(' ').map(|entry| {
        let (until, id) = entry.split_once(':').expect("an end and an id");
        (id.to_owned(), until.parse().expect("digits"))
    });
    let broken: BTreeMap<_, _> = entries.collect();
    assert_eq!(broken.values().max(), Some(&last.parse().expect("digits")));
    broken
}

/// What the members of the holders say: when each lease ends, and its token.
fn shares_of(members: &BTreeMap<String, i64>) -> (BTreeMap<String, u64>, BTreeMap<String, u64>) {
    let (mut shares, mut tokens) = (BTreeMap::new(), BTreeMap::new());
    for (member, score) in members {
        match member.strip_prefix("0 ") {
            Some(owner) => tokens.insert(owner.to_owned(), score.unsigned_abs()),
            None => shares.insert(member.clone(), score.unsigned_abs()),
        };
    }
    let owners = shares.keys().filter_map(|member| member.split_once(' '));
    let owners = owners.filter(|(_, owner)| !owner.starts_with("kept "));
    let mut owners: Vec<_> = owners.map(|(_, owner)| owner.to_owned()).collect();
    owners.sort_unstable();
    owners.dedup();
    assert!(owners.iter().eq(tokens.keys()), "{members:?}");
    (shares, tokens)
}

/// The number that a counter holds.
pub(crate) fn number_of(counter: &str) -> u64 {
    let digits = counter.split(|c: char| !c.is_ascii_digit()).next();
    digits.expect("its start").parse().expect("digits")
}

fn next<T: FromRedisValue>(answers: &mut impl Iterator<Item = Value>) -> T {
    let answer = answers.next().expect("an answer to each");
    T::from_redis_value(answer).expect("what such a key holds")
}

impl<'a> Ears<'a> {
    pub(crate) fn on(connection: &'a mut Connection, channels: &[&str]) -> Self {
        let mut ears = connection.as_pubsub();
        ears.subscribe(END).expect("subscribe");
        let mut ears = Ears(ears);
        channels.iter().for_each(|channel| ears.open(channel));
        ears
    }

    pub(crate) fn open(&mut self, channel: &str) {
        self.0.subscribe(channel).expect("subscribe");
    }

    /// What was published since, by channel.
    pub(crate) fn heard(&mut self, bench: &mut Bench) -> Vec<(String, String)> {
        bench.query::<()>(&["PUBLISH", END, ""]);
        let mut heard = Vec::new();
        loop {
            let message = self.0.get_message().expect("a message");
            if message.get_channel_name() == END {
                return heard;
            }
            let payload = message.get_payload().expect("text");
            heard.push((message.get_channel_name().to_owned(), payload));
        }
    }
}

/// The token after `stored` of an exclusive holder, by the rules of `lib/token.lua`.
pub(crate) fn next_token(stored: u64, micros: u64) -> u64 {
    let is_next = |token: &u64| {
        if stored % 2 == 1 {
            token % 8 == 3
        } else {
            token % 4 == 1
        }
    };
    (floor(stored).max(micros)..)
        .find(is_next)
        .expect("one of eight")
}

/// Above all that an exclusive holder may have used who didn't release.
fn floor(stored: u64) -> u64 {
    let is_abandoned = stored % 2 == 1 && stored % 8 != 7;
    stored + if is_abandoned { 2 * HAND_OVERS + 1 } else { 1 }
}

/// Longer than what a key has by then: the end of a full ttl.
pub(crate) fn is_full(pttl: i64, full: i64) -> bool {
    (full - 10_000..=full).contains(&pttl)
}
