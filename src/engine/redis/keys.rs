//! Where the server keeps what belongs to a name: its keys, their slot in a cluster, and the channels of its namespace.
//!
//! | server | the channel of an inbox | where inboxes hear of broken leases |
//! |---|---|---|
//! | in no cluster | `ns:inbox:<id>` | `ns:inbox:broken` |
//! | in a cluster, for each slot | `ns:inbox:<id>:{tag}` | `ns:inbox:broken:{tag}` |
//!
//! Whoever waits until a value changes hears on a channel that is called as the value's key, in a cluster on a sharded
//! one.
//!
//! A namespace has neither a colon nor a brace, and the id of an inbox is a UUID. Scripts take a channel with a brace
//! for a sharded one.
//!
//! It uses `base`. What always holds here: all keys of a name are on one slot, no two names share a key, and nodes
//! count slots in the same way, as the cluster specification has it.

use std::sync::OnceLock;

use super::settings::Kind;
use crate::base::{Key, Mode, Shard, fork::get_or_make};

/// The keys of a name, all on one cluster slot.
#[derive(Debug, PartialEq)]
pub(super) struct Keys {
    pub(super) lock: String,
    /// The names of the others, one behind the other: memory is asked for once.
    others: String,
    tag: usize,
    endings: &'static [&'static str; 6],
}

/// What the others end in, in the order in which the scripts have them.
const OTHERS: [&str; 6] = [
    ":fence",
    ":queue",
    ":waiters",
    ":read_queue",
    ":holders",
    ":value",
];

/// What the keys of a delay queue end in, behind that of its tasks.
const OF_TASKS: [&str; 6] = [
    ":due",
    ":ends",
    ":workers",
    ":line",
    ":waiting",
    ":finished",
];

/// The same of a shard, so that those of a queue of another name are others.
const OF_SHARD: [&str; 6] = [
    ":shard:due",
    ":shard:ends",
    ":shard:workers",
    ":shard:line",
    ":shard:waiting",
    ":shard:finished",
];

/// Where the queue, the first of the keys of waiters, stands among the keys, and where the holders do, behind them.
pub(super) const QUEUE: usize = 2;
pub(super) const HOLDERS: usize = 5;

/// The value is the last of the keys.
pub(super) const VALUE: usize = OTHERS.len();

impl Keys {
    pub(super) fn of(key: &Key) -> Self {
        let (namespace, name) = (key.namespace(), key.name());
        let tag = Keys::tag_of(key);
        // Without a namespace the lock is where other programs have it.
        let lock = if namespace.is_empty() && key.shard.is_none() {
            name.to_owned()
        } else {
            tag.clone()
        };
        Keys::beside(lock, &tag, &OTHERS)
    }

    /// Those of the delay queue of that name, or of its shard. The first is that of its tasks.
    pub(super) fn of_tasks(key: &Key) -> Self {
        let tag = Keys::tag_of(key);
        let (first, others) = match key.shard {
            None => (":tasks", &OF_TASKS),
            Some(_) => (":shard:tasks", &OF_SHARD),
        };
        Keys::beside([&*tag, first].concat(), &tag, others)
    }

    /// What a claim is about.
    pub(super) fn of_mode(mode: Mode) -> fn(&Key) -> Self {
        match mode {
            Mode::Task => Keys::of_tasks,
            _ => Keys::of,
        }
    }

    /// What decides on the slot, in braces.
    fn tag_of(key: &Key) -> String {
        let (namespace, name) = (key.namespace(), key.name());
        let of_shard = key
            .shard
            .map(|Shard { at, of }| format!("{name}/{at}/{of}"));
        let name = of_shard.as_deref().unwrap_or(name);
        if !namespace.is_empty() {
            return ["{", namespace, ":", name, "}"].concat();
        }
        if !has_hash_tag(name) {
            ["{", name, "}"].concat()
        } else if name.starts_with('{') && name.ends_with('}') {
            // Those of `{x}` are not those of `x`.
            [name, ":"].concat()
        } else {
            name.to_owned()
        }
    }

    fn beside(lock: String, tag: &str, endings: &'static [&'static str; 6]) -> Self {
        let length: usize = endings.iter().map(|ending| tag.len() + ending.len()).sum();
        let mut others = String::with_capacity(length);
        for ending in endings {
            others.push_str(tag);
            others.push_str(ending);
        }
        Keys {
            tag: tag.len(),
            others,
            lock,
            endings,
        }
    }

    pub(super) fn all(&self) -> [&str; VALUE + 1] {
        let mut keys = [self.lock.as_str(); VALUE + 1];
        let mut rest = self.others.as_str();
        for (key, ending) in keys[1..].iter_mut().zip(self.endings) {
            (*key, rest) = rest.split_at(self.tag + ending.len());
        }
        keys
    }
}

/// Whether a cluster hashes only the part of `key` between its first braces.
fn has_hash_tag(key: &str) -> bool {
    let Some((_, behind)) = key.split_once('{') else {
        return false;
    };
    behind.find('}').is_some_and(|length| length > 0)
}

/// What puts the channels for a name into its slot; `None` where there are no slots.
pub(super) fn tag(kind: Kind, key: &Key) -> Option<&'static str> {
    let has_slots = kind == Kind::Cluster;
    has_slots.then(|| tag_of(slot_of(&Keys::of(key).lock)))
}

/// The channel of one inbox.
pub(super) fn channel(namespace: &str, inbox: &str, tag: Option<&str>) -> String {
    match tag {
        Some(tag) => [namespace, INBOX, inbox, ":{", tag, "}"].concat(),
        None => [namespace, INBOX, inbox].concat(),
    }
}

/// The channel on which inboxes of a namespace hear whose leases were broken.
pub(super) fn broken_channel(namespace: &str, tag: Option<&str>) -> String {
    channel(namespace, BROKEN, tag)
}

/// The same, given the channel of an inbox.
pub(super) fn broken_channel_beside(channel: &str) -> String {
    let (namespace, inbox) = channel.split_once(INBOX).unwrap_or((channel, ""));
    let slot = inbox.find(':').and_then(|at| inbox.get(at..));
    [namespace, INBOX, BROKEN, slot.unwrap_or_default()].concat()
}

/// Whether inboxes hear of broken leases on it.
pub(super) fn is_of_broken(channel: &str) -> bool {
    let inbox = channel.split_once(INBOX).map(|(_, inbox)| inbox);
    inbox.and_then(|inbox| inbox.split(':').next()) == Some(BROKEN)
}

/// Whether it is heard on when a value changes: the channels of inboxes end in a uuid, a brace, or `broken`.
pub(super) fn is_of_value(channel: &str) -> bool {
    channel.ends_with(OTHERS[VALUE - 1])
}

const INBOX: &str = ":inbox:";
const BROKEN: &str = "broken";

/// How many slots a cluster has.
pub(super) const SLOTS: u16 = 16384;

/// The slot of a key: that of its hash tag, if it has one.
pub(super) fn slot_of(key: &str) -> u16 {
    slot(hashed(key).as_bytes())
}

/// A text of three letters or digits whose slot is this one: between braces it puts any key there.
pub(super) fn tag_of(slot: u16) -> &'static str {
    static TAGS: OnceLock<String> = OnceLock::new();
    let start = LENGTH * usize::from(slot % SLOTS);
    let tags = get_or_make(&TAGS, tags);
    tags.get(start..start + LENGTH).unwrap_or_default()
}

/// The part of a key that decides on its slot: what stands between its first braces, if that isn't empty.
fn hashed(key: &str) -> &str {
    let behind = key.split_once('{').map(|(_, behind)| behind);
    match behind.and_then(|behind| behind.split_once('}')) {
        Some((tag, _)) if !tag.is_empty() => tag,
        _ => key,
    }
}

fn slot(hashed: &[u8]) -> u16 {
    crc16(hashed) % SLOTS
}

/// The variant that is called XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    let step = |crc: u16, byte: &u8| {
        let [high, _] = crc.to_be_bytes();
        (crc << 8) ^ REMAINDERS[usize::from(high ^ byte)]
    };
    bytes.iter().fold(0, step)
}

/// What each byte adds.
static REMAINDERS: [u16; 256] = remainders();

const fn remainders() -> [u16; 256] {
    const POLYNOMIAL: u16 = 0x1021;
    let mut remainders = [0; 256];
    let mut byte: u16 = 0;
    while byte < 256 {
        let mut crc = byte << 8;
        let mut bit = 0;
        while bit < 8 {
            let is_high = crc & 0x8000 != 0;
            crc <<= 1;
            if is_high {
                crc ^= POLYNOMIAL;
            }
            bit += 1;
        }
        remainders[byte as usize] = crc;
        byte += 1;
    }
    remainders
}

/// Of a tag.
const LENGTH: usize = 3;

/// The first tag of each slot, one behind the other. Some of the texts of this length are in each slot: a test looks.
fn tags() -> String {
    const LETTERS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let mut tags = vec![b'0'; LENGTH * usize::from(SLOTS)];
    let mut found = vec![false; usize::from(SLOTS)];
    for first in LETTERS {
        for second in LETTERS {
            for third in LETTERS {
                let tag = [*first, *second, *third];
                let slot = usize::from(slot(&tag));
                if !found[slot] {
                    found[slot] = true;
                    tags[LENGTH * slot..][..LENGTH].copy_from_slice(&tag);
                }
            }
        }
    }
    String::from_utf8(tags).unwrap_or_default()
}

#[cfg(test)]
mod tests;
