//! `lua/lock/adopt.lua` and `lua/all/adopt.lua`: a lease that one owner passes on to another.

use super::script::Script;
use super::{Acquire, Adopt, Lock, Name, Says, Server, Token};

impl Name {
    /// Gives the new token, or 0 when the lease isn't the other owner's.
    pub fn adopt(&mut self, ask: Adopt, server: &mut Server) -> Token {
        let mut script = Script::new(self, server);
        script.look();
        let token = if ask.mode.is_exclusive() {
            script.adopt_exclusive(ask)
        } else {
            script.adopt_shared(ask)
        };
        if token > 0 && script.letters.any() {
            // A late copy of its request may have put the other owner into the queue.
            script.leave(ask.mode, ask.from);
        }
        token
    }
}

impl Script<'_> {
    fn adopt_exclusive(&mut self, ask: Adopt) -> Token {
        if self.held == Some(Says::Owner(ask.owner)) {
            let again = Acquire {
                owner: ask.owner,
                ttl: ask.ttl,
                mode: ask.mode,
                wait: None,
                valued: false,
            };
            return self.take(again, ask.mode).unwrap_or(0);
        }
        if self.held != Some(Says::Owner(ask.from)) || self.stored >= ask.counter_after {
            return 0;
        }
        self.stored = ask.counter_after;
        self.grant(ask.owner, ask.ttl, ask.mode)
    }

    fn adopt_shared(&mut self, ask: Adopt) -> Token {
        if !self.is_shared() {
            return 0;
        }
        let count = ask.mode.count();
        if self.keys.remove_share(ask.from, count, false) {
            if let Some(Says::Permits(out)) = self.held {
                self.held = Some(Says::Permits(out - i16::from(count)));
            }
        } else if self.keys.has_share(ask.owner, count, false) {
            return self.grant_again(ask.owner, ask.ttl, ask.mode);
        } else {
            return 0;
        }
        // Even, for nobody has abandoned what is passed on; or 7 of 8 as before, where the last exclusive holder never
        // released.
        let used = ask.counter_after - 1;
        let class = if self.stored % 2 == 1 {
            (7 - used).rem_euclid(8)
        } else {
            used.rem_euclid(2)
        };
        self.stored = self.stored.max(used + class);
        self.grant(ask.owner, ask.ttl, ask.mode)
    }
}

pub fn adopt_all(names: &mut [Name], ask: Adopt, server: &mut Server) -> Token {
    let mut last = ask.counter_after;
    for name in names.iter() {
        let stored = name.counter.map_or(0, |counter| counter.number);
        let owner = name.owner();
        let is_its = owner == Some(ask.from) && stored < ask.counter_after;
        if owner != Some(ask.owner) && !is_its {
            return 0;
        }
        last = last.max(stored);
    }
    // After an even number: nobody has abandoned what is passed on.
    last += last.rem_euclid(2);
    let mut token = 0;
    for name in names {
        let mut script = Script::new(name, server);
        script.stored = last;
        token = script.next_token(false);
        script.keys.lock = Some(Lock {
            says: Says::Owner(ask.owner),
            lasts: Some(ask.ttl),
        });
        script.stored = token;
        script.write_counter();
    }
    token
}
