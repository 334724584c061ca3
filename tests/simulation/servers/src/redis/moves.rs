//! Slots that move from one master to another, key by key, as `redis-cli --cluster reshard` has them move.

use std::time::Duration;

use crosslock_world::service::{Host, Io};

use super::gossip::{Gossip, slots_of};
use super::group::Group;
use super::slots::{SLOTS, slot_of};

/// A slot on its way.
#[derive(Debug)]
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
        let from = masters[io.random.usize(..masters.len())];
        let others: Vec<_> = masters.into_iter().filter(|host| *host != from).collect();
        let to = others[io.random.usize(..others.len())];
        let slots = group.nodes[from]
            .state
            .keys
            .iter()
            .map(|(key, _)| slot_of(key));
        let mut slots: Vec<_> = slots.collect();
        slots.dedup();
        if slots.is_empty() {
            slots = (0..SLOTS).collect();
        }
        let known = slots_of(group, from);
        slots
            .retain(|slot| known.owner(*slot) == Some(from) && !known.migrating.contains_key(slot));
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
        (self.from, self.to) = (gossip.heir(self.from), gossip.heir(self.to));
        if !can_take(group, self.from) || !can_take(group, self.to) {
            self.due = io.now + AGAIN;
            return true;
        }
        let range = if io.random.u8(..10) == 0 { LONG } else { STEP };
        self.due = io.now + Duration::from_micros(io.random.u64(range));
        self.step = self.carry_out(group);
        if self.step == Step::Done {
            gossip.hear_anew(self.from);
            gossip.hear_anew(self.to);
        }
        self.step != Step::Done
    }

    fn carry_out(&mut self, group: &mut Group) -> Step {
        let Move { slot, from, to, .. } = *self;
        if self.step < Step::TellNew && slots_of(group, from).owner(slot) != Some(from) {
            slots_of(group, to).importing.remove(&slot);
            return Step::Done;
        }
        if self.step > Step::Import && self.step < Step::TellNew {
            slots_of(group, to).importing.insert(slot, from);
        }
        if self.step > Step::Migrate && self.step < Step::TellNew {
            slots_of(group, from).migrating.insert(slot, to);
        }
        match self.step {
            Step::Import => {
                slots_of(group, to).importing.insert(slot, from);
                Step::Migrate
            }
            Step::Migrate => {
                slots_of(group, from).migrating.insert(slot, to);
                Step::Keys
            }
            Step::Keys if self.move_key(group) => Step::Keys,
            Step::Keys => Step::TellNew,
            Step::TellNew => {
                let slots = slots_of(group, to);
                slots.importing.remove(&slot);
                slots.claim_anew();
                group.nodes[to].state.set_owner(slot, to);
                Step::TellOld
            }
            // It has lost it again, to the one that has taken the place of the old one.
            Step::TellOld if slots_of(group, to).owner(slot) != Some(to) => Step::Import,
            Step::TellOld => {
                slots_of(group, from).migrating.remove(&slot);
                group.nodes[from].state.set_owner(slot, to);
                Step::Done
            }
            Step::Done => Step::Done,
        }
    }

    /// Moves a key, if there is one still.
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
        true
    }
}

/// Whether it is a master that can be told something.
fn can_take(group: &mut Group, host: Host) -> bool {
    let is_reached = group.is_at_work(host) && !group.is_cut(host);
    let slots = slots_of(group, host);
    is_reached && slots.is_master() && slots.is_up
}
