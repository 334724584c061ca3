//! `lua/lock/break.lua` and `lua/lib/broken.lua`: leases that somebody ends for whoever has them.

use super::script::{HAND_OVERS, Script};
use super::{BROADCAST, Broke, BrokenLease, Message, Name, Owner, Says, Server, Ticks};

/// How long a lease is remembered that had no end: far longer than a model goes on.
const DAY: Ticks = 86;

impl Name {
    /// Ends all leases, and lets in the next.
    pub fn break_lock(&mut self, server: &mut Server) -> Broke {
        let mut script = Script::new(self, server);
        script.look();
        let Some(held) = script.held else {
            let after_exclusive = script.was_exclusive();
            script.try_hand_on(after_exclusive);
            return Broke::default();
        };
        let was_shared = script.is_shared();
        let (broke, owners) = script.holders(held);
        script.keys.lock = None;
        script.keys.forget_shares();
        if held != Says::Kept {
            script.count_break(was_shared);
        }
        script.held = None;
        script.name_broken(&owners);
        script.tell_broken(&owners);
        script.try_hand_on(!was_shared);
        if script.held.is_none() {
            script.keys.lock = None;
            if script.counted {
                script.write_counter();
            }
        }
        broke
    }

    /// When the last of the leases would be over that were broken.
    pub(super) fn broken_until(&self) -> Ticks {
        let ends = self.broken.iter().map(|one| one.lasts);
        ends.max().unwrap_or(0)
    }

    /// Whether the counter's key names this owner, though its lease may be over.
    pub(super) fn has_broken(&self, owner: Owner) -> bool {
        self.broken.iter().any(|one| one.owner == owner)
    }
}

impl Script<'_> {
    pub(super) fn is_broken(&self, owner: Owner) -> bool {
        self.names_broken && self.keys.has_broken(owner)
    }

    /// Who has the lock: what is answered, and the owners with the ends of their leases.
    fn holders(&self, held: Says) -> (Broke, Vec<BrokenLease>) {
        let lease = |owner, lasts| BrokenLease { owner, lasts };
        let (mut broke, mut owners) = (Broke::default(), Vec::new());
        match held {
            Says::Kept => {}
            Says::Foreign => broke.holders = 1,
            Says::Owner(owner) => {
                let odd = self.stored.rem_euclid(2) == 1;
                broke.holders = 1;
                broke.token = if odd { self.stored } else { 0 };
                let lasts = self.keys.lock.and_then(|lock| lock.lasts);
                owners.push(lease(owner, lasts.unwrap_or(DAY)));
            }
            Says::Readers | Says::Permits(_) => {
                let shares = self.keys.shares.iter().filter(|one| !one.kept);
                owners.extend(shares.map(|one| lease(one.owner, one.lasts)));
                broke.holders = owners.len().try_into().unwrap_or(u8::MAX);
            }
        }
        (broke, owners)
    }

    /// The counter goes above every token that was used.
    fn count_break(&mut self, was_shared: bool) {
        let stored = if self.counted {
            self.stored
        } else {
            self.server.now
        };
        self.stored = stored;
        if was_shared {
            let class = if stored.rem_euclid(2) == 1 { 7 } else { 0 };
            self.stored = stored + 1 + (class - stored - 1).rem_euclid(8);
        } else {
            let used = if self.is_abandoned() {
                2 * HAND_OVERS
            } else {
                0
            };
            let floor = stored + used + 1;
            self.stored = floor + (5 - floor).rem_euclid(8);
        }
        self.counted = true;
    }

    /// Names the owners in the counter, and drops those whose leases would be over.
    fn name_broken(&mut self, owners: &[BrokenLease]) {
        let mut broken: Vec<BrokenLease> = self.keys.broken.clone();
        if !self.names_broken {
            broken.clear();
        }
        broken.retain(|one| one.lasts > 0);
        broken.extend(owners.iter().filter(|one| one.lasts > 0).copied());
        broken.sort_unstable();
        self.names_broken = !broken.is_empty();
        self.keys.broken = broken;
    }

    fn tell_broken(&mut self, owners: &[BrokenLease]) {
        self.server
            .messages
            .extend(owners.iter().map(|one| Message {
                inbox: BROADCAST,
                owner: one.owner,
                token: self.stored,
            }));
    }

    fn try_hand_on(&mut self, after_exclusive: bool) {
        if self.letters.any() {
            self.hand_on(None, after_exclusive, None);
        }
    }
}
