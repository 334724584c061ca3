//! `lua/lib/grant.lua`: how it is written down that somebody was let in.

use super::script::Script;
use super::{Mode, Owner, Says, Share, Ticks, Token};

impl Script<'_> {
    /// Lets an owner in, and gives its token.
    pub(super) fn grant(&mut self, owner: Owner, ttl: Ticks, mode: Mode) -> Token {
        self.stored = self.next_token(!mode.is_exclusive());
        if mode.is_exclusive() {
            self.set_lock(Says::Owner(owner), ttl);
            self.held = Some(Says::Owner(owner));
        } else if self.held.is_some() {
            self.join(share(owner, mode, ttl, self.stored));
        } else {
            self.open_to(share(owner, mode, ttl, self.stored), mode);
        }
        self.write_counter();
        self.stored
    }

    /// Lets one that shares have it for another ttl, by the token that it was granted.
    pub(super) fn grant_again(&mut self, owner: Owner, ttl: Ticks, mode: Mode) -> Token {
        let token = self.keys.token_of_share(owner, mode.count());
        self.stored = self.stored.max(token);
        self.join(share(owner, mode, ttl, token));
        self.write_counter();
        token
    }

    /// Lets in the first of those that share.
    fn open_to(&mut self, share: Share, mode: Mode) {
        self.held = Some(match mode {
            Mode::Permits { count, .. } => Says::Permits(count.into()),
            _ => Says::Readers,
        });
        self.keys.forget_shares();
        self.keys.set_share(share);
        self.keep(Some(share.lasts));
    }

    /// Lets in one more of those that share, or one of them again.
    fn join(&mut self, share: Share) {
        let ends = share.lasts;
        let last = self.keys.last_end().map_or(ends, |last| last.max(ends));
        let is_new = self.keys.set_share(share);
        if let (Some(Says::Permits(out)), true) = (self.held, is_new) {
            self.held = Some(Says::Permits(out + i16::from(share.count)));
        }
        self.keep(Some(last));
    }

    /// Makes the lease of one that was just let in end earlier.
    pub(super) fn shorten(&mut self, owner: Owner, mode: Mode, left: Ticks) {
        if mode.is_exclusive() {
            self.set_lock(Says::Owner(owner), left);
        } else {
            let token = self.keys.token_of_share(owner, mode.count());
            self.keys.set_share(share(owner, mode, left, token));
            self.keep(self.keys.last_end());
        }
    }
}

fn share(owner: Owner, mode: Mode, lasts: Ticks, token: Token) -> Share {
    Share {
        owner,
        count: mode.count(),
        kept: false,
        lasts,
        token,
    }
}
