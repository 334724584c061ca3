//! Which node of a cluster has which slot; and by what a node knows of that, which commands it carries out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use crosslock_world::service::{Done, Host};

use super::channels::Sort;
use super::keyspace::Bytes;
use super::reply::{Outcome, Reply, Words};
use super::state::{Address, From, State};
use super::table::Command;
use crate::redis::address;

const SLOTS: u16 = 16_384;

/// Who has which slot, and who copies whom: what all nodes know in the end.
#[derive(Clone, Default)]
pub(super) struct Map {
    /// Each has a higher one than those before it.
    pub(super) version: u64,
    owners: Vec<u8>,
    /// Masters copy nobody.
    pub(super) follows: Vec<Option<Host>>,
    /// Of each node's claim to its slots.
    epochs: Vec<u64>,
    /// The slots of each node, which CLUSTER is asked for often.
    ranges: Vec<Vec<(u16, u16)>>,
    /// What others hear, if this is a node's mistake: nodes tell each other only of the slots that they have.
    told: Option<Arc<Map>>,
}

impl Map {
    /// Of so many masters, each of which has as many slots, and the replica of each behind them.
    pub(super) fn new(masters: usize) -> Arc<Self> {
        let share = usize::from(SLOTS).div_ceil(masters);
        let owners = (0..usize::from(SLOTS)).map(|slot| u8::try_from(slot / share));
        let follows = (0..2 * masters).map(|host| host.checked_sub(masters));
        let map = Map {
            owners: owners.collect::<Result<_, _>>().expect("a few nodes"),
            follows: follows.collect(),
            epochs: (1..=2 * masters as u64).collect(),
            ..Map::default()
        };
        Arc::new(map.counted())
    }

    /// Another node has these slots from now on, by a claim that is newer than all.
    pub(super) fn give(mut self, slots: impl IntoIterator<Item = u16>, to: Host) -> Self {
        let owner = u8::try_from(to).expect("a few nodes");
        for slot in slots {
            self.owners[usize::from(slot)] = owner;
        }
        self.epochs[to] = self.newest_epoch() + 1;
        self
    }

    /// A replica takes its master's place.
    pub(super) fn replace(mut self, master: Host, replica: Host) -> Self {
        let follows = self.follows.iter_mut();
        let also = follows.filter(|whom| **whom == Some(master));
        also.for_each(|whom| *whom = Some(replica));
        self.follows[replica] = None;
        self.follows[master] = Some(replica);
        let slots = self.slots_of(master);
        self.give(slots, replica)
    }

    /// The same for a node that takes another for the owner of a slot.
    pub(super) fn mistaken(self: &Arc<Self>, slot: u16, owner: Host) -> Arc<Self> {
        let mut map = Map::clone(self);
        map.told = Some(self.clone());
        map.owners[usize::from(slot)] = u8::try_from(owner).expect("a few nodes");
        map.version -= 1;
        Arc::new(map.counted())
    }

    pub(super) fn counted(mut self) -> Self {
        self.version += 1;
        self.ranges = vec![Vec::new(); self.follows.len()];
        for (slot, owner) in (0..).zip(&self.owners) {
            let ranges = &mut self.ranges[usize::from(*owner)];
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == slot => *last = slot,
                _ => ranges.push((slot, slot)),
            }
        }
        self
    }

    /// What others hear of it.
    pub(super) fn told(self: &Arc<Self>) -> Arc<Self> {
        self.told.as_ref().unwrap_or(self).clone()
    }

    fn newest_epoch(&self) -> u64 {
        self.epochs.iter().copied().max().unwrap_or(0)
    }

    pub(super) fn owner(&self, slot: u16) -> Host {
        self.owners[usize::from(slot)].into()
    }

    pub(super) fn has_any(&self, host: Host) -> bool {
        !self.ranges[host].is_empty()
    }

    /// Those that have slots.
    pub(super) fn masters(&self) -> Vec<Host> {
        let hosts = 0..self.ranges.len();
        hosts.filter(|host| self.has_any(*host)).collect()
    }

    pub(super) fn slots_of(&self, host: Host) -> Vec<u16> {
        let ranges = self.ranges[host].iter();
        ranges.flat_map(|(first, last)| *first..=*last).collect()
    }

    /// The slots that another has now.
    pub(super) fn changed<'a>(&'a self, other: &'a Map) -> impl Iterator<Item = u16> + 'a {
        (0..SLOTS).filter(|slot| self.owner(*slot) != other.owner(*slot))
    }
}

/// One node's view.
#[derive(Clone, Default)]
pub(super) struct Slots {
    pub(super) me: Host,
    pub(super) map: Arc<Map>,
    /// Slots that go, and those that come.
    pub(super) migrating: BTreeMap<u16, Host>,
    pub(super) importing: BTreeMap<u16, Host>,
    /// Those that most masters miss.
    pub(super) failed: BTreeSet<Host>,
    pub(super) is_up: bool,
    said: Option<Box<Said>>,
}

/// What a node says when it sees its cluster so. Clients ask again and again, and it seldom changes.
#[derive(Clone)]
struct Said {
    of: Slots,
    info: Reply,
    nodes: Reply,
    slots: Reply,
}

/// The slot of a key: that of what stands between its first braces, if that isn't empty.
pub(super) fn slot_of(key: &[u8]) -> u16 {
    let place = |of: u8, from: usize| key[from..].iter().position(|byte| *byte == of);
    let tag = place(b'{', 0).and_then(|open| {
        let length = place(b'}', open + 1).filter(|length| *length > 0)?;
        Some(&key[open + 1..open + 1 + length])
    });
    crc16(tag.unwrap_or(key)) % SLOTS
}

/// The variant that is called XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| match crc & 0x8000 {
            0 => crc << 1,
            _ => crc << 1 ^ 0x1021,
        })
    })
}

impl Slots {
    pub(super) fn new(me: Host, map: Arc<Map>) -> Self {
        Slots {
            me,
            map,
            is_up: true,
            ..Slots::default()
        }
    }

    pub(super) fn is_master(&self) -> bool {
        self.map.follows[self.me].is_none()
    }

    /// Whether it serves what that host has.
    fn is_of_shard(&self, owner: Host) -> bool {
        owner == self.me || self.map.follows[self.me] == Some(owner)
    }

    fn is_as(&self, other: &Slots) -> bool {
        Arc::ptr_eq(&self.map, &other.map)
            && (self.is_up, &self.failed) == (other.is_up, &other.failed)
            && self.migrating == other.migrating
            && self.importing == other.importing
    }

    fn said(&mut self) -> &Said {
        if self.said.as_ref().is_none_or(|said| !said.of.is_as(self)) {
            self.said = None;
            let hosts = 0..self.map.follows.len();
            let lines: String = hosts.map(|host| self.line(host)).collect();
            self.said = Some(Box::new(Said {
                info: Reply::text(self.info()).made(),
                nodes: Reply::text(lines).made(),
                slots: self.told().made(),
                of: self.clone(),
            }));
        }
        self.said.as_ref().expect("it was made")
    }

    fn line(&self, host: Host) -> String {
        let ((ip, port), follows) = (at(host), self.map.follows[host]);
        let role = follows.map_or("master", |_| "slave");
        let myself = if host == self.me { "myself," } else { "" };
        let has_failed = self.failed.contains(&host);
        let failed = if has_failed { ",fail" } else { "" };
        let master = follows.map_or("-".to_owned(), id);
        let epoch = self.map.epochs[follows.unwrap_or(host)];
        let mut line = format!(
            "{} {ip}:{port}@1{port} {myself}{role}{failed} {master} 0 0 {epoch} connected",
            id(host)
        );
        for (first, last) in &self.map.ranges[host] {
            let _ = write!(line, " {first}-{last}");
        }
        if host == self.me {
            for (slot, to) in &self.migrating {
                let _ = write!(line, " [{slot}->-{}]", id(*to));
            }
            for (slot, from) in &self.importing {
                let _ = write!(line, " [{slot}-<-{}]", id(*from));
            }
        }
        line + "\n"
    }

    fn info(&self) -> String {
        let state = if self.is_up { "ok" } else { "fail" };
        let epoch = self.map.newest_epoch();
        format!("cluster_state:{state}\r\ncluster_current_epoch:{epoch}\r\n")
    }

    /// The ranges of slots, each with its master and that one's replicas.
    fn told(&self) -> Reply {
        let node = |host: Host| {
            let ((ip, port), id) = (at(host), id(host));
            Reply::List(vec![
                Reply::text(ip),
                Reply::Int(port.into()),
                Reply::text(id),
            ])
        };
        let hosts = 0..self.map.follows.len();
        let told = self.map.masters().into_iter().flat_map(|owner| {
            let copies = hosts.clone().filter(|host| {
                self.map.follows[*host] == Some(owner) && !self.failed.contains(host)
            });
            let nodes: Vec<_> = [owner].into_iter().chain(copies).map(node).collect();
            let ranges = self.map.ranges[owner].iter();
            ranges.map(move |(first, last)| {
                let ends = [*first, *last].map(|slot| Reply::Int(slot.into()));
                Reply::List(ends.into_iter().chain(nodes.clone()).collect())
            })
        });
        Reply::List(told.collect())
    }
}

fn at(host: Host) -> Address {
    address(host, 6379)
}

/// 40 digits. The zeros are written out because `format!` adds padding one character at a time, which is slow.
fn id(host: Host) -> String {
    format!("00000000000000000000000000000000000000{host:02x}")
}

fn redirect(how: &str, slot: u16, to: Host) -> Reply {
    let (ip, port) = at(to);
    Reply::error(format!("{how} {slot} {ip}:{port}"))
}

impl State {
    /// Fails if another node has what the command is about, or nobody has.
    pub(super) fn place(&self, command: &Command, words: &Words, from: From) -> Result<(), Reply> {
        let Some(slots) = &self.slots else {
            return Ok(());
        };
        let keys = command.slotted_in(words);
        if keys.is_empty() {
            return Ok(());
        }
        let placed = self.place_keys(slots, command, &keys);
        placed.map_err(|error| match from {
            From::Client => error,
            From::Script => Reply::error("ERR Script attempted to access a non local key"),
        })
    }

    fn place_keys(&self, slots: &Slots, command: &Command, keys: &[&Bytes]) -> Result<(), Reply> {
        let slot = slot_of(keys[0]);
        let refused = |text: &'static str| Err(Reply::error(text));
        if keys.iter().any(|key| slot_of(key) != slot) {
            return refused("CROSSSLOT Keys in request don't hash to the same slot");
        }
        if !slots.is_up {
            return refused("CLUSTERDOWN The cluster is down");
        }
        let again = "TRYAGAIN Multiple keys request during rehashing of slot";
        let missing = keys.iter().filter(|key| self.keys.get(key).is_none());
        let missing = match command.is_sharded() {
            true => 0,
            false => missing.count(),
        };
        if let Some(to) = slots.migrating.get(&slot).filter(|_| missing > 0) {
            return match missing == keys.len() {
                true => Err(redirect("ASK", slot, *to)),
                false => refused(again),
            };
        }
        if slots.importing.contains_key(&slot) && self.asks {
            let are_several = keys.iter().any(|key| *key != keys[0]);
            return match are_several && missing > 0 {
                true => refused(again),
                false => Ok(()),
            };
        }
        let owner = slots.map.owner(slot);
        let is_here = command.is_sharded() && slots.is_of_shard(owner);
        match owner == slots.me || is_here {
            true => Ok(()),
            false => Err(redirect("MOVED", slot, owner)),
        }
    }

    /// A node knows another map: it drops what it has lost, and tells those that hear on channels of such slots.
    pub(super) fn take_map(&mut self, map: Arc<Map>) {
        let Some(slots) = self.slots.as_mut() else {
            return;
        };
        let changed: BTreeSet<_> = map.changed(&slots.map).collect();
        let has_left = |slot: &u16| slots.is_of_shard(slots.map.owner(*slot));
        let left: BTreeSet<_> = changed.into_iter().filter(has_left).collect();
        let (me, stays) = (slots.me, map.follows[slots.me].is_none());
        slots.map = map;
        let map = &slots.map;
        slots.migrating.retain(|slot, _| map.owner(*slot) == me);
        slots
            .importing
            .retain(|slot, _| stays && map.owner(*slot) != me);
        let left: BTreeSet<_> = left
            .into_iter()
            .filter(|slot| !slots.is_of_shard(map.owner(*slot)))
            .collect();
        if left.is_empty() {
            return;
        }
        if stays {
            self.keys.drop_slots(&left);
        }
        for (channel, client) in self.channels.sharded() {
            if left.contains(&slot_of(&channel)) {
                let told = self.channels.change(client, Sort::Sharded, &channel, false);
                self.done.push(Done::Send(client, told.bytes()));
            }
        }
    }
}

/// CLUSTER.
pub(super) fn ask(state: &mut State, words: &Words) -> Outcome {
    let refused = || Reply::error("ERR This instance has cluster support disabled");
    let said = state.slots.as_mut().ok_or_else(refused)?.said();
    match words[1].as_slice() {
        b"INFO" => Ok(said.info.clone()),
        b"SLOTS" => Ok(said.slots.clone()),
        b"NODES" => Ok(said.nodes.clone()),
        _ => Err(Reply::error("ERR unknown subcommand")),
    }
}
