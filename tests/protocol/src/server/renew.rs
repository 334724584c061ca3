//! `lua/lock/renew.lua`, `lua/lock/downgrade.lua` and `lua/semaphore/permits.lua`.

use super::script::Script;
use super::{Lock, Mode, Name, Renew, Renewed, Says, Server, Token};

impl Name {
    pub fn renew(&mut self, ask: Renew) -> Renewed {
        let is_its = if ask.mode.is_exclusive() {
            self.renew_exclusive(ask)
        } else {
            self.renew_shared(ask)
        };
        match (is_its, self.has_broken(ask.owner)) {
            (true, _) => Renewed::Done,
            (false, true) => Renewed::Broken,
            (false, false) => Renewed::NotOwner,
        }
    }

    /// Whether the lock is the owner's.
    fn renew_exclusive(&mut self, ask: Renew) -> bool {
        let stored = self.counter.map_or(0, |counter| counter.number);
        let is_anew = ask.granted > 0 && stored > ask.granted;
        if self.owner() != Some(ask.owner) || is_anew {
            return false;
        }
        if ask.ttl > 0 {
            self.lock = Some(Lock {
                says: Says::Owner(ask.owner),
                lasts: Some(ask.ttl),
            });
            self.value = ask.value.or(self.value);
        }
        true
    }

    fn renew_shared(&mut self, ask: Renew) -> bool {
        let Some(lock) = self.lock.filter(|lock| lock.says.is_shared()) else {
            return false;
        };
        let (owner, count) = (ask.owner, ask.mode.count());
        let is_its = |one: &&mut super::Share| {
            (one.owner, one.count, one.kept) == (owner, count, false) && one.lasts > 0
        };
        let Some(share) = self.shares.iter_mut().find(is_its) else {
            return false;
        };
        if ask.granted > 0 && share.token != ask.granted {
            return false;
        }
        if ask.ttl > 0 {
            share.lasts = ask.ttl;
            let last = self.last_end();
            self.shares_last = last.unwrap_or(0);
            self.lock = Some(Lock {
                lasts: last,
                ..lock
            });
        }
        true
    }

    /// Turns an exclusive lease into one that reads. Gives its token, or 0 when the lock isn't the owner's.
    pub fn downgrade(&mut self, ask: Renew, counter_after: Token, server: &mut Server) -> Token {
        let mut script = Script::new(self, server);
        script.look();
        let held = script.held;
        let reads = held == Some(Says::Readers) && script.keys.has_share(ask.owner, 1, false);
        let is_its = held == Some(Says::Owner(ask.owner));
        let anew = is_its && script.stored >= counter_after;
        if anew || !(is_its || reads) {
            return 0;
        }
        if is_its {
            script.keys.lock = None;
            script.held = None;
            script.keys.value = ask.value.or(script.keys.value);
            script.stored = counter_after;
        }
        let token = if reads {
            script.grant_again(ask.owner, ask.ttl, Mode::Read)
        } else {
            script.grant(ask.owner, ask.ttl, Mode::Read)
        };
        script.hand_on(None, true, None);
        token
    }

    /// How many permits are out; -1 when it is held otherwise.
    pub fn permits(&mut self, server: &mut Server) -> i16 {
        let mut script = Script::new(self, server);
        script.look();
        match script.held {
            None => 0,
            Some(Says::Permits(used)) => used,
            Some(_) => -1,
        }
    }
}
