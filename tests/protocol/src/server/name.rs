//! The keys of one name, as the server's commands read and change them.

use super::{Lock, Mode, Name, Owner, Remaining, Says, Share, Ticks, Token, Waiter};

impl Name {
    /// Lets time pass: what ends, ends; leases that are over stay until somebody looks, as on a server.
    pub fn tick(&mut self) {
        if let Some(Lock {
            lasts: Some(lasts), ..
        }) = &mut self.lock
        {
            *lasts -= 1;
            if *lasts <= 0 {
                self.lock = None;
            }
        }
        for waiter in &mut self.waiters {
            waiter.overdue = (waiter.overdue - 1).max(-waiter.ttl);
        }
        for broken in &mut self.broken {
            broken.lasts = (broken.lasts - 1).max(0);
        }
        for share in &mut self.shares {
            share.lasts = (share.lasts - 1).max(0);
        }
        if !self.shares.is_empty() {
            self.shares_last -= 1;
            if self.shares_last <= 0 {
                self.forget_shares();
            }
        }
    }

    /// The owner that has it exclusively.
    pub fn owner(&self) -> Option<Owner> {
        match self.lock {
            Some(Lock {
                says: Says::Owner(owner),
                ..
            }) => Some(owner),
            _ => None,
        }
    }

    /// All that have it, alone or with others.
    pub fn holders(&self) -> Vec<Owner> {
        let mut holders = Vec::new();
        holders.extend(self.owner());
        let shares = self.live_shares().filter(|share| !share.kept);
        holders.extend(shares.map(|share| share.owner));
        holders
    }

    /// Whether something of it stays taken by nobody.
    pub fn is_kept(&self) -> bool {
        let is_whole = self.lock.is_some_and(|lock| lock.says == Says::Kept);
        is_whole || self.live_shares().any(|share| share.kept)
    }

    fn live_shares(&self) -> impl Iterator<Item = &Share> {
        let is_shared = self.lock.is_some_and(|lock| lock.says.is_shared());
        let shares = self.shares.iter();
        shares.filter(move |share| is_shared && share.lasts > 0)
    }

    pub fn waiter(&self, owner: Owner) -> Option<&Waiter> {
        self.waiters.iter().find(|waiter| waiter.owner == owner)
    }

    pub fn line(&self, mode: Mode) -> &Vec<Owner> {
        if mode.is_read() {
            &self.readers
        } else {
            &self.queue
        }
    }

    pub(super) fn line_mut(&mut self, mode: Mode) -> &mut Vec<Owner> {
        if mode.is_read() {
            &mut self.readers
        } else {
            &mut self.queue
        }
    }

    /// How long the lock lasts, as PTTL says it.
    pub(super) fn remaining(&self) -> Remaining {
        match self.lock {
            None => Remaining::Absent,
            Some(Lock { lasts: None, .. }) => Remaining::Endless,
            Some(Lock {
                lasts: Some(lasts), ..
            }) => Remaining::Ticks(lasts),
        }
    }

    pub fn forget_shares(&mut self) {
        self.shares.clear();
        self.shares_last = 0;
    }

    /// HSET. Says whether the owner is new there.
    pub(super) fn set_waiter(&mut self, waiter: Waiter) -> bool {
        let was_there = self.remove_waiter(waiter.owner);
        self.waiters.push(waiter);
        self.waiters.sort_unstable();
        !was_there
    }

    /// HDEL.
    pub(super) fn remove_waiter(&mut self, owner: Owner) -> bool {
        let at = self.waiters.iter().position(|one| one.owner == owner);
        at.map(|at| self.waiters.remove(at)).is_some()
    }

    fn share_at(&self, owner: Owner, count: u8, kept: bool) -> Option<usize> {
        let is_it = |one: &Share| (one.owner, one.count, one.kept) == (owner, count, kept);
        self.shares.iter().position(is_it)
    }

    /// ZADD. Says whether it is new there.
    pub(super) fn set_share(&mut self, share: Share) -> bool {
        let was_there = self.remove_share(share.owner, share.count, share.kept);
        self.shares.push(share);
        self.shares.sort_unstable();
        !was_there
    }

    /// ZREM.
    pub(super) fn remove_share(&mut self, owner: Owner, count: u8, kept: bool) -> bool {
        let at = self.share_at(owner, count, kept);
        at.map(|at| self.shares.remove(at)).is_some()
    }

    pub(super) fn has_share(&self, owner: Owner, count: u8, kept: bool) -> bool {
        self.share_at(owner, count, kept).is_some()
    }

    /// The token by which an owner shares it; 0 if it doesn't.
    pub(super) fn token_of_share(&self, owner: Owner, count: u8) -> Token {
        let at = self.share_at(owner, count, false);
        at.map_or(0, |at| self.shares[at].token)
    }

    /// When the last lease of those that share is over.
    pub(super) fn last_end(&self) -> Option<Ticks> {
        self.shares.iter().map(|share| share.lasts).max()
    }
}

/// LREM of the first.
pub(super) fn remove_first(line: &mut Vec<Owner>, owner: Owner) {
    if let Some(at) = line.iter().position(|one| *one == owner) {
        line.remove(at);
    }
}
