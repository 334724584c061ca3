//! How owners renew, release and break their leases, and die.

use crosslock_protocol::server::{
    Answer, Call, Messages, Mode, Name, Names, Owner, Release, Released, Renew, Renewed, Ticks,
    Token,
};

use super::{ALL, Checked, LOOKER, Passing, Play, agree, seen_of};
use crate::base::token::Ending;
use crate::engine::Outcome;
use crate::engine::subject::{Ask, ticks};
use crate::steps::{At, End};

impl Play {
    pub(super) fn renew(&mut self, at: At, owner: Option<Owner>, ttl: Ticks) -> Checked {
        let Some((owner, player)) = self.who(at, owner) else {
            return Ok(false);
        };
        // Who doesn't know that it has it doesn't renew it.
        if player.tokens.is_none() && self.wanted(player.names).any(|one| one.is_held_by(owner)) {
            return Ok(false);
        }
        let mode = player.held_as;
        let refused = self.is_refused(owner, player.names);
        let ask = Call::Renew(Renew::of(owner, ttl, mode));
        let renewed = self.model(player.names, ask);
        let its = self.subject.renewal(player.asks(owner, mode, ttl));
        let model = renewed == Answer::Renewed(Renewed::Done);
        agree("renewed", model, its.is_done())?;
        let model = refused && renewed == Answer::Renewed(Renewed::Broken);
        agree("told that it was broken", model, its == Outcome::BROKEN)?;
        Ok(true)
    }

    pub(super) fn release(
        &mut self,
        at: At,
        owner: Option<Owner>,
        end: End,
        keep: Option<Ticks>,
    ) -> Checked {
        let (owner, player) = self.who(at, owner).unwrap_or((0, self.owners[0]));
        let Some((token, its)) = player.tokens else {
            self.give_up(owner, player.names, player.held_as)?;
            return Ok(true);
        };
        let counter_after = end.counter_after(token);
        let last_used = |more: Token| its + 2 * more.unsigned_abs();
        let ending = match end {
            End::Unknown => Ending::Unknown,
            End::Clean { more } => Ending::Clean {
                last_used: last_used(more),
            },
            End::Panicked { more } => Ending::Panicked {
                last_used: last_used(more),
            },
        };
        // Once: an owner is of one call.
        let had = self.is_held_by(owner, player.names);
        let keep = keep.filter(|_| had && counter_after > 0 && !player.has_kept);
        let mode = player.held_as;
        let ask = Release {
            counter_after,
            keep,
            ..Release::unknown(owner, mode)
        };
        let released = self.model(player.names, Call::Release(ask));
        let its = player.asks(owner, mode, 1);
        let done = self.subject.release(its, ending, keep.unwrap_or(0));
        let model = had && released == Answer::Released(Released::Done);
        agree("released", model, done)?;
        let player = &mut self.owners[usize::from(owner)];
        player.tokens = None;
        player.has_kept |= keep.is_some();
        Ok(true)
    }

    /// One that doesn't know what it has.
    pub(super) fn give_up(&mut self, owner: Owner, names: Names, mode: Mode) -> Result<(), String> {
        self.model(names, Call::Release(Release::unknown(owner, mode)));
        let ask = Ask {
            owner,
            names,
            mode,
            ttl: 1,
        };
        self.subject.release(ask, Ending::Unknown, 0);
        if let Some(player) = self.owners.get_mut(usize::from(owner)) {
            player.tokens = None;
        }
        self.agree_on_all("after giving up")
    }

    pub(super) fn permits(&mut self, at: At) -> Checked {
        const OF: u8 = 8;
        let Answer::Permits(out) = self.model(Names::one(at), Call::Permits) else {
            unreachable!("it was asked for the permits");
        };
        let free = match u32::try_from(out) {
            Ok(out) => u32::from(OF).saturating_sub(out),
            Err(_) => 0,
        };
        agree("free permits", free, self.subject.free_permits(at, OF))?;
        Ok(true)
    }

    /// Where somebody has it that doesn't know, the scripts refuse that one from then on, and the rules let it ask
    /// anew.
    pub(super) fn break_lock(&mut self, at: At) -> Checked {
        if !self.subject.unaware().concat().is_empty() {
            return Ok(false);
        }
        let Answer::Broke(broke) = self.model(Names::one(at), Call::Break) else {
            unreachable!("it was broken");
        };
        let (holders, _) = self.subject.break_lock(at);
        agree(
            "whose lease was broken",
            usize::from(broke.holders),
            holders,
        )?;
        Ok(true)
    }

    pub(super) fn tick(&mut self) -> Checked {
        // A downgrade that is asked for a second time gives the lease no ttl of its own by the rules.
        let is_adoption = |one: &(_, Passing, _)| matches!(one.1, Passing::Adopt(..));
        self.passing = self.passing.filter(is_adoption);
        let unaware = self.subject.unaware();
        self.names.iter_mut().for_each(Name::tick);
        self.subject.now = self.subject.now.plus(ticks(1));
        let pairs = unaware.iter().zip(self.subject.unaware());
        for (was_unheard, (before, after)) in self.was_unheard.iter_mut().zip(pairs) {
            *was_unheard |= *before != after;
        }
        self.give_up(LOOKER, ALL, Mode::Exclusive)?;
        Ok(true)
    }

    /// The process of the first holder ends, or else that of the first that waits.
    pub(super) fn die(&mut self) -> Checked {
        let seen = self.subject.seen();
        let Some(owner) = seen.iter().find_map(|seen| seen.all().next()) else {
            return Ok(false);
        };
        for (was_unheard, unaware) in self.was_unheard.iter_mut().zip(self.subject.unaware()) {
            *was_unheard |= unaware.contains(&owner);
        }
        for name in &mut self.names {
            if name.owner() == Some(owner) {
                name.lock = None;
            }
        }
        let player = self.owners[usize::from(owner)];
        let release = Release::unknown(owner, player.held_as);
        self.model(player.names, Call::Release(release));
        self.subject.die(owner);
        self.owners[usize::from(owner)].tokens = None;
        Ok(true)
    }
}
