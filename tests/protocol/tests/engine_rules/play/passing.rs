//! Leases that go on: as a reader's, or as that of another owner.

use crosslock_protocol::server::{Adopt, Answer, Call, Mode, Owner, Renew, Ticks, Token};

use super::{Checked, Play, Player, agree};
use crate::engine::subject::Ask;
use crate::steps::At;

/// How a lease goes on, by the rules: after their last token that was used under it.
#[derive(Clone, Copy)]
pub(super) enum Passing {
    Downgrade(Ask, u64),
    Adopt(Ask, Owner, u64),
}

impl Play {
    pub(super) fn downgrade(
        &mut self,
        at: At,
        owner: Option<Owner>,
        more: Token,
        ttl: Ticks,
    ) -> Checked {
        let Some((owner, player)) = self.who(at, owner) else {
            return Ok(false);
        };
        let Some((token, its)) = player.tokens.filter(|_| player.names.count == 1) else {
            return Ok(false);
        };
        if !player.held_as.is_exclusive() {
            return Ok(false);
        }
        let ask = Renew::of(owner, ttl, player.held_as);
        let counter_after = token + 2 * more + 1;
        let call = Call::Downgrade { ask, counter_after };
        let last_used = its + 2 * more.unsigned_abs();
        let its = player.asks(owner, player.held_as, ttl);
        self.pass(call, Passing::Downgrade(its, last_used))?;
        Ok(true)
    }

    /// Whether an owner wants what that one has, and has asked for nothing yet.
    fn may_adopt(&self, owner: Owner, from: Player) -> bool {
        let new = self.owners[usize::from(owner)];
        let mut names = self.wanted(new.names);
        let is_refused = names.any(|name| name.refuses_broken(owner));
        let seen = self.subject.seen();
        let is_known = seen.iter().any(|seen| seen.all().any(|one| one == owner));
        let wants_it = (new.mode.held(), new.names) == (from.held_as, from.names);
        wants_it && !is_known && !is_refused
    }

    pub(super) fn adopt(
        &mut self,
        at: At,
        (owner, from): (Owner, Option<Owner>),
        more: Token,
        ttl: Ticks,
    ) -> Checked {
        let Some((from, player)) = self.who(at, from) else {
            return Ok(false);
        };
        let Some((token, its)) = player.tokens else {
            return Ok(false);
        };
        if owner == from || !self.may_adopt(owner, player) {
            return Ok(false);
        }
        let mode = player.held_as;
        let call = Call::Adopt(Adopt {
            owner,
            ttl,
            mode,
            from,
            counter_after: token + 2 * more + 1,
        });
        let last_used = its + 2 * more.unsigned_abs();
        let ask = player.asks(owner, mode, ttl);
        if self
            .pass(call, Passing::Adopt(ask, from, last_used))?
            .is_some()
        {
            self.owners[usize::from(from)].tokens = None;
        }
        Ok(true)
    }

    /// A lease goes on by both, or by none. Gives the tokens with which it does.
    fn pass(&mut self, call: Call, passing: Passing) -> Result<Option<(Token, u64)>, String> {
        let (ask, held_as, last_used) = match passing {
            Passing::Downgrade(ask, last_used) => (ask, Mode::Read, last_used),
            Passing::Adopt(ask, _, last_used) => (ask, ask.mode, last_used),
        };
        let model = self.model(ask.names, call);
        let its = match passing {
            Passing::Downgrade(ask, last_used) => self.subject.downgrade(ask, last_used),
            Passing::Adopt(ask, from, last_used) => self.subject.adopt(ask, from, last_used),
        };
        match (model, its) {
            (Answer::Downgraded(0) | Answer::Adopted(0), None) => Ok(None),
            (Answer::Downgraded(token) | Answer::Adopted(token), Some(its)) if token > 0 => {
                self.passed((ask.owner, held_as), (token, its.number), last_used)?;
                let tokens = (token, its.number);
                self.passing = Some((call, passing, tokens));
                Ok(Some(tokens))
            }
            (model, its) => Err(format!("passed on: {model:?} and {its:?}")),
        }
    }

    /// Asked a second time it is the same lease, as long as there is that.
    pub(super) fn pass_again(&mut self) -> Checked {
        let Some((call, passing, tokens)) = self.passing else {
            return Ok(false);
        };
        let (Passing::Downgrade(ask, _) | Passing::Adopt(ask, ..)) = passing;
        let its = self.owners[usize::from(ask.owner)].tokens;
        if its != Some(tokens) || !self.is_held_by(ask.owner, ask.names) {
            return Ok(false);
        }
        // Its token isn't a later one.
        let last = std::mem::take(&mut self.last);
        let again = self.pass(call, passing)?;
        self.last = last;
        // That of several names has a later one by the scripts.
        agree("the same lease", Some(tokens.1), again.map(|(_, its)| its))?;
        Ok(true)
    }

    /// A lease goes on with another token.
    fn passed(
        &mut self,
        (owner, held_as): (Owner, Mode),
        tokens: (Token, u64),
        last_used: u64,
    ) -> Result<(), String> {
        if tokens.1 <= last_used.max(self.last) {
            return Err(format!("token {} after {last_used}", tokens.1));
        }
        if held_as.is_exclusive() {
            agree("abandoned", tokens.0.rem_euclid(4) == 3, tokens.1 % 4 == 3)?;
        }
        self.last = tokens.1;
        let player = &mut self.owners[usize::from(owner)];
        (player.tokens, player.held_as) = (Some(tokens), held_as);
        Ok(())
    }
}
