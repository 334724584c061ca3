//! What operators see of names.

use super::entry::{Entry, EntryState};
use super::name::NameState;
use super::table::Table;
use crate::base::claim::Mode;
use crate::base::clock::BootInstant;
use crate::base::inspection::{Holder, Inspection, LockState, Party, Waiter};
use crate::base::name::{Key, Namespace};
use crate::engine::line::used;

impl NameState {
    fn lock_state(&self, now: BootInstant) -> LockState {
        let there: Vec<_> = self.there(now).collect();
        let modes: Vec<_> = there.iter().map(|one| one.mode).collect();
        match modes.first() {
            None => LockState::Free,
            Some(Mode::Permits { .. }) => LockState::Permits {
                taken: used(&modes).try_into().unwrap_or(u32::MAX),
                of: modes.iter().filter_map(|mode| mode.of_permits()).max(),
            },
            _ if there.iter().all(|one| one.state == EntryState::Kept) => {
                let ends = there.iter().map(|one| one.until);
                let remaining = ends.max().map(|end| end.since(now));
                LockState::Kept { remaining }
            }
            Some(Mode::Shared) => LockState::Shared,
            Some(Mode::Exclusive) => LockState::Exclusive,
        }
    }

    /// Who waits, in the order in which they are let in if all holders release.
    fn seen_waiters(&self, now: BootInstant) -> Vec<Waiter> {
        let (readers, others): (Vec<_>, Vec<_>) =
            self.waiters().partition(|one| one.mode == Mode::Shared);
        let (mut readers, mut others) = (readers.into_iter(), others.into_iter().peekable());
        let mut after_exclusive = self.is_exclusive();
        let mut seen = Vec::new();
        loop {
            // As `next` chooses, in one pass: others wait for whoever looks, and there may be very many waiters.
            let others_first = others
                .peek()
                .is_some_and(|one| !after_exclusive || one.goes_first());
            if !others_first {
                seen.extend(readers.by_ref());
            }
            let Some(waiter) = others.next() else { break };
            after_exclusive = waiter.mode == Mode::Exclusive;
            seen.push(waiter);
        }
        seen.extend(readers);
        let seen = seen.into_iter().filter_map(|one| one.seen_waiter(now));
        seen.collect()
    }
}

impl Entry {
    /// As others see it; `None` when nobody has it.
    pub(super) fn seen(&self, now: BootInstant) -> Option<Holder> {
        Some(Holder {
            party: Party::of(self.owner.as_ref()?.holder()),
            permits: self.mode.permits(),
            held_for: Some(now.since(self.since)),
            remaining: (self.until != BootInstant::MAX).then(|| self.until.since(now)),
            token: self.token().map(|token| token.number),
        })
    }

    fn seen_waiter(&self, now: BootInstant) -> Option<Waiter> {
        Some(Waiter {
            party: Party::of(self.owner.as_ref()?.holder()),
            wants: self.mode.wants(),
            waited_for: Some(now.since(self.since)),
        })
    }
}

impl Table {
    pub(crate) fn inspect(&self, key: &Key, now: BootInstant) -> Inspection {
        let free = NameState::default();
        let state = self.get(key).unwrap_or(&free);
        let tokens = state.holders().filter_map(Entry::token);
        let held = tokens.map(|token| token.number).max();
        let last_used = Some(self.step.last_used).filter(|last| *last > 0);
        Inspection {
            name: key.name().to_owned(),
            state: state.lock_state(now),
            holders: state.there(now).filter_map(|one| one.seen(now)).collect(),
            waiters: state.seen_waiters(now),
            // The counter is that of all names: while nobody holds this one, its own last token isn't known better.
            last_token: held.or(last_used),
        }
    }

    /// The names of a namespace that are taken and begin with `prefix`.
    pub(crate) fn list(
        &self,
        namespace: &Namespace,
        prefix: &str,
        now: BootInstant,
    ) -> Vec<String> {
        let is_one =
            |key: &&Key| key.namespace() == namespace.as_str() && key.name().starts_with(prefix);
        let is_taken = |state: &NameState| state.there(now).next().is_some();
        let taken = self.names.iter().filter(|(_, state)| is_taken(state));
        let names = taken.map(|(key, _)| key).filter(is_one);
        names.map(|key| key.name().to_owned()).collect()
    }
}
