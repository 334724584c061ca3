//! `lua/lib/hand_off.lua`: those that wait, and who of them is let in.

use super::script::Script;
use super::{Ear, Mode, Owner, Token, Waiter, remove_first};

impl Script<'_> {
    /// Takes an owner out of the line, if it is in it.
    pub(super) fn leave(&mut self, mode: Mode, owner: Owner) {
        if self.keys.remove_waiter(owner) {
            remove_first(self.keys.line_mut(mode), owner);
        }
    }

    /// The first of a line that lives; those before it are dropped. `take`: it is taken
    /// off the line.
    pub(super) fn first_of(
        &mut self,
        mode: Mode,
        asking: Option<Owner>,
        take: bool,
    ) -> Option<Waiter> {
        loop {
            let owner = *self.keys.line(mode).first()?;
            if take {
                self.keys.line_mut(mode).remove(0);
            }
            let waiter = self.keys.waiter(owner).copied();
            let lives = |waiter: &Waiter| waiter.lives() || asking == Some(owner);
            if let Some(waiter) = waiter.filter(lives) {
                return Some(waiter);
            }
            if !take {
                self.keys.line_mut(mode).remove(0);
            }
            self.keys.remove_waiter(owner);
        }
    }

    /// Who is to be let in next. Readers are when an exclusive holder has ended, unless the first of the others wants
    /// to go before them, and when nobody else waits.
    fn next_in_line(
        &mut self,
        asking: Option<Owner>,
        after_exclusive: bool,
        take: bool,
    ) -> Option<Waiter> {
        let (mut first, mut reader) = (None, None);
        if self.letters.queue {
            first = self.first_of(Mode::Exclusive, asking, take);
            self.letters.queue = first.is_some();
        }
        let gives_way = |first: &Waiter| after_exclusive && first.mode != Mode::Writer;
        if self.letters.readers && first.as_ref().is_none_or(gives_way) {
            reader = self.first_of(Mode::Read, asking, take);
            self.letters.readers = reader.is_some();
        }
        reader.or(first)
    }

    /// Lets in, one after the other, those whose turn it is. Gives the token of whoever asks, if it was let in.
    pub(super) fn hand_on(
        &mut self,
        asking: Option<Owner>,
        after_exclusive: bool,
        leaving: Option<Owner>,
    ) -> Option<Token> {
        let mut its = None;
        while self.held.is_none() || self.is_shared() {
            let take = self.held.is_none() && !self.letters.readers;
            let Some(next) = self.next_in_line(asking, after_exclusive, take) else {
                break;
            };
            let asks = asking == Some(next.owner);
            let leaves = leaving == Some(next.owner);
            let ear = self.ear(next.inbox);
            let broken = self.is_broken(next.owner);
            let leaves = leaves || broken;
            let is_there = asks || ear != Some(Ear::Gone);
            if is_there && !leaves && !self.fits(next.mode) {
                break;
            }
            if !take {
                self.keys.line_mut(next.mode).remove(0);
            }
            self.keys.remove_waiter(next.owner);
            let was_there = leaving.filter(|leaving| *leaving != next.owner);
            if was_there.is_some_and(|leaving| self.keys.remove_waiter(leaving)) {
                remove_first(&mut self.keys.queue, leaving.unwrap_or_default());
            }
            if asks {
                its = Some(self.grant(next.owner, next.ttl, next.mode));
            } else if is_there && !leaves {
                self.let_in(next);
            }
        }
        its
    }

    /// One that doesn't ask just now is told; where that can't be, it is let in until its next heartbeat.
    fn let_in(&mut self, next: Waiter) {
        let is_overdue = next.overdue <= 0;
        let left = if is_overdue {
            // It may be gone: it has to ask.
            (next.ttl + 1) / 2
        } else {
            next.ttl.min(next.overdue)
        };
        let is_full = next.inbox.is_some() && !is_overdue;
        let lasts = if is_full { next.ttl } else { left };
        let granted = self.grant(next.owner, lasts, next.mode);
        let token = if is_overdue { 0 } else { granted };
        if let Some(inbox) = next.inbox
            && !self.publish(inbox, next.owner, token)
            && !is_overdue
        {
            self.shorten(next.owner, next.mode, left);
        }
    }
}
