//! For an engine that writes names down: how a name comes from what was written and goes there, and what such an engine does
//! when it finds that owners are gone.

use super::super::counter::Counter;
use super::super::holders::{Holder, Holders, Who};
use super::super::written::{Entry, Standing};
use super::{NameState, Waiter};
use crate::base::claim::Mode;
use crate::base::clock::BootInstant;
use crate::base::owner::Owner;
use crate::base::token::Token;

impl NameState {
    pub(in super::super) fn of(
        entries: impl IntoIterator<Item = Entry>,
        abandoned: Option<BootInstant>,
    ) -> Self {
        let mut state = NameState {
            abandoned,
            ..NameState::default()
        };
        for entry in entries {
            state.put(entry);
        }
        state
    }

    fn put(&mut self, entry: Entry) {
        let Entry {
            standing,
            mode,
            since,
            until,
            ..
        } = entry;
        let who = match (standing, entry.owner) {
            (Standing::Has(token), Some(owner)) => Who::Owner(owner, token),
            (Standing::Given(token), Some(owner)) => Who::Given(owner, token),
            (Standing::Granted, Some(owner)) => Who::Granted(owner),
            (Standing::Waits { first, more }, Some(owner)) => {
                self.queue.push(Waiter {
                    owner,
                    mode,
                    goes_first: first,
                    wants_more: more,
                    since,
                    overdue: until,
                });
                return;
            }
            (_, None) | (Standing::Kept, Some(_)) => Who::Nobody,
        };
        let holder = Holder::new(who, mode, since, until);
        self.holders.add(mode, holder);
    }

    /// The same in return.
    pub(in super::super) fn entries(&self) -> Vec<Entry> {
        let mode = |holder: &Holder| match self.holders {
            Holders::Readers(_) => Mode::Shared,
            Holders::Permits(_) => Mode::Permits {
                count: holder.count,
                of: holder.of,
            },
            Holders::Nobody | Holders::Exclusive(_) => Mode::Exclusive,
        };
        let holders = self.holders.holders().iter();
        let holders = holders.map(|holder| holder.entry(mode(holder)));
        holders
            .chain(self.queue.iter().map(Waiter::entry))
            .collect()
    }

    pub(in super::super) fn is_abandoned(&self) -> bool {
        self.abandoned.is_some()
    }

    pub(in super::super) fn given(&self, owner: &Owner) -> Option<Token> {
        let mut holders = self.holders.holders().iter();
        holders.find_map(|one| match &one.who {
            Who::Given(to, token) if to == owner => Some(*token),
            _ => None,
        })
    }

    pub(in super::super) fn mentions(&self, owner: &Owner) -> bool {
        let mut holders = self.holders.holders().iter();
        holders.any(|one| one.owner() == Some(owner)) || self.place(owner).is_some()
    }

    /// Whose end may let that owner in, whether it waits or doesn't yet: those that hold, or the one right ahead.
    pub(in super::super) fn ahead_of(&self, owner: &Owner, mode: Mode) -> Vec<Owner> {
        if self.holders.has(owner, mode) {
            return Vec::new();
        }
        let reads = mode == Mode::Shared;
        let others = self.queue.iter().filter(|one| one.mode != Mode::Shared);
        let own = self.place(owner).map(|place| &self.queue[place]);
        let mut ahead = others.take_while(|one| own.is_none_or(|own| one.owner != own.owner));
        let next = match own {
            Some(_) if !reads => ahead.last(),
            _ => ahead.next(),
        };
        let next = next.map(|one| one.owner.clone());
        if own.is_some() && !reads && next.is_some() {
            return next.into_iter().collect();
        }
        // Readers that hold aren't in a reader's way.
        let in_the_way = !(reads && matches!(self.holders, Holders::Readers(_)));
        let holders = self.holders.holders().iter().filter(|_| in_the_way);
        let holders = holders.filter_map(|one| one.owner().cloned());
        holders.chain(next).collect()
    }

    /// Those that hold it.
    pub(in super::super) fn owners(&self) -> Vec<Owner> {
        let holders = self.holders.holders().iter();
        holders.filter_map(|one| one.owner().cloned()).collect()
    }

    pub(in super::super) fn place_of(&self, owner: &Owner) -> Option<usize> {
        self.place(owner)
    }

    /// Those in the queue, and those ahead of each, as `ahead_of` has them.
    pub(in super::super) fn waiting(&self) -> Vec<(Owner, Vec<Owner>)> {
        let holders = self.owners();
        let first = self
            .first(false)
            .map(|place| self.queue[place].owner.clone());
        let ahead_of_readers: Vec<_> = if matches!(self.holders, Holders::Readers(_)) {
            first.into_iter().collect()
        } else {
            holders.iter().cloned().chain(first).collect()
        };
        let mut last = None;
        let ahead = |one: &Waiter| {
            let ahead = if one.mode == Mode::Shared {
                ahead_of_readers.clone()
            } else {
                let before = last.replace(one.owner.clone());
                before.map_or_else(|| holders.clone(), |before| vec![before])
            };
            (one.owner.clone(), ahead)
        };
        self.queue.iter().map(ahead).collect()
    }

    /// Gives a lease to whom the name was granted, without being asked for it.
    pub(in super::super) fn give(&mut self, owner: &Owner, counter: &mut Counter) {
        let is_exclusive = matches!(self.holders, Holders::Exclusive(_));
        let mut holders = self.holders.holders_mut().iter_mut();
        let granted = |one: &&mut Holder| matches!(&one.who, Who::Granted(to) if to == owner);
        let Some(holder) = holders.find(granted) else {
            return;
        };
        let token = counter.next(self.abandoned.is_some());
        holder.who = Who::Given(owner.clone(), token);
        if is_exclusive {
            self.abandoned = None;
        }
    }

    /// Whoever was given the lease with this token knows that it has it.
    pub(in super::super) fn has_seen(&mut self, number: u64) {
        for holder in self.holders.holders_mut() {
            if let Who::Given(owner, token) = &holder.who
                && token.number == number
            {
                holder.who = Who::Owner(owner.clone(), *token);
            }
        }
    }

    /// Ends what owners have that are gone, and lets in the next.
    pub(in super::super) fn end(
        &mut self,
        is_gone: &dyn Fn(&Owner) -> bool,
        now: BootInstant,
        granted: &mut Vec<Owner>,
    ) {
        for holder in self.holders.holders_mut() {
            if holder.owner().is_some_and(is_gone) {
                holder.until = now;
            }
        }
        self.queue.retain(|one| !is_gone(&one.owner));
        self.tidy(now, None, granted);
    }
}

impl Holder {
    fn entry(&self, mode: Mode) -> Entry {
        let standing = match &self.who {
            Who::Owner(_, token) => Standing::Has(*token),
            Who::Given(_, token) => Standing::Given(*token),
            Who::Granted(_) => Standing::Granted,
            Who::Nobody => Standing::Kept,
        };
        Entry {
            owner: self.owner().cloned(),
            standing,
            mode,
            since: self.since,
            until: self.until,
        }
    }
}

impl Waiter {
    fn entry(&self) -> Entry {
        Entry {
            owner: Some(self.owner.clone()),
            standing: Standing::Waits {
                first: self.goes_first,
                more: self.wants_more,
            },
            mode: self.mode,
            since: self.since,
            until: self.overdue,
        }
    }
}
