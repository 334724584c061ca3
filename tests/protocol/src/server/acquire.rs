//! `lua/lock/acquire.lua`.

use super::script::Script;
use super::{
    Acquire, Acquired, Mode, Name, Owner, Remaining, Says, Server, Taken, Ticks, Token, Wait,
    Waiter,
};

/// How often those in front whose heartbeat is overdue are dropped while a line grows.
const SWEEP: usize = 16;

impl Name {
    pub fn acquire(&mut self, ask: Acquire, server: &mut Server) -> Acquired {
        let value = ask.valued.then_some(self.value);
        let granted = |token| Acquired::Granted { token, value };
        if self.broken_until() > 0 && self.has_broken(ask.owner) {
            return Acquired::Broken;
        }
        let mut script = Script::new(self, server);
        match script.ask(ask) {
            Ok(token) => granted(token),
            Err(taken) => Acquired::Taken(taken),
        }
    }
}

impl Script<'_> {
    fn ask(&mut self, ask: Acquire) -> Result<Token, Taken> {
        let mode = ask.mode.held();
        let lock = self.keys.lock.map(|lock| lock.says);
        let mut known = self.stored % 2 == 1 || lock == Some(Says::Kept);
        let mut remaining = None;
        let may_be_had = match lock {
            None => true,
            Some(Says::Owner(owner)) => owner == ask.owner,
            Some(says) => says.is_shared(),
        };
        if may_be_had {
            self.look();
            if let Some(token) = self.take(ask, mode) {
                return Ok(token);
            }
            known = self.is_shared() || self.stored % 2 == 1;
            if let Some(Says::Permits(_)) = self.held {
                let ends = self.keys.shares.iter().map(|share| share.lasts);
                remaining = ends.min().map(Remaining::Ticks);
            }
        }
        let (mut stood, mut entered, mut length) = (false, false, 0);
        if let Some(wait) = ask.wait {
            (entered, stood, length) = self.enter(ask.owner, ask.ttl, mode, wait);
        } else if self.letters.any() {
            self.leave(mode, ask.owner);
        }
        let holder = match lock {
            Some(Says::Owner(owner)) if entered => Some(owner),
            _ => None,
        };
        Err(Taken {
            remaining: remaining.unwrap_or_else(|| self.keys.remaining()),
            counter: self.stored,
            stood,
            known,
            length,
            holder,
        })
    }

    pub(super) fn take(&mut self, ask: Acquire, mode: Mode) -> Option<Token> {
        if self.held == Some(Says::Owner(ask.owner)) {
            self.set_lock(Says::Owner(ask.owner), ask.ttl);
            if self.stored % 2 == 0 {
                self.stored = self.next_token(false);
                self.write_counter();
            }
            return Some(self.stored);
        }
        if self.is_shared()
            && !mode.is_exclusive()
            && self.keys.has_share(ask.owner, mode.count(), false)
        {
            return Some(self.grant_again(ask.owner, ask.ttl, mode));
        }
        if !self.letters.any() {
            return self
                .fits(mode)
                .then(|| self.grant(ask.owner, ask.ttl, mode));
        }
        let after_exclusive = self.was_exclusive();
        let token = self.hand_on(Some(ask.owner), after_exclusive, None);
        if token.is_some() {
            return token;
        }
        if self.fits(mode) && (ask.mode == Mode::EagerRead || !self.letters.queue) {
            self.leave(mode, ask.owner);
            return Some(self.grant(ask.owner, ask.ttl, mode));
        }
        if ask.wait.is_none() {
            self.leave(mode, ask.owner);
            self.hand_on(None, after_exclusive, None);
        }
        None
    }

    /// Enters the line, or is a heartbeat in it. Says whether it is new among those that wait, whether it stood in the
    /// line before, and how long the line is.
    fn enter(&mut self, owner: Owner, ttl: Ticks, mode: Mode, wait: Wait) -> (bool, bool, u8) {
        let entered = self.keys.set_waiter(Waiter {
            owner,
            overdue: wait.promise,
            ttl,
            mode,
            inbox: wait.inbox,
        });
        let line = self.keys.line_mut(mode);
        // Or its line was lost.
        let is_new = entered || line.is_empty();
        if is_new {
            line.push(owner);
        }
        let length = line.len();
        if is_new && length == 1 {
            // Who is said to stand there, too, stood in one that was lost, and is to enter anew.
            let waiters = &mut self.keys.waiters;
            waiters.retain(|one| one.owner == owner || one.mode.is_read() != mode.is_read());
        }
        let letter = if mode.is_read() {
            &mut self.letters.readers
        } else {
            &mut self.letters.queue
        };
        if self.counted && !*letter {
            *letter = true;
            self.write_counter();
        }
        if !entered || length.is_multiple_of(SWEEP) {
            self.drop_dead(mode, owner);
        }
        (entered, !is_new, length.try_into().unwrap_or(u8::MAX))
    }

    /// Those in front that don't live go, so that they don't pile up while the lock is held.
    fn drop_dead(&mut self, mode: Mode, owner: Owner) {
        while let Some(&head) = self.keys.line(mode).first()
            && head != owner
            && self.keys.waiter(head).is_none_or(|one| !one.lives())
        {
            self.keys.line_mut(mode).remove(0);
            self.keys.remove_waiter(head);
        }
    }
}
