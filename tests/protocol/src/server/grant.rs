//! `lua/lib/grant.lua`: how it is written down that somebody was let in.

use super::script::Script;
use super::{Mode, Owner, Says, Share, Ticks, Token};
use crate::mutant::Mutant;

impl Script<'_> {
    /// Lets an owner in, and gives its token.
    pub(super) fn grant(&mut self, owner: Owner, ttl: Ticks, mode: Mode) -> Token {
        self.stored = self.next_token(!mode.is_exclusive());
        if mode.is_exclusive() {
            self.set_lock(Says::Owner(owner), ttl);
            self.held = Some(Says::Owner(owner));
        } else if self.held.is_some() && !self.is(Mutant::ReaderBesideWriter) {
            self.join(owner, mode, ttl);
        } else {
            self.open_to(owner, mode, ttl);
        }
        self.write_counter();
        self.stored
    }

    /// Lets in the first of those that share.
    fn open_to(&mut self, owner: Owner, mode: Mode, last: Ticks) {
        self.held = Some(match mode {
            Mode::Permits { count, .. } => Says::Permits(count.into()),
            _ => Says::Readers,
        });
        self.keys.forget_shares();
        self.keys.set_share(share(owner, mode, last));
        self.keep(Some(last));
    }

    /// Lets in one more of those that share, or one of them again.
    fn join(&mut self, owner: Owner, mode: Mode, ends: Ticks) {
        let last = self.keys.last_end().map_or(ends, |last| last.max(ends));
        let is_new = self.keys.set_share(share(owner, mode, ends));
        if let (Some(Says::Permits(out)), true) = (self.held, is_new) {
            self.held = Some(Says::Permits(out + i16::from(mode.count())));
        }
        self.keep(Some(last));
    }

    /// Makes the lease of one that was just let in end earlier.
    pub(super) fn shorten(&mut self, owner: Owner, mode: Mode, left: Ticks) {
        if mode.is_exclusive() {
            self.set_lock(Says::Owner(owner), left);
        } else {
            self.keys.set_share(share(owner, mode, left));
            self.keep(self.keys.last_end());
        }
    }
}

fn share(owner: Owner, mode: Mode, lasts: Ticks) -> Share {
    Share {
        owner,
        count: mode.count(),
        kept: false,
        lasts,
    }
}
