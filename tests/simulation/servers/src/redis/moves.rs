//! Slots that move from one master to another, key by key, as `redis-cli --cluster reshard` has them move.

use std::time::Duration;

use crosslock_world::service::{Host, Io};

use super::gossip::{Gossip, slots_of};
use super::group::Group;
use super::slots::slot_of;

/// A slot on its way.
pub(super) struct Move {
    slot: u16,
    from: Host,
    to: Host,
    step: Step,
    pub(super) due: Duration,
}

/// In their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Import,
    Migrate,
    Keys,
    TellNew,
    TellOld,
    Done,
}

/// How long a step takes, in microseconds.
const STEP: std::ops::Range<u64> = 500..8_000;
/// And one of ten, in which something stands still.
const LONG: std::ops::Range<u64> = 50_000..500_000;
/// When a node isn't there that it needs.
const AGAIN: Duration = Duration::from_millis(100);

impl Move {
    /// A slot that has keys, if any has, goes to another master; `None` if there is none.
    pub(super) fn any(group: &mut Group, io: &mut Io<'_>) -> Option<Self> {
        let masters: Vec<_> = (0..group.nodes.len())
            .filter(|host| can_take(group, *host))
            .collect();
        if masters.len() < 2 {
            return None;
        }
        let has_keys = |host: &Host| group.nodes[*host].state.keys.iter().next().is_some();
        let full: Vec<_> = masters.iter().copied().filter(has_keys).collect();
        let some = if full.is_empty() { &masters } else { &full };
        let from = some[io.random.usize(..some.len())];
        let others: Vec<_> = masters.into_iter().filter(|host| *host != from).collect();
        let to = others[io.random.usize(..others.len())];
        let known = slots_of(group, from);
        let (map, busy) = (known.map.clone(), known.migrating.clone());
        let keys = group.nodes[from].state.keys.iter();
        let mut slots: Vec<_> = keys.map(|(key, _)| slot_of(key)).collect();
        slots.dedup();
        slots.retain(|slot| map.owner(*slot) == from && !busy.contains_key(slot));
        if slots.is_empty() {
            slots = map.slots_of(from);
        }
        let slot = *slots.get(io.random.usize(..slots.len().max(1)))?;
        io.log(format!("slot {slot} moves from {from} to {to}"));
        Some(Move {
            slot,
            from,
            to,
            step: Step::Import,
            due: io.now,
        })
    }

    /// Does what is due. Says whether it goes on.
    pub(super) fn go_on(
        &mut self,
        group: &mut Group,
        gossip: &mut Gossip,
        io: &mut Io<'_>,
    ) -> bool {
        if self.due > io.now {
            return true;
        }
        // Who has taken the place of either goes on with what it knows, and is told the rest.
        let heir = |host: Host| gossip.newest.follows[host].unwrap_or(host);
        (self.from, self.to) = (heir(self.from), heir(self.to));
        if !self.has_both(group) {
            self.due = io.now + AGAIN;
            return true;
        }
        if self.step == Step::Keys && !group.copies_are_in_step(self.to, io.now) {
            self.due = io.now + AGAIN;
            return true;
        }
        let range = if io.random.u8(..10) == 0 { LONG } else { STEP };
        self.due = io.now + Duration::from_micros(io.random.u64(range));
        self.step = self.carry_out(group, gossip);
        self.step != Step::Done
    }

    /// Whether both nodes can be told something.
    pub(super) fn has_both(&self, group: &mut Group) -> bool {
        can_take(group, self.from) && can_take(group, self.to)
    }

    fn carry_out(&mut self, group: &mut Group, gossip: &mut Gossip) -> Step {
        let Move { slot, from, to, .. } = *self;
        if self.step < Step::TellOld {
            // Another may have taken the place of either since.
            if gossip.newest.owner(slot) != from {
                slots_of(group, to).importing.remove(&slot);
                return Step::Done;
            }
            slots_of(group, to).importing.insert(slot, from);
            if self.step > Step::Import {
                slots_of(group, from).migrating.insert(slot, to);
            }
        }
        match self.step {
            Step::Import => Step::Migrate,
            Step::Migrate => Step::Keys,
            Step::Keys if self.move_key(group) => Step::Keys,
            Step::Keys => Step::TellNew,
            Step::TellNew => {
                gossip.change(group, to, |map| map.give([slot], to));
                Step::TellOld
            }
            Step::TellOld => {
                gossip.tell(group, from);
                Step::Done
            }
            Step::Done => Step::Done,
        }
    }

    /// Moves a key, if there is one still. The replicas of its new node have it at once: no client waits for them, so
    /// it would be lost if that node died just then.
    fn move_key(&self, group: &mut Group) -> bool {
        let keys = &mut group.nodes[self.from].state.keys;
        let found = keys.iter().find(|(key, _)| slot_of(key) == self.slot);
        let Some((key, entry)) = found.map(|(key, entry)| (key.clone(), entry.clone())) else {
            return false;
        };
        keys.remove(&key);
        keys.written(&key);
        let keys = &mut group.nodes[self.to].state.keys;
        keys.put(&key, Some(entry));
        keys.written(&key);
        group.nodes[self.from].commit();
        group.nodes[self.to].commit();
        group.copy_at_once(self.to);
        true
    }
}

/// Whether it is a master that can be told something.
fn can_take(group: &mut Group, host: Host) -> bool {
    let is_reached = group.is_there(host);
    let slots = slots_of(group, host);
    is_reached && slots.is_master() && slots.is_up
}
