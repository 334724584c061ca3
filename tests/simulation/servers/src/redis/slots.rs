//! What a node of a cluster knows: who has which slot; and by that, which commands it carries out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crosslock_world::service::{Connection, Host};

use super::keyspace::Bytes;
use super::reply::{Outcome, Reply, Words};
use super::state::{From, State, unknown_subcommand};
use super::table::Command;

pub(super) const SLOTS: u16 = 16_384;

/// One node's view.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    pub(super) me: Host,
    /// Host, port and id of each.
    peers: Vec<(String, u16, String)>,
    /// Of each slot.
    pub(super) owners: Vec<Option<u8>>,
    /// Whom each copies; masters copy nobody.
    pub(super) follows: Vec<Option<Host>>,
    /// Of each master's claim to its slots.
    pub(super) epochs: Vec<u64>,
    pub(super) current: u64,
    pub(super) migrating: BTreeMap<u16, Host>,
    pub(super) importing: BTreeMap<u16, Host>,
    /// Slots that their owners don't claim any more, as far as it knows.
    pub(super) unclaimed: BTreeSet<u16>,
    /// Those that most masters miss.
    pub(super) failed: BTreeSet<Host>,
    pub(super) is_up: bool,
    /// Counts what it changes in its own claims.
    pub(super) version: u64,
}

/// The slot of a key: that of what stands between its first braces, if that isn't empty.
pub(super) fn slot_of(key: &[u8]) -> u16 {
    let behind = key
        .iter()
        .position(|byte| *byte == b'{')
        .map(|at| &key[at + 1..]);
    let tag = behind.and_then(|behind| {
        let end = behind.iter().position(|byte| *byte == b'}')?;
        Some(&behind[..end]).filter(|tag| !tag.is_empty())
    });
    crc16(tag.unwrap_or(key)) % SLOTS
}

/// The variant that is called XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| {
            let shifted = crc << 1;
            if crc & 0x8000 == 0 {
                shifted
            } else {
                shifted ^ 0x1021
            }
        })
    })
}

impl Slots {
    /// A cluster of so many masters, each of which has as many slots, and the replica of each behind them.
    pub(super) fn new(me: Host, masters: usize, peers: Vec<(String, u16, String)>) -> Self {
        let share = usize::from(SLOTS).div_ceil(masters);
        let owner = |slot: usize| u8::try_from(slot / share).ok();
        let follows = (0..peers.len()).map(|host| host.checked_sub(masters));
        let epochs = (0..peers.len()).map(|host| if host < masters { host as u64 + 1 } else { 0 });
        Slots {
            me,
            owners: (0..usize::from(SLOTS)).map(owner).collect(),
            follows: follows.collect(),
            epochs: epochs.collect(),
            current: masters as u64,
            migrating: BTreeMap::new(),
            importing: BTreeMap::new(),
            unclaimed: BTreeSet::new(),
            failed: BTreeSet::new(),
            is_up: true,
            version: 1,
            peers,
        }
    }

    pub(super) fn owner(&self, slot: u16) -> Option<Host> {
        self.owners[usize::from(slot)].map(Host::from)
    }

    /// The masters that have slots.
    pub(super) fn masters(&self) -> BTreeSet<Host> {
        self.owners
            .iter()
            .flatten()
            .map(|owner| Host::from(*owner))
            .collect()
    }

    pub(super) fn is_master(&self) -> bool {
        self.follows[self.me].is_none()
    }

    /// Whether it has slots itself, as far as it knows.
    pub(super) fn has_any(&self) -> bool {
        let me = u8::try_from(self.me).ok();
        self.owners.contains(&me)
    }

    /// Whether it serves what that host has.
    fn is_of_shard(&self, owner: Host) -> bool {
        owner == self.me || self.follows[self.me] == Some(owner)
    }

    fn ranges(&self, owner: Host) -> Vec<(u16, u16)> {
        let mut ranges: Vec<(u16, u16)> = Vec::new();
        for slot in (0..SLOTS).filter(|slot| self.owner(*slot) == Some(owner)) {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == slot => *last = slot,
                _ => ranges.push((slot, slot)),
            }
        }
        ranges
    }

    fn node_line(&self, host: Host) -> String {
        let (ip, port, id) = &self.peers[host];
        let role = if self.follows[host].is_some() {
            "slave"
        } else {
            "master"
        };
        let myself = if host == self.me { "myself," } else { "" };
        let failed = if self.failed.contains(&host) {
            ",fail"
        } else {
            ""
        };
        let master = self.follows[host].map_or("-", |master| &self.peers[master].2);
        let epoch = self.epochs[self.follows[host].unwrap_or(host)];
        let bus = u32::from(*port) + 10_000;
        let mut line =
            format!("{id} {ip}:{port}@{bus} {myself}{role}{failed} {master} 0 0 {epoch} connected");
        for (first, last) in self.ranges(host) {
            let _ = match first == last {
                true => write!(line, " {first}"),
                false => write!(line, " {first}-{last}"),
            };
        }
        let open = (host == self.me).then(|| {
            let goes = self.migrating.iter().map(|(slot, to)| (slot, "->-", to));
            goes.chain(
                self.importing
                    .iter()
                    .map(|(slot, from)| (slot, "-<-", from)),
            )
        });
        for (slot, arrow, other) in open.into_iter().flatten() {
            let _ = write!(line, " [{slot}{arrow}{}]", self.peers[*other].2);
        }
        line + "\n"
    }

    fn info(&self) -> String {
        let state = if self.is_up { "ok" } else { "fail" };
        let assigned = self.owners.iter().flatten().count();
        let lost = self
            .owners
            .iter()
            .flatten()
            .filter(|owner| self.failed.contains(&Host::from(**owner)));
        let (lost, size) = (lost.count(), self.masters().len());
        let (ok, known, current) = (assigned - lost, self.peers.len(), self.current);
        let own = self.epochs[self.follows[self.me].unwrap_or(self.me)];
        format!(
            "cluster_state:{state}\r\ncluster_slots_assigned:{assigned}\r\ncluster_slots_ok:{ok}\r\n\
             cluster_slots_pfail:0\r\ncluster_slots_fail:{lost}\r\ncluster_known_nodes:{known}\r\n\
             cluster_size:{size}\r\ncluster_current_epoch:{current}\r\ncluster_my_epoch:{own}\r\n"
        )
    }

    fn node(&self, host: Host) -> Reply {
        let (ip, port, id) = &self.peers[host];
        let (ip, id) = (Reply::text(ip.clone()), Reply::text(id.clone()));
        Reply::List(vec![
            ip,
            Reply::Int(i64::from(*port)),
            id,
            Reply::List(Vec::new()),
        ])
    }

    fn told_slots(&self) -> Reply {
        let ranges = self.masters().into_iter().flat_map(|owner| {
            let ranges = self.ranges(owner).into_iter();
            ranges.map(move |(first, last)| (first, last, owner))
        });
        let told = ranges.map(|(first, last, owner)| {
            let ends = [first, last].map(|slot| Reply::Int(i64::from(slot)));
            let copies = (0..self.peers.len())
                .filter(|host| self.follows[*host] == Some(owner) && !self.failed.contains(host));
            let nodes = [owner]
                .into_iter()
                .chain(copies)
                .map(|host| self.node(host));
            Reply::List(ends.into_iter().chain(nodes).collect())
        });
        Reply::List(told.collect())
    }

    fn redirect(&self, how: &str, slot: u16, to: Host) -> Reply {
        let (host, port, _) = &self.peers[to];
        Reply::error(format!("{how} {slot} {host}:{port}"))
    }
}

/// How a client may be served besides as any other.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Favour {
    /// Of a slot that comes.
    pub(super) asks: bool,
    /// By a copy.
    pub(super) reads: bool,
}

impl State {
    /// Fails if another node has what the command is about, or nobody has.
    pub(super) fn place(&self, command: &Command, words: &Words, from: From) -> Result<(), Reply> {
        let Some(slots) = &self.slots else {
            return Ok(());
        };
        let keys = command.slotted_in(words);
        let placed = match keys.first() {
            Some(first) => self.place_keys(slots, command, &keys, slot_of(first)),
            None => Ok(()),
        };
        let error = "ERR Script attempted to access a non local key in a cluster node";
        placed.map_err(|e| {
            if from == From::Script {
                Reply::error(error)
            } else {
                e
            }
        })
    }

    fn place_keys(
        &self,
        slots: &Slots,
        command: &Command,
        keys: &[&Bytes],
        slot: u16,
    ) -> Result<(), Reply> {
        let again = "TRYAGAIN Multiple keys request during rehashing of slot";
        if keys.iter().any(|key| slot_of(key) != slot) {
            let error = "CROSSSLOT Keys in request don't hash to the same slot";
            return Err(Reply::error(error));
        }
        let Some(owner) = slots.owner(slot) else {
            return Err(Reply::error("CLUSTERDOWN Hash slot not served"));
        };
        if !slots.is_up {
            return Err(Reply::error("CLUSTERDOWN The cluster is down"));
        }
        let missing = keys
            .iter()
            .filter(|key| self.keys.get(key).is_none())
            .count();
        let is_of_keys = !command.is_sharded();
        if let Some(to) = slots
            .migrating
            .get(&slot)
            .filter(|_| is_of_keys && missing > 0)
        {
            return Err(match missing == keys.len() {
                true => slots.redirect("ASK", slot, *to),
                false => Reply::error(again),
            });
        }
        if slots.importing.contains_key(&slot) && self.favour.asks {
            let are_several = keys.iter().any(|key| *key != keys[0]);
            return match is_of_keys && are_several && missing > 0 {
                true => Err(Reply::error(again)),
                false => Ok(()),
            };
        }
        let may_read = self.favour.reads && !command.writes || command.is_sharded();
        if owner == slots.me || may_read && slots.is_of_shard(owner) {
            return Ok(());
        }
        Err(slots.redirect("MOVED", slot, owner))
    }

    /// Another node has the slot from now on, as far as this one knows.
    pub(super) fn set_owner(&mut self, slot: u16, owner: Host) {
        let Some(slots) = self.slots.as_mut() else {
            return;
        };
        let before = slots.owner(slot);
        slots.owners[usize::from(slot)] = u8::try_from(owner).ok();
        slots.unclaimed.remove(&slot);
        slots.version += 1;
        if before.is_some_and(|before| before != owner && slots.is_of_shard(before)) {
            self.end_channels(slot);
        }
    }

    /// Those that hear on channels of a slot that has left are told so.
    fn end_channels(&mut self, slot: u16) {
        use super::channels::{Sort, told};
        let all = self.channels.all(Sort::Sharded).into_iter();
        for channel in all.filter(|channel| slot_of(channel) == slot) {
            for client in self.channels.hear(Sort::Sharded, &channel) {
                let left = self.channels.unsubscribe(client, Sort::Sharded, &channel);
                let told = told("unsubscribe", Sort::Sharded, Some(&channel), left);
                self.tell(client, &told);
            }
        }
    }

    fn tell(&mut self, client: Connection, reply: &Reply) {
        let mut bytes = Vec::new();
        reply.write(&mut bytes);
        self.done
            .push(crosslock_world::service::Done::Send(client, bytes));
    }
}

/// CLUSTER.
pub(super) fn ask(state: &mut State, words: &Words) -> Outcome {
    let Some(slots) = &state.slots else {
        return Err(Reply::error(
            "ERR This instance has cluster support disabled",
        ));
    };
    match (words[1].to_ascii_uppercase().as_slice(), &words[2..]) {
        (b"INFO", []) => Ok(Reply::text(slots.info())),
        (b"SLOTS", []) => Ok(slots.told_slots()),
        (b"MYID", []) => Ok(Reply::text(slots.peers[slots.me].2.clone())),
        (b"NODES", []) => {
            let lines = (0..slots.peers.len()).map(|host| slots.node_line(host));
            Ok(Reply::text(lines.collect::<String>()))
        }
        (b"KEYSLOT", [key]) => Ok(Reply::Int(i64::from(slot_of(key)))),
        _ => Err(unknown_subcommand(words)),
    }
}
