//! Owners that ask, renew and release by what they were told.

use crate::server::{
    Acquire, Acquired, Adopt, Answer, Call, Message, Mode, Name, Names, Owner, Release, Renew,
    Ticks, Token, Wait,
};
use crate::steps::{At, Claim, End, Step};

pub struct Players {
    owners: Vec<Player>,
    /// All of them, in order.
    calls: Vec<(Names, Call)>,
    values: u16,
}

#[derive(Clone, Copy)]
struct Player {
    claim: Claim,
    /// As it is held: who has turned its lease into one that reads has another then.
    held_as: Mode,
    /// The last one that it was told.
    token: Option<Token>,
}

impl Players {
    pub fn new(claims: &[Claim]) -> Self {
        let owners = claims.iter().map(|claim| Player {
            claim: *claim,
            held_as: claim.mode.held(),
            token: None,
        });
        Players {
            owners: owners.collect(),
            calls: Vec::new(),
            values: 0,
        }
    }

    fn get(&self, owner: Owner) -> Player {
        self.owners[usize::from(owner)]
    }

    /// What is asked for by a step that is a call, where that can be asked for.
    pub fn call(&mut self, all: &[Name], at: At, step: Step) -> Option<(Names, Call)> {
        match step {
            Step::Ask { owner, ttl, wait } => Some(self.ask(owner, ttl, wait)),
            Step::Renew { owner, ttl } => {
                let owner = who(all, at, owner);
                let names = self.get(owner).claim.names;
                Some((names, Call::Renew(self.renew(owner, ttl))))
            }
            Step::Release { owner, end, keep } => {
                Some(self.release(who(all, at, owner), end, keep))
            }
            Step::Downgrade { owner, more, ttl } => self.downgrade(who(all, at, owner), more, ttl),
            Step::Adopt {
                owner,
                from,
                more,
                ttl,
            } => self.adopt(owner, who(all, at, from), more, ttl),
            Step::Permits => Some((Names::one(at), Call::Permits)),
            Step::Break => Some((Names::one(at), Call::Break)),
            Step::Again(before) => self.calls.iter().nth_back(before).copied(),
            _ => None,
        }
    }

    fn ask(&self, owner: Owner, ttl: Ticks, wait: Option<Wait>) -> (Names, Call) {
        let claim = self.get(owner).claim;
        let ask = Acquire {
            owner,
            ttl,
            mode: claim.mode,
            wait,
            valued: claim.valued && claim.names.count == 1,
        };
        (claim.names, Call::Acquire(ask))
    }

    fn release(&mut self, owner: Owner, end: End, keep: Option<Ticks>) -> (Names, Call) {
        let player = self.get(owner);
        let ask = Release {
            counter_after: player.token.map_or(0, |token| end.counter_after(token)),
            value: self.next_value(player),
            keep,
            ..Release::unknown(owner, player.held_as)
        };
        (player.claim.names, Call::Release(ask))
    }

    fn downgrade(&mut self, owner: Owner, more: Token, ttl: Ticks) -> Option<(Names, Call)> {
        let player = self.get(owner);
        let (names, token) = (player.claim.names, player.token?);
        let (ask, counter_after) = (self.renew(owner, ttl), token + 2 * more + 1);
        let is_one = names.count == 1;
        is_one.then_some((names, Call::Downgrade { ask, counter_after }))
    }

    fn renew(&mut self, owner: Owner, ttl: Ticks) -> Renew {
        let player = self.get(owner);
        Renew {
            owner,
            ttl,
            mode: player.held_as,
            value: self.next_value(player),
            granted: player.token.unwrap_or(0),
        }
    }

    fn adopt(&self, owner: Owner, from: Owner, more: Token, ttl: Ticks) -> Option<(Names, Call)> {
        let (claim, player) = (self.get(owner).claim, self.get(from));
        let mode = player.held_as;
        let is_same =
            claim.mode.held() == mode || (claim.mode.is_exclusive() && mode.is_exclusive());
        // An owner is of one call, which wants one thing.
        if owner == from || claim.names != player.claim.names || !is_same {
            return None;
        }
        let ask = Adopt {
            owner,
            ttl,
            mode,
            from,
            counter_after: player.token? + 2 * more + 1,
        };
        Some((claim.names, Call::Adopt(ask)))
    }

    fn next_value(&mut self, player: Player) -> Option<u16> {
        self.values += u16::from(player.claim.valued);
        player.claim.valued.then_some(self.values)
    }

    /// What its owner knows by the answer to a call, and others by what was published.
    pub fn learn(&mut self, (names, call): (Names, Call), answer: Answer, messages: &[Message]) {
        self.calls.push((names, call));
        let told = match (call, answer) {
            (Call::Acquire(ask), Answer::Acquired(Acquired::Granted { token, .. })) => {
                Some((ask.owner, ask.mode.held(), token))
            }
            (Call::Downgrade { ask, .. }, Answer::Downgraded(token)) => {
                Some((ask.owner, Mode::Read, token))
            }
            (Call::Adopt(ask), Answer::Adopted(token)) => Some((ask.owner, ask.mode, token)),
            _ => None,
        };
        if let Some((owner, mode, token)) = told.filter(|(.., token)| *token > 0) {
            let player = &mut self.owners[usize::from(owner)];
            (player.token, player.held_as) = (Some(token), mode);
        }
        for message in messages.iter().filter(|message| message.token > 0) {
            let player = &mut self.owners[usize::from(message.owner)];
            if player.claim.names.count == 1 {
                player.token = Some(message.token);
            }
        }
    }
}

/// The owner that is meant, or whoever has the name.
fn who(all: &[Name], at: At, owner: Option<Owner>) -> Owner {
    let name = &all[usize::from(at)];
    owner.or(name.holders().first().copied()).unwrap_or(0)
}
