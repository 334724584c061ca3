//! Owners that ask, renew, release and die, by the model of the scripts and by the rules, which have to agree.
//!
//! There are no late copies here, nobody hears grants, waiters keep their places without asking again, and nothing is
//! lost but owners: that is all that memory and directories know. So an owner that isn't told yet that it has the lock
//! doesn't act as if it had it. After each tick somebody looks.

use crosslock_protocol::corpus::{After, Plays};
use crosslock_protocol::players::Players;
use crosslock_protocol::server::{
    Acquire, Acquired, Adopt, Answer, Call, Mode, Name, Names, Owner, Release, Released, Renew,
    Renewed, Says, Server, Ticks, Token, Wait, run,
};
use crosslock_protocol::steps::{At, Claim, NAMES, OWNERS, Step};

use crate::agree;
use crate::engine::subject::{OF, Place, Said, Seen, Subject, Told, last_used};

/// Longer than any sequence of steps: those that wait needn't ask again.
const FOR_EVER: Ticks = Ticks::MAX;

const HERE: Wait = Wait {
    promise: FOR_EVER,
    inbox: None,
};

/// Nobody else's number.
const LOOKER: Owner = 7;
const ALL: Names = Names {
    first: 0,
    count: NAMES,
};

pub(crate) struct Play {
    names: Vec<Name>,
    /// That of the model.
    server: Server,
    subject: Subject,
    players: Players,
    /// Of a lease that an owner knows of: the token by the rules.
    tokens: [Option<u64>; OWNERS as usize],
    /// Who has left a lock taken: once, for an owner is of one call.
    kept: Vec<Owner>,
    /// Of each name: since the last exclusive holder, one was let in that never heard of it. The scripts say that it
    /// abandoned the lock.
    was_unheard: Vec<bool>,
    /// The last token of the rules.
    last: u64,
    /// The last answer of the model.
    answer: Option<Answer>,
    /// The last call that passed a lease on, what was known of that, and the token: what may be asked a second time,
    /// before others ask for anything.
    passing: Option<(Names, Call, Told, u64)>,
}

type Checked = Result<bool, String>;

impl Play {
    pub(crate) fn new(claims: &[Claim], place: Place) -> Self {
        Play {
            names: vec![Name::default(); NAMES.into()],
            server: Server {
                now: 1_000_000,
                ears: Vec::new(),
                messages: Vec::new(),
            },
            subject: Subject::new(NAMES.into(), place),
            players: Players::new(claims),
            tokens: [None; OWNERS as usize],
            kept: Vec::new(),
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
        self.server.now += 10_000;
        let answer = run(names.of(&mut self.names), call, &mut self.server);
        self.answer = Some(answer);
        answer
    }

    /// These names.
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

    /// What its owner knows of its lease.
    fn told(&self, owner: Owner) -> Told {
        let its = *self.tokens.get(usize::from(owner))?;
        self.players.get(owner).token.zip(its)
    }

    /// Whether the scripts and the rules answer the owner alike.
    fn may_ask(&self, Acquire { owner, mode, .. }: Acquire, names: Names) -> bool {
        // An owner is of one call, which wants one thing.
        let wants_another =
            self.told(owner).is_some() && self.players.get(owner).held_as != mode.held();
        // The scripts refuse it until the last of the leases that were broken would be over; the rules, until its own.
        let refuses = self.wanted(names).any(|name| name.refuses_broken(owner));
        let agree = refuses == self.is_refused(owner, names);
        // Of several names the scripts look at no further than the first that is taken.
        let is_taken = |name: &Name| name.lock.is_some() && !name.is_held_by(owner);
        let is_told = names.count == 1 || !self.wanted(names).any(is_taken);
        !wants_another && agree && (is_told || !refuses)
    }

    /// Whether an owner wants what another has, and has asked for nothing yet.
    fn may_adopt(&self, ask: Adopt, names: Names) -> bool {
        let mut wanted = self.wanted(names);
        let is_refused = wanted.any(|name| name.refuses_broken(ask.owner));
        let seen = self.subject.seen();
        let is_known = seen
            .iter()
            .any(|seen| seen.all().any(|one| one == ask.owner));
        let is_same = self.players.get(ask.owner).claim.mode.held() == ask.mode;
        is_same && !is_known && !is_refused && self.told(ask.from).is_some()
    }

    fn may(&self, names: Names, call: Call) -> bool {
        match call {
            Call::Acquire(ask) => self.may_ask(ask, names),
            // Who doesn't know that it has it doesn't renew it.
            Call::Renew(Renew { owner, .. }) => {
                let has_any = self.wanted(names).any(|name| name.is_held_by(owner));
                self.told(owner).is_some() || !has_any
            }
            Call::Downgrade { ask, .. } => {
                ask.mode.is_exclusive() && self.told(ask.owner).is_some()
            }
            Call::Adopt(ask) => self.may_adopt(ask, names),
            // Where somebody has it that doesn't know, the scripts refuse that one from then on, and the rules let it
            // ask anew.
            Call::Break => self.subject.unaware().concat().is_empty(),
            Call::Release(_) | Call::Permits => true,
        }
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

    fn call(&mut self, names: Names, call: Call) -> Checked {
        if !self.may(names, call) {
            return Ok(false);
        }
        let owner = owner_of(call);
        let (had, refused) = (self.is_held_by(owner, names), self.is_refused(owner, names));
        let call = self.as_here(call, had);
        let told = match call {
            Call::Adopt(ask) => self.told(ask.from),
            _ => self.told(owner),
        };
        let model = self.model(names, call);
        let (its, token) = self.subject.call(names, call, told);
        // What one gives up that doesn't know of it may be found or not.
        if told.is_some() || !matches!(call, Call::Release(_)) {
            agree("the answer", said(model, had, refused), its)?;
        }
        self.players.learn((names, call), model, &[]);
        if its == Said::Taken {
            self.keep_places(owner, names);
        }
        match (call, token) {
            (Call::Acquire(ask), Some(token)) => self.granted(ask, names, token)?,
            (Call::Acquire(_), None) | (Call::Release(_), _) => self.forget(owner),
            (Call::Downgrade { .. } | Call::Adopt(_), Some(token)) => {
                self.passed(names, call, told, token)?;
            }
            _ => {}
        }
        Ok(true)
    }

    /// Without heartbeats and inboxes; and a lock stays taken once for an owner that `had` it.
    fn as_here(&mut self, mut call: Call, had: bool) -> Call {
        match &mut call {
            Call::Acquire(ask) => ask.wait = ask.wait.map(|_| HERE),
            Call::Release(ask) => {
                let keeps = had && ask.counter_after > 0 && !self.kept.contains(&ask.owner);
                ask.keep = ask.keep.filter(|_| keeps);
                self.kept.extend(ask.keep.map(|_| ask.owner));
            }
            _ => {}
        }
        call
    }

    fn forget(&mut self, owner: Owner) {
        self.players.forget(owner);
        self.tokens[usize::from(owner)] = None;
    }

    fn granted(&mut self, ask: Acquire, names: Names, its: u64) -> Result<(), String> {
        let before = self.tokens[usize::from(ask.owner)].replace(its);
        if before == Some(its) {
            // Scripts give one that shares another.
            return Ok(());
        }
        let in_order = ask.mode.is_exclusive() || !self.subject.gives();
        if in_order && its <= self.last {
            return Err(format!("token {its} after {}", self.last));
        }
        self.last = self.last.max(its);
        let token = self.players.get(ask.owner).token.unwrap_or(0);
        let (model, rules) = (token.rem_euclid(4) == 3, its % 4 == 3);
        let was_unheard = names.of(&mut self.was_unheard);
        if !(model && was_unheard.contains(&true)) {
            agree("abandoned", model, rules)?;
        }
        if ask.mode.is_exclusive() {
            // Who gives up leaves it to be told again.
            let all = was_unheard.iter_mut();
            all.for_each(|one| *one &= model && !rules);
        }
        Ok(())
    }

    /// A lease goes on with another token.
    fn passed(&mut self, names: Names, call: Call, told: Told, its: u64) -> Result<(), String> {
        let last_used = last_used(call, told).max(self.last);
        if its <= last_used {
            return Err(format!("token {its} after {last_used}"));
        }
        let owner = owner_of(call);
        let player = self.players.get(owner);
        if player.held_as.is_exclusive() {
            let is_abandoned = player.token.unwrap_or(0).rem_euclid(4) == 3;
            agree("abandoned", is_abandoned, its % 4 == 3)?;
        }
        if let Call::Adopt(ask) = call {
            self.forget(ask.from);
        }
        self.last = its;
        self.tokens[usize::from(owner)] = Some(its);
        self.passing = Some((names, call, told, its));
        Ok(())
    }

    /// Asked a second time it is the same lease, as long as there is that.
    fn pass_again(&mut self) -> Checked {
        let Some((names, call, told, its)) = self.passing else {
            return Ok(false);
        };
        let owner = owner_of(call);
        if self.tokens[usize::from(owner)] != Some(its) || !self.is_held_by(owner, names) {
            return Ok(false);
        }
        let model = self.model(names, call);
        let again = self.subject.call(names, call, told);
        agree(
            "the same lease",
            (said(model, true, false), Some(its)),
            again,
        )?;
        // That of several names has a later one by the scripts.
        self.players.learn((names, call), model, &[]);
        Ok(true)
    }

    fn tick(&mut self) -> Checked {
        // A downgrade that is asked for a second time gives the lease no ttl of its own by the rules.
        self.passing = self.passing.filter(|one| matches!(one.1, Call::Adopt(_)));
        let unaware = self.subject.unaware();
        self.names.iter_mut().for_each(Name::tick);
        self.subject.tick();
        let pairs = unaware.iter().zip(self.subject.unaware());
        for (was_unheard, (before, after)) in self.was_unheard.iter_mut().zip(pairs) {
            *was_unheard |= *before != after;
        }
        let look = Call::Release(Release::unknown(LOOKER, Mode::Exclusive));
        self.model(ALL, look);
        self.subject.call(ALL, look, None);
        Ok(true)
    }

    /// The process of the first holder ends, or else that of the first that waits.
    fn die(&mut self) -> Checked {
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
        let player = self.players.get(owner);
        let release = Release::unknown(owner, player.held_as);
        self.model(player.claim.names, Call::Release(release));
        self.subject.die(owner);
        self.forget(owner);
        Ok(true)
    }
}

impl Plays for Play {
    fn play(&mut self, at: At, step: Step) -> Checked {
        if !matches!(step, Step::Renew { .. } | Step::Tick | Step::Again(_)) {
            self.passing = None;
        }
        let done = match step {
            Step::Tick => self.tick(),
            // What would be a loss of keys is the death of one.
            Step::Delete(_) | Step::Forget => self.die(),
            Step::Again(_) => self.pass_again(),
            _ => match self.players.call(&self.names, at, step) {
                Some((names, call)) => self.call(names, call),
                None => Ok(false),
            },
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

/// What a model answers, to one that `had` all it names or not, and whose lease was broken or not.
fn said(answer: Answer, had: bool, refused: bool) -> Said {
    let granted = |token| if token > 0 { Said::Granted } else { Said::No };
    match answer {
        Answer::Acquired(Acquired::Granted { .. }) => Said::Granted,
        Answer::Acquired(Acquired::Taken(_)) => Said::Taken,
        Answer::Acquired(Acquired::Broken) => Said::Broken,
        Answer::Renewed(Renewed::Broken) if refused => Said::Broken,
        Answer::Renewed(renewed) => Said::done(renewed == Renewed::Done),
        Answer::Released(released) => Said::done(had && released == Released::Done),
        Answer::Downgraded(token) | Answer::Adopted(token) => granted(token),
        // Where a writer or readers have the name, none is free.
        Answer::Permits(out) => {
            Said::Free(u32::try_from(out).map_or(0, |out| OF.saturating_sub(out)))
        }
        Answer::Broke(broke) => Said::Broke(broke.holders.into()),
    }
}

fn owner_of(call: Call) -> Owner {
    call.asker().map_or(LOOKER, |(owner, ..)| owner)
}

fn seen_of(name: &Name) -> Seen {
    let waits = |owner: &&Owner| name.waiter(**owner).is_some_and(|one| one.overdue > 0);
    let mut holders = name.holders();
    holders.sort_unstable();
    Seen {
        holders,
        is_kept: name.is_kept(),
        queue: name.queue.iter().filter(waits).copied().collect(),
        readers: name.readers.iter().filter(waits).copied().collect(),
    }
}
