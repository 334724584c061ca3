//! What a script knows of a name while it runs: `name.lua`, `holders.lua` and `token.lua` of `lua/lib/`.

use super::{
    Counter, Ear, Inbox, Letters, Lock, Message, Mode, Name, Owner, Says, Server, Ticks, Token,
};

/// How many hand-overs inside its process one lease may make.
pub(super) const HAND_OVERS: Token = 1024;

pub(super) struct Script<'a> {
    pub(super) keys: &'a mut Name,
    pub(super) server: &'a mut Server,
    /// The number that the counter holds; 0 when there is none.
    pub(super) stored: Token,
    pub(super) letters: Letters,
    /// Whether there is a counter.
    pub(super) counted: bool,
    /// Whether the counter names owners whose leases were broken, and are not all over.
    pub(super) names_broken: bool,
    /// What the lock says, without leases that are over. [`Says::Permits`] has how many are out.
    pub(super) held: Option<Says>,
}

impl<'a> Script<'a> {
    /// Reads the counter; what is held is read by [`look`](Self::look).
    pub(super) fn new(keys: &'a mut Name, server: &'a mut Server) -> Self {
        let (stored, letters, counted) = match keys.counter {
            Some(counter) => (counter.number, counter.letters, true),
            None if keys.queue.is_empty() && keys.readers.is_empty() => {
                (0, Letters::default(), false)
            }
            None => (0, Letters::BOTH, false),
        };
        Script {
            names_broken: keys.broken_until() > 0,
            keys,
            server,
            stored,
            letters,
            counted,
            held: None,
        }
    }

    // What is held

    pub(super) fn look(&mut self) {
        self.held = self.keys.lock.map(|lock| lock.says);
        let Some(says) = self.held.filter(|says| says.is_shared()) else {
            return;
        };
        let over = |share: &super::Share| share.lasts <= 0;
        let gone: i16 = self
            .keys
            .shares
            .iter()
            .filter(|share| over(share))
            .map(|share| i16::from(share.count))
            .sum();
        self.keys.shares.retain(|share| !over(share));
        if self.keys.shares.is_empty() {
            self.keys.forget_shares();
            self.held = None;
        } else if let (Says::Permits(out), true) = (says, gone > 0) {
            self.held = Some(Says::Permits(out - gone));
            self.write_mark();
        }
    }

    pub(super) fn is_shared(&self) -> bool {
        self.held.is_some_and(Says::is_shared)
    }

    /// Says in the lock's key what is held, and leaves its ttl.
    fn write_mark(&mut self) {
        if let (Some(lock), Some(says)) = (&mut self.keys.lock, self.held) {
            lock.says = says;
        }
    }

    pub(super) fn fits(&self, mode: Mode) -> bool {
        match (self.held, mode) {
            (None, _) => true,
            (Some(Says::Permits(out)), Mode::Permits { count, of }) => {
                out + i16::from(count) <= i16::from(of)
            }
            (Some(Says::Readers), mode) => mode.is_read(),
            _ => false,
        }
    }

    /// Makes the lock last as long as those that share it do.
    pub(super) fn keep(&mut self, last: Option<Ticks>) {
        let Some(last) = last else {
            self.keys.lock = None;
            self.keys.forget_shares();
            return;
        };
        self.keys.shares_last = last;
        if let Some(says) = self.held {
            self.set_lock(says, last);
        }
    }

    pub(super) fn set_lock(&mut self, says: Says, lasts: Ticks) {
        self.keys.lock = Some(Lock {
            says,
            lasts: Some(lasts),
        });
    }

    // Tokens

    /// Whether the last that was let in is an exclusive holder, which didn't release.
    pub(super) fn is_abandoned(&self) -> bool {
        self.stored.rem_euclid(2) == 1 && self.stored.rem_euclid(8) != 7
    }

    /// The same, or that holder released it and let in nobody: a lock that stays taken for a time leaves such a number.
    pub(super) fn was_exclusive(&self) -> bool {
        self.stored.rem_euclid(4) == 2 || self.is_abandoned()
    }

    pub(super) fn next_token(&self, shares: bool) -> Token {
        let used = if self.is_abandoned() {
            2 * HAND_OVERS
        } else {
            0
        };
        let floor = (self.stored + used + 1).max(self.server.now);
        if self.stored.rem_euclid(2) == 1 {
            let class = if shares { 7 } else { 3 };
            return floor + (class - floor).rem_euclid(8);
        }
        let class = if shares { 0 } else { 1 };
        floor + (class - floor).rem_euclid(4)
    }

    pub(super) fn write_counter(&mut self) {
        self.counted = true;
        if !self.names_broken {
            self.keys.broken.clear();
        }
        self.keys.counter = Some(Counter {
            number: self.stored,
            letters: self.letters,
        });
    }

    // Messages

    /// Whether somebody hears; `None` when that can't be counted.
    pub(super) fn ear(&self, inbox: Option<Inbox>) -> Option<Ear> {
        inbox.map(|inbox| self.server.ears[usize::from(inbox)])
    }

    /// Says whether it may be published.
    pub(super) fn publish(&mut self, inbox: Inbox, owner: Owner, token: Token) -> bool {
        let ear = self.server.ears[usize::from(inbox)];
        if ear == Ear::Hears {
            let message = Message {
                inbox,
                owner,
                token,
            };
            self.server.messages.push(message);
        }
        ear != Ear::Forbidden
    }
}
