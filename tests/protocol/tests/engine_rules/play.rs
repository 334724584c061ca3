//! Owners that ask, renew, release and die, by the model of the scripts and by the rules, which have to agree.
//!
//! There are no late copies here, nobody hears grants, waiters keep their places without asking again, and nothing is
//! lost but owners: that is all that memory and directories know. So an owner that isn't told yet that it has the lock
//! doesn't act as if it had it. After each tick somebody looks.

mod ends;
mod passing;

use crosslock_protocol::server::{
    Acquire, Acquired, Adopt, Answer, Call, Messages, Mode, Name, Names, Owner, Release, Released,
    Renew, Renewed, Says, Server, Ticks, Token, Wait, run,
};

use self::passing::Passing;
use crate::base::token::Ending;
use crate::corpus::{After, Plays};
use crate::engine;
use crate::engine::Outcome;
use crate::engine::subject::{Ask, Place, Seen, Subject, ticks};
use crate::steps::{At, Claim, End, NAMES, Step};

/// Longer than any sequence of steps: those that wait needn't ask again.
const FOR_EVER: Ticks = Ticks::MAX;

/// Nobody else's number.
const LOOKER: Owner = 7;
const ALL: Names = Names {
    first: 0,
    count: NAMES,
};

pub(crate) struct Play {
    names: Vec<Name>,
    /// The clock of the model's server.
    clock: Token,
    subject: Subject,
    owners: Vec<Player>,
    /// Of each name: since the last exclusive holder, one was let in that never heard of it. The scripts say that it
    /// abandoned the lock.
    was_unheard: Vec<bool>,
    /// The last token of the rules.
    last: u64,
    /// The last answer of the model.
    answer: Option<Answer>,
    /// The last call that passed a lease on, and its tokens: what may be asked a second time, before others ask for
    /// anything.
    passing: Option<(Call, Passing, (Token, u64))>,
}

#[derive(Clone, Copy)]
struct Player {
    names: Names,
    mode: Mode,
    held_as: Mode,
    /// Of a lease that it knows of: the model's, and that of the rules.
    tokens: Option<(Token, u64)>,
    has_kept: bool,
}

type Checked = Result<bool, String>;

fn agree<T: PartialEq + std::fmt::Debug>(what: &str, model: T, rules: T) -> Result<(), String> {
    if model == rules {
        return Ok(());
    }
    Err(format!(
        "{what}: {model:?} by the scripts, {rules:?} by the rules"
    ))
}

impl Play {
    pub(crate) fn new(claims: &[Claim], place: Place) -> Self {
        let owners = claims.iter().map(|claim| Player {
            names: claim.names,
            mode: claim.mode,
            held_as: claim.mode.held(),
            tokens: None,
            has_kept: false,
        });
        Play {
            names: vec![Name::default(); NAMES.into()],
            clock: 1_000_000,
            subject: Subject::new(NAMES.into(), place),
            owners: owners.collect(),
            was_unheard: vec![false; NAMES.into()],
            last: 0,
            answer: None,
            passing: None,
        }
    }

    fn agree_on_all(&self, what: &str) -> Result<(), String> {
        let model: Vec<_> = self.names.iter().map(seen_of).collect();
        agree(what, model, self.subject.seen())
    }

    fn model(&mut self, names: Names, call: Call) -> Answer {
        self.clock += 10_000;
        let server = Server {
            now: self.clock,
            ears: &[],
        };
        let names = names.of(&mut self.names);
        let answer = run(names, call, server, &mut Messages::new());
        self.answer = Some(answer);
        answer
    }

    /// The names that an owner wants.
    fn wanted(&self, names: Names) -> impl Iterator<Item = &Name> {
        let all = self.names.iter().enumerate();
        all.filter(move |(at, _)| names.has(*at))
            .map(|(_, name)| name)
    }

    fn is_held_by(&self, owner: Owner, names: Names) -> bool {
        self.wanted(names).all(|name| name.is_held_by(owner))
    }

    /// Whether its lease was broken, and would last.
    fn is_refused(&self, owner: Owner, names: Names) -> bool {
        let mut broken = self.wanted(names).flat_map(|name| &name.broken);
        broken.any(|one| one.owner == owner && one.lasts > 0)
    }

    /// Whether the scripts and the rules answer the owner alike.
    fn may_ask(&self, owner: Owner, player: Player) -> bool {
        // An owner is of one call, which wants one thing.
        let wants_another = player.tokens.is_some() && player.held_as != player.mode.held();
        // The scripts refuse it until the last of the leases that were broken would be over; the rules, until its own.
        let mut names = self.wanted(player.names);
        let refuses = names.any(|name| name.refuses_broken(owner));
        let agree = refuses == self.is_refused(owner, player.names);
        // Of several names the scripts look at no further than the first that is taken.
        let is_taken = |name: &Name| name.lock.is_some() && !name.is_held_by(owner);
        let is_told = player.names.count == 1 || !self.wanted(player.names).any(is_taken);
        !wants_another && agree && (is_told || !refuses)
    }

    /// One that waits keeps its place, and what it has of several names, and is let in for as long as it needs to ask.
    fn keep_places(&mut self, owner: Owner, names: Names) {
        for name in names.of(&mut self.names) {
            let mut waiters = name.waiters.iter_mut();
            if let Some(waiter) = waiters.find(|one| one.owner == owner) {
                waiter.ttl = FOR_EVER;
            }
            let mut lock = name.lock.as_mut();
            if let Some(lock) = lock.take_if(|lock| lock.says == Says::Owner(owner)) {
                lock.lasts = Some(FOR_EVER);
            }
        }
    }

    fn ask(&mut self, owner: Owner, ttl: Ticks, waits: bool) -> Checked {
        let player = self.owners[usize::from(owner)];
        if !self.may_ask(owner, player) {
            return Ok(false);
        }
        self.owners[usize::from(owner)].held_as = player.mode.held();
        let wait = Wait {
            promise: FOR_EVER,
            inbox: None,
        };
        let call = Call::Acquire(Acquire {
            owner,
            ttl,
            mode: player.mode,
            wait: waits.then_some(wait),
            valued: false,
        });
        let Answer::Acquired(model) = self.model(player.names, call) else {
            unreachable!("it was asked for the lock");
        };
        if matches!(model, Acquired::Taken(_)) {
            self.keep_places(owner, player.names);
        }
        let ask = player.asks(owner, player.mode, ttl);
        match (model, self.subject.acquire(ask, waits)) {
            (Acquired::Granted { token, .. }, engine::Answer::Granted(its)) => {
                self.granted(owner, player, (token, its.token.number))?;
            }
            (Acquired::Taken(_), engine::Answer::Taken { .. })
            | (Acquired::Broken, engine::Answer::Broken) => {
                self.owners[usize::from(owner)].tokens = None;
            }
            (model, its) => return Err(format!("asked: {model:?} and {its:?}")),
        }
        Ok(true)
    }

    fn granted(
        &mut self,
        owner: Owner,
        player: Player,
        (token, its): (Token, u64),
    ) -> Result<(), String> {
        if player.tokens.is_some_and(|(_, before)| before == its) {
            // Scripts give one that shares another.
            self.owners[usize::from(owner)].tokens = Some((token, its));
            return Ok(());
        }
        let in_order = player.mode.is_exclusive() || !self.subject.gives();
        if in_order && its <= self.last {
            return Err(format!("token {its} after {}", self.last));
        }
        self.last = self.last.max(its);
        let (model, rules) = (token.rem_euclid(4) == 3, its % 4 == 3);
        let was_unheard = player.names.of(&mut self.was_unheard);
        if !(model && was_unheard.contains(&true)) {
            agree("abandoned", model, rules)?;
        }
        if player.mode.is_exclusive() {
            // Who gives up leaves it to be told again.
            was_unheard
                .iter_mut()
                .for_each(|one| *one &= model && !rules);
        }
        let player = &mut self.owners[usize::from(owner)];
        player.tokens = Some((token, its));
        player.held_as = player.mode.held();
        Ok(())
    }

    /// Whoever is meant, or has it.
    fn who(&self, at: At, owner: Option<Owner>) -> Option<(Owner, Player)> {
        let holders = seen_of(&self.names[usize::from(at)]).holders;
        let owner = owner.or_else(|| holders.first().copied())?;
        Some((owner, self.owners[usize::from(owner)]))
    }
}

impl Player {
    fn asks(&self, owner: Owner, mode: Mode, ttl: Ticks) -> Ask {
        Ask {
            owner,
            names: self.names,
            mode,
            ttl,
        }
    }
}

impl Plays for Play {
    fn play(&mut self, at: At, step: Step) -> Checked {
        if !matches!(step, Step::Renew { .. } | Step::Tick | Step::Again(_)) {
            self.passing = None;
        }
        let done = match step {
            Step::Ask {
                owner,
                ttl,
                promise,
                ..
            } => self.ask(owner, ttl, promise.is_some()),
            Step::Renew { owner, ttl } => self.renew(at, owner, ttl),
            Step::Release { owner, end, keep } => self.release(at, owner, end, keep),
            Step::Downgrade { owner, more, ttl } => self.downgrade(at, owner, more, ttl),
            Step::Adopt {
                owner,
                from,
                more,
                ttl,
            } => self.adopt(at, (owner, from), more, ttl),
            Step::Permits => self.permits(at),
            Step::Break => self.break_lock(at),
            Step::Tick => self.tick(),
            // What would be a loss of keys is the death of one.
            Step::Delete(_) | Step::Forget => self.die(),
            Step::Again(_) => self.pass_again(),
            Step::Ear(..) | Step::Copy | Step::FailOver | Step::Foreign(_) => Ok(false),
        }?;
        self.agree_on_all("who has it and who waits")?;
        Ok(done)
    }

    fn after(&self) -> After<'_> {
        After {
            answer: self.answer,
            messages: &[],
            names: &self.names,
        }
    }
}

fn seen_of(name: &Name) -> Seen {
    let waits = |owner: &&Owner| name.waiter(**owner).is_some_and(|one| one.overdue > 0);
    let mut holders = name.holders().to_vec();
    holders.sort_unstable();
    Seen {
        holders,
        is_kept: name.is_kept(),
        queue: name.queue.iter().filter(waits).copied().collect(),
        readers: name.readers.iter().filter(waits).copied().collect(),
    }
}
