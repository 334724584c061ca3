//! What operators see of names.

use super::entry::{Entry, EntryState, Step};
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
        let (mut left, mut step) = (self.clone(), Step::default());
        let mut let_in = usize::MAX;
        while let_in > 0 {
            let was_exclusive = left.is_exclusive();
            left.entries.retain(Entry::waits);
            let before = step.granted.len();
            left.let_in(was_exclusive, &mut step);
            let_in = step.granted.len() - before;
        }
        let waiters = step.granted.iter();
        waiters.filter_map(|one| one.seen_waiter(now)).collect()
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
