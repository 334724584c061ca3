//! `lua/lock/release.lua`, and its two ways for what is usual, which do the same.

use super::script::Script;
use super::{Mode, Name, Owner, Release, Says, Server, Share, Ticks, Token};

/// What the release scripts answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Released {
    /// The lock isn't the owner's.
    NotOwner = 0,
    Done = 1,
    /// It isn't, and the same command may have released it before.
    Unclear = 2,
    /// It isn't, because somebody broke it.
    Broken = 3,
}

impl Name {
    pub fn release(&mut self, ask: Release, server: &mut Server) -> Released {
        let mut script = Script::new(self, server);
        if ask.mode.is_exclusive() {
            script.release_exclusive(ask)
        } else {
            script.release_shared(ask)
        }
    }
}

impl Script<'_> {
    fn release_exclusive(&mut self, mut ask: Release) -> Released {
        // By this number it is found later that the lock was held exclusively.
        if ask.keep.is_some() && ask.counter_after > 0 && ask.counter_after.rem_euclid(4) == 0 {
            ask.counter_after += 2;
        }
        let was_counted = self.counted;
        // By a copy of its request that came late it has the lock anew, by a token that it doesn't know.
        let anew = ask.counter_after > 0 && self.stored >= ask.counter_after;
        let knows_token = ask.counter_after > 0 && !anew;
        self.look();
        if self.held != Some(Says::Owner(ask.owner)) {
            return self.leave_exclusive(ask);
        }
        self.count_release(knows_token.then_some(ask.counter_after));
        self.held = None;
        if let Some(keep) = ask.keep {
            self.set_lock(Says::Kept, keep);
            self.write_counter();
            self.wake();
        } else {
            if self.letters.any() {
                self.hand_on(None, true, Some(ask.owner));
            }
            if self.held.is_none() {
                self.keys.lock = None;
                if was_counted || knows_token {
                    self.write_counter();
                }
            }
        }
        if anew {
            return Released::Unclear;
        }
        self.keys.value = ask.value.or(self.keys.value);
        Released::Done
    }

    /// What the counter says after the release of one that knows its token, or of one that gives up.
    fn count_release(&mut self, counter_after: Option<Token>) {
        match counter_after {
            Some(counter) => self.stored = counter,
            None if self.stored.rem_euclid(4) == 1 => self.stored += 1,
            None => {}
        }
    }

    /// The lock isn't its own: it leaves the line.
    fn leave_exclusive(&mut self, ask: Release) -> Released {
        self.leave(Mode::Exclusive, ask.owner);
        if self.is_broken(ask.owner) {
            return Released::Broken;
        }
        if ask.counter_after == 0 {
            if self.letters.any() {
                let after_exclusive = self.held.is_none() && self.was_exclusive();
                self.hand_on(None, after_exclusive, None);
            }
            return Released::NotOwner;
        }
        match self.stored.cmp(&ask.counter_after) {
            _ if !self.counted => Released::NotOwner,
            std::cmp::Ordering::Less => Released::NotOwner,
            std::cmp::Ordering::Equal => Released::Done,
            std::cmp::Ordering::Greater => Released::Unclear,
        }
    }

    fn release_shared(&mut self, ask: Release) -> Released {
        let count = ask.mode.count();
        let is_shared = self.keys.lock.is_some_and(|lock| lock.says.is_shared());
        let token = self.keys.token_of_share(ask.owner, count);
        let is_anew = is_shared && ask.counter_after > 0 && token >= ask.counter_after;
        let done = if is_anew {
            Released::Unclear
        } else {
            Released::Done
        };
        let was_held =
            is_shared && ask.keep.is_none() && self.keys.remove_share(ask.owner, count, false);
        self.look();
        if let Some(keep) = ask.keep.filter(|_| self.is_shared())
            && self.keep_share(ask.owner, count, keep)
        {
            return done;
        }
        if was_held && self.held.is_some() {
            if let Some(Says::Permits(out)) = self.held {
                self.held = Some(Says::Permits(out - i16::from(count)));
            }
            self.keep(self.keys.last_end());
        } else if was_held {
            self.keys.lock = None;
        }
        if self.letters.any() {
            self.leave(ask.mode, ask.owner);
            let after_exclusive = self.held.is_none() && self.was_exclusive();
            self.hand_on(None, after_exclusive, None);
        }
        match (was_held, ask.counter_after) {
            (true, _) => done,
            _ if self.is_broken(ask.owner) => Released::Broken,
            (false, 0) => Released::NotOwner,
            _ => Released::Unclear,
        }
    }

    /// The share stays taken for a time. Says whether it was the owner's, now or in an earlier copy of the request.
    fn keep_share(&mut self, owner: Owner, count: u8, lasts: Ticks) -> bool {
        if !self.keys.remove_share(owner, count, false) {
            return self.keys.has_share(owner, count, true);
        }
        let is_new = self.keys.set_share(Share {
            owner,
            count,
            kept: true,
            lasts,
            token: 0,
        });
        if let (Some(Says::Permits(out)), false) = (self.held, is_new) {
            self.held = Some(Says::Permits(out - i16::from(count)));
        }
        self.keep(self.keys.last_end());
        self.wake();
        true
    }

    /// Has the first of each line ask, which learns for how long the lock stays taken.
    fn wake(&mut self) {
        let letters = self.letters;
        for (there, mode) in [
            (letters.queue, Mode::Exclusive),
            (letters.readers, Mode::Read),
        ] {
            if let Some(first) = there.then(|| self.first_of(mode, None, false)).flatten()
                && let Some(inbox) = first.inbox
            {
                self.publish(inbox, first.owner, 0);
            }
        }
    }
}
