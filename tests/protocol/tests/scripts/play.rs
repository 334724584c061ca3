//! Owners that ask, renew and release by what they were told, next to losses of every kind.

use crosslock_protocol::server::{
    Acquire, Acquired, Adopt, Answer, Call, Ear, Event, Mode, Name, Names, Owner, Release, Renew,
    Ticks, Token, Wait,
};

use super::corpus::{After, Plays};
use super::replayer::{Outcome, Replayer};
use super::rules::{Done, Rules};
use super::steps::{At, Claim, Step};

pub(crate) struct Play<'a> {
    replayer: &'a mut Replayer,
    owners: Vec<Player>,
    /// All of them, in order.
    calls: Vec<(Names, Call)>,
    values: u16,
    rules: Rules,
    /// What became of the last call.
    last: Option<Outcome>,
}

#[derive(Clone, Copy)]
struct Player {
    claim: Claim,
    /// As it is held: who has turned its lease into one that reads has another then.
    held_as: Mode,
    /// The last one that it was told.
    token: Option<Token>,
}

impl<'a> Play<'a> {
    pub(crate) fn new(claims: &[Claim], replayer: &'a mut Replayer) -> Self {
        let owners = claims.iter().map(|claim| Player {
            claim: *claim,
            held_as: claim.mode.held(),
            token: None,
        });
        let rules = Rules::new(replayer.names().len());
        replayer.start_anew();
        replayer.step(Event::Ear(2, Ear::Gone));
        replayer.step(Event::Ear(3, Ear::Forbidden));
        Play {
            owners: owners.collect(),
            replayer,
            calls: Vec::new(),
            values: 0,
            rules,
            last: None,
        }
    }

    fn event(&mut self, at: At, step: Step) -> Option<Event> {
        Some(match step {
            Step::Tick => Event::Tick,
            Step::Ear(inbox, ear) => Event::Ear(inbox, ear),
            Step::Forget => Event::Forget,
            Step::Copy => Event::Copy,
            Step::FailOver => Event::FailOver,
            Step::Delete(key) => Event::Delete(at, key),
            Step::Foreign(ttl) => Event::Foreign(at, ttl),
            call => {
                let (names, call) = self.call(at, call)?;
                Event::Call { names, call }
            }
        })
    }

    fn call(&mut self, at: At, step: Step) -> Option<(Names, Call)> {
        Some(match step {
            Step::Ask {
                owner,
                ttl,
                promise,
                inbox,
            } => {
                let wait = promise.map(|promise| Wait { promise, inbox });
                self.ask(owner, ttl, wait)
            }
            Step::Renew { owner, ttl } => {
                let (owner, player) = self.who(at, owner);
                let value = self.next_value(player);
                let ask = renew(owner, player, ttl, value);
                (player.claim.names, Call::Renew(ask))
            }
            Step::Release { owner, end, keep } => {
                let (owner, player) = self.who(at, owner);
                let ask = Release {
                    counter_after: player.token.map_or(0, |token| end.counter_after(token)),
                    value: self.next_value(player),
                    keep,
                    ..Release::unknown(owner, player.held_as)
                };
                (player.claim.names, Call::Release(ask))
            }
            Step::Downgrade { owner, more, ttl } => return self.downgrade(at, owner, more, ttl),
            Step::Permits => (Names::one(at), Call::Permits),
            Step::Break => (Names::one(at), Call::Break),
            Step::Adopt {
                owner,
                from,
                more,
                ttl,
            } => return self.adopt(at, (owner, from), more, ttl),
            Step::Again(before) => *self.calls.iter().nth_back(before)?,
            event => unreachable!("{event:?} is no call"),
        })
    }

    fn ask(&self, owner: Owner, ttl: Ticks, wait: Option<Wait>) -> (Names, Call) {
        let claim = self.owners[usize::from(owner)].claim;
        let ask = Acquire {
            owner,
            ttl,
            mode: claim.mode,
            wait,
            valued: claim.valued && claim.names.count == 1,
        };
        (claim.names, Call::Acquire(ask))
    }

    fn downgrade(
        &mut self,
        at: At,
        owner: Option<Owner>,
        more: Token,
        ttl: Ticks,
    ) -> Option<(Names, Call)> {
        let (owner, player) = self.who(at, owner);
        // It would ask first.
        let last_used = player.token? + 2 * more;
        if player.claim.names.count > 1 {
            return None;
        }
        let value = self.next_value(player);
        let ask = renew(owner, player, ttl, value);
        let counter_after = last_used + 1;
        Some((player.claim.names, Call::Downgrade { ask, counter_after }))
    }

    fn adopt(
        &self,
        at: At,
        (owner, from): (Owner, Option<Owner>),
        more: Token,
        ttl: Ticks,
    ) -> Option<(Names, Call)> {
        let (from, player) = self.who(at, from);
        let claim = self.owners[usize::from(owner)].claim;
        let is_same = |mode: Mode| {
            mode == player.held_as || (mode.is_exclusive() && player.held_as.is_exclusive())
        };
        // An owner is of one call, which wants one thing.
        if owner == from || claim.names != player.claim.names || !is_same(claim.mode.held()) {
            return None;
        }
        let ask = Adopt {
            owner,
            ttl,
            mode: player.held_as,
            from,
            counter_after: player.token? + 2 * more + 1,
        };
        Some((player.claim.names, Call::Adopt(ask)))
    }

    /// The owner that is meant, or whoever has the name.
    fn who(&self, at: At, owner: Option<Owner>) -> (Owner, Player) {
        let name = &self.replayer.names()[usize::from(at)];
        let owner = owner.or(holder(name)).unwrap_or(0);
        (owner, self.owners[usize::from(owner)])
    }

    fn next_value(&mut self, player: Player) -> Option<u16> {
        player.claim.valued.then(|| {
            self.values += 1;
            self.values
        })
    }

    /// What its owner knows by the answer, and others by what was published.
    fn learn(&mut self, call: Call, outcome: &Outcome) {
        match (call, outcome.answer) {
            (Call::Adopt(ask), Answer::Adopted(token)) if token > 0 => {
                let player = &mut self.owners[usize::from(ask.owner)];
                (player.token, player.held_as) = (Some(token), ask.mode);
            }
            (Call::Acquire(ask), Answer::Acquired(Acquired::Granted { token, .. })) => {
                let player = &mut self.owners[usize::from(ask.owner)];
                player.token = Some(token);
            }
            (Call::Downgrade { ask, .. }, Answer::Downgraded(token)) if token > 0 => {
                let player = &mut self.owners[usize::from(ask.owner)];
                player.token = Some(token);
                player.held_as = Mode::Read;
            }
            _ => {}
        }
        for message in &outcome.messages {
            let player = &mut self.owners[usize::from(message.owner)];
            if message.token > 0 && player.claim.names.count == 1 {
                player.token = Some(message.token);
            }
        }
    }
}

impl Plays for Play<'_> {
    fn play(&mut self, at: At, step: Step) -> Result<bool, String> {
        let Some(event) = self.event(at, step) else {
            return Ok(false);
        };
        let Event::Call { names, call } = event else {
            self.rules.suffer(event, self.replayer);
            return self.replayer.try_step(event).map(|()| true);
        };
        let before = self.replayer.names().to_vec();
        let outcome = self.replayer.try_call(names, call)?;
        let checked = self.rules.check(Done {
            names,
            call,
            before: &before,
            outcome: &outcome,
            ears: self.replayer.ears(),
        });
        checked.map_err(|rule| self.replayer.breaks(&rule, &before))?;
        self.calls.push((names, call));
        self.learn(call, &outcome);
        self.last = Some(outcome);
        Ok(true)
    }

    fn after(&self) -> After<'_> {
        let last = self.last.as_ref();
        After {
            answer: last.map(|outcome| outcome.answer),
            messages: last.map_or(&[], |outcome| &outcome.messages),
            names: self.replayer.names(),
        }
    }
}

/// Whoever has the name.
fn holder(name: &Name) -> Option<Owner> {
    let is_shared = name.lock.is_some_and(|lock| lock.says.is_shared());
    let shares = name.shares.iter().filter(|share| !share.kept);
    let first = shares.map(|share| share.owner).next();
    name.owner().or(first.filter(|_| is_shared))
}

fn renew(owner: Owner, player: Player, ttl: Ticks, value: Option<u16>) -> Renew {
    Renew {
        value,
        granted: player.token.unwrap_or(0),
        ..Renew::of(owner, ttl, player.held_as)
    }
}
