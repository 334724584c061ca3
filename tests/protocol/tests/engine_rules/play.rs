//! Owners that ask, renew, release and die, by the model of the scripts and by the rules, which have to agree.
//!
//! There are no late copies here, nobody hears grants, waiters keep their places without asking again, and nothing is lost but owners: that is
//! all that memory and directories know. So an owner that isn't told yet that it has the lock doesn't act as if it had it. After each
//! tick somebody looks.

use crosslock_protocol::mutant::Mutant;
use crosslock_protocol::server::{
    Acquire, Acquired, Adopt, Answer, Call, Messages, Mode, Name, Names, Owner, Release, Released,
    Renew, Renewed, Says, Server, Ticks, Token, Wait, run,
};

use crate::base::token::Ending;
use crate::engine;
use crate::engine::subject::{Ask, Place, Seen, Subject, ticks};
use crate::steps::{Claim, End, Step};

/// Longer than any sequence of steps: those that wait needn't ask again.
const FOR_EVER: Ticks = Ticks::MAX;

/// Nobody else's number.
const LOOKER: Owner = 7;

pub(crate) struct Play {
    name: Name,
    mutant: Option<Mutant>,
    /// The clock of the model's server.
    clock: Token,
    subject: Subject,
    owners: Vec<Player>,
    /// Since the last exclusive holder, one was let in that never heard of it. The scripts say that it abandoned the lock.
    was_unheard: bool,
    /// The last token of the rules.
    last: u64,
}

#[derive(Clone, Copy)]
struct Player {
    mode: Mode,
    held_as: Mode,
    /// Of a lease that it knows of: the model's, and that of the rules.
    tokens: Option<(Token, u64)>,
    is_broken: bool,
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
    pub(crate) fn new(claims: &[Claim], place: Place, mutant: Option<Mutant>) -> Self {
        let owners = claims.iter().map(|claim| Player {
            mode: claim.mode,
            held_as: claim.mode.held(),
            tokens: None,
            is_broken: false,
            has_kept: false,
        });
        Play {
            name: Name::default(),
            mutant,
            clock: 1_000_000,
            subject: Subject::new(place),
            owners: owners.collect(),
            was_unheard: false,
            last: 0,
        }
    }

    /// Says whether anything was done.
    pub(crate) fn apply(&mut self, step: Step) -> Checked {
        let done = match step {
            Step::Ask {
                owner,
                ttl,
                promise,
                ..
            } => self.ask(owner, ttl, promise.is_some()),
            Step::Renew { owner, ttl } => self.renew(owner, ttl),
            Step::Release { owner, end, keep } => self.release(owner, end, keep),
            Step::Downgrade { owner, more, ttl } => self.downgrade(owner, more, ttl),
            Step::Adopt {
                owner,
                from,
                more,
                ttl,
            } => self.adopt((owner, from), more, ttl),
            Step::Permits => self.permits(),
            Step::Break => self.break_lock(),
            Step::Tick => self.tick(),
            // What would be a loss of keys is the death of one.
            Step::Delete(_) | Step::Forget => self.die(),
            Step::Again(_) | Step::Ear(..) | Step::Copy | Step::FailOver | Step::Foreign(_) => {
                return Ok(false);
            }
        }?;
        agree(
            "who has it and who waits",
            seen_of(&self.name),
            self.subject.seen(),
        )?;
        Ok(done)
    }

    fn model(&mut self, call: Call) -> Answer {
        self.clock += 10_000;
        let server = Server {
            now: self.clock,
            ears: &[],
            hand_overs: 1024,
            mutant: self.mutant,
        };
        let names = Names::one(0);
        let mut all = [std::mem::take(&mut self.name)];
        let answer = run(names.of(&mut all), call, server, &mut Messages::new());
        let [name] = all;
        self.name = name;
        answer
    }

    fn ask(&mut self, owner: Owner, ttl: Ticks, waits: bool) -> Checked {
        let player = self.owners[usize::from(owner)];
        // An owner is of one call, which wants one thing.
        let wants_another = player.tokens.is_some() && player.held_as != player.mode.held();
        if player.is_broken || wants_another {
            return Ok(false);
        }
        self.owners[usize::from(owner)].held_as = player.mode.held();
        let wait = Wait {
            promise: FOR_EVER,
            inbox: None,
        };
        let asked = self.model(Call::Acquire(Acquire {
            owner,
            ttl,
            mode: player.mode,
            wait: waits.then_some(wait),
            valued: false,
        }));
        let Answer::Acquired(model) = asked else {
            unreachable!("it was asked for the lock");
        };
        let mut waiters = self.name.waiters.iter_mut();
        if let Some(waiter) = waiters.find(|one| one.owner == owner) {
            // It is let in for as long as it needs to ask.
            waiter.ttl = FOR_EVER;
        }
        let ask = Ask {
            owner,
            mode: player.mode,
            ttl,
        };
        match (model, self.subject.acquire(ask, waits)) {
            (Acquired::Granted { token, .. }, engine::Answer::Granted(its)) => {
                self.granted(owner, player, (token, its.token.number))?;
            }
            (Acquired::Taken(_), engine::Answer::Taken { .. }) => {
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
        if !(self.was_unheard && model) {
            agree("abandoned", model, rules)?;
        }
        if player.mode.is_exclusive() {
            // Who gives up leaves it to be told again.
            self.was_unheard &= model && !rules;
        }
        let player = &mut self.owners[usize::from(owner)];
        player.tokens = Some((token, its));
        player.held_as = player.mode.held();
        Ok(())
    }

    /// Whoever is meant, or has it; `None` for one that knows of no lease.
    fn who(&self, owner: Option<Owner>) -> Option<(Owner, Player, (Token, u64))> {
        let owner = owner.or_else(|| seen_of(&self.name).holders.first().copied())?;
        let player = self.owners[usize::from(owner)];
        Some((owner, player, player.tokens?))
    }

    fn renew(&mut self, owner: Option<Owner>, ttl: Ticks) -> Checked {
        let Some((owner, player, _)) = self.who(owner) else {
            return Ok(false);
        };
        let mode = player.held_as;
        let renewed = self.model(Call::Renew(Renew {
            owner,
            ttl,
            mode,
            value: None,
            granted: 0,
        }));
        let its = self.subject.renew(Ask { owner, mode, ttl });
        agree("renewed", renewed == Answer::Renewed(Renewed::Done), its)?;
        Ok(true)
    }

    fn release(&mut self, owner: Option<Owner>, end: End, keep: Option<Ticks>) -> Checked {
        let owner = owner.or_else(|| seen_of(&self.name).holders.first().copied());
        let owner = owner.unwrap_or(0);
        let player = self.owners[usize::from(owner)];
        let Some((token, its)) = player.tokens else {
            self.give_up(owner)?;
            return Ok(true);
        };
        let last = |token: Token, more: Token| token + 2 * more;
        let used = |more: Token| its + 2 * more.unsigned_abs();
        let (counter_after, ending) = match end {
            End::Unknown => (0, Ending::Unknown),
            End::Clean { more } => {
                let last_used = used(more);
                (last(token, more) + 1, Ending::Clean { last_used })
            }
            End::Panicked { more } => {
                let next = last(token, more) + 2;
                let next = if next % 8 == 7 { next + 2 } else { next };
                let last_used = used(more);
                (next, Ending::Panicked { last_used })
            }
        };
        // Once: an owner is of one call.
        let may_keep = self.name.is_held_by(owner) && counter_after > 0 && !player.has_kept;
        let keep = keep.filter(|_| may_keep);
        let had = self.name.is_held_by(owner);
        let mode = player.held_as;
        let ask = Release {
            owner,
            counter_after,
            mode,
            value: None,
            keep,
        };
        let released = self.model(Call::Release(ask));
        let its = Ask {
            owner,
            mode,
            ttl: 1,
        };
        let done = self.subject.release(its, ending, keep.unwrap_or(0));
        let model = had && released == Answer::Released(Released::Done);
        agree("released", model, done)?;
        let player = &mut self.owners[usize::from(owner)];
        player.tokens = None;
        player.has_kept |= keep.is_some();
        Ok(true)
    }

    /// One that doesn't know what it has.
    fn give_up(&mut self, owner: Owner) -> Result<(), String> {
        let mode = match self.owners.get(usize::from(owner)) {
            Some(player) => player.held_as,
            None => Mode::Exclusive,
        };
        self.model(Call::Release(Release {
            owner,
            counter_after: 0,
            mode,
            value: None,
            keep: None,
        }));
        let ask = Ask {
            owner,
            mode,
            ttl: 1,
        };
        self.subject.release(ask, Ending::Unknown, 0);
        if let Some(player) = self.owners.get_mut(usize::from(owner)) {
            player.tokens = None;
        }
        agree("after giving up", seen_of(&self.name), self.subject.seen())
    }

    fn downgrade(&mut self, owner: Option<Owner>, more: Token, ttl: Ticks) -> Checked {
        let Some((owner, player, (token, its))) = self.who(owner) else {
            return Ok(false);
        };
        if self.name.owner() != Some(owner) {
            return Ok(false);
        }
        let mode = player.held_as;
        let ask = Renew {
            owner,
            ttl,
            mode,
            value: None,
            granted: 0,
        };
        let counter_after = token + 2 * more + 1;
        let downgraded = self.model(Call::Downgrade { ask, counter_after });
        let last_used = its + 2 * more.unsigned_abs();
        let its = self.subject.downgrade(Ask { owner, mode, ttl }, last_used);
        let (Answer::Downgraded(token @ 1..), Some(its)) = (downgraded, its) else {
            return Err(format!("downgraded: {downgraded:?} and {its:?}"));
        };
        self.passed((owner, Mode::Read), (token, its.number), last_used)
    }

    /// A lease goes on with another token.
    fn passed(
        &mut self,
        (owner, held_as): (Owner, Mode),
        tokens: (Token, u64),
        last_used: u64,
    ) -> Checked {
        if tokens.1 <= last_used.max(self.last) {
            return Err(format!("token {} after {last_used}", tokens.1));
        }
        if held_as.is_exclusive() {
            agree("abandoned", tokens.0.rem_euclid(4) == 3, tokens.1 % 4 == 3)?;
        }
        self.last = tokens.1;
        let player = &mut self.owners[usize::from(owner)];
        (player.tokens, player.held_as) = (Some(tokens), held_as);
        Ok(true)
    }

    fn adopt(&mut self, (owner, from): (Owner, Option<Owner>), more: Token, ttl: Ticks) -> Checked {
        let Some((from, player, (token, its))) = self.who(from) else {
            return Ok(false);
        };
        let new = self.owners[usize::from(owner)];
        let seen = self.subject.seen();
        let all = [&seen.holders, &seen.queue, &seen.readers];
        let is_new = !all.iter().any(|list| list.contains(&owner)) && !new.is_broken;
        let mode = player.held_as;
        if owner == from || !is_new || new.mode.held() != mode {
            return Ok(false);
        }
        let adopted = self.model(Call::Adopt(Adopt {
            owner,
            ttl,
            mode,
            from,
            counter_after: token + 2 * more + 1,
        }));
        let last_used = its + 2 * more.unsigned_abs();
        let its = self
            .subject
            .adopt(Ask { owner, mode, ttl }, from, last_used);
        self.owners[usize::from(from)].tokens = None;
        match (adopted, its) {
            (Answer::Adopted(0), None) => Ok(true),
            (Answer::Adopted(token), Some(its)) if token > 0 => {
                self.passed((owner, mode), (token, its.number), last_used)
            }
            (model, its) => Err(format!("adopted: {model:?} and {its:?}")),
        }
    }

    fn permits(&mut self) -> Checked {
        const OF: u8 = 8;
        let Answer::Permits(out) = self.model(Call::Permits) else {
            unreachable!("it was asked for the permits");
        };
        let free = match u32::try_from(out) {
            Ok(out) => u32::from(OF).saturating_sub(out),
            Err(_) => 0,
        };
        agree("free permits", free, self.subject.free_permits(OF))?;
        Ok(true)
    }

    /// Where somebody has it that doesn't know, the scripts refuse that one from then on, and the rules let it ask anew.
    fn break_lock(&mut self) -> Checked {
        if !self.subject.unaware().is_empty() {
            return Ok(false);
        }
        let Answer::Broke(broke) = self.model(Call::Break) else {
            unreachable!("it was broken");
        };
        let (holders, owners) = self.subject.break_lock();
        agree(
            "whose lease was broken",
            usize::from(broke.holders),
            holders,
        )?;
        for owner in owners {
            let player = &mut self.owners[usize::from(owner)];
            (player.tokens, player.is_broken) = (None, true);
        }
        Ok(true)
    }

    fn tick(&mut self) -> Checked {
        let unaware = self.subject.unaware();
        self.name.tick();
        self.subject.now = self.subject.now.plus(ticks(1));
        let ended = unaware != self.subject.unaware();
        self.was_unheard |= ended;
        self.give_up(LOOKER)?;
        Ok(true)
    }

    /// The process of the first holder ends, or else that of the first that waits.
    fn die(&mut self) -> Checked {
        let seen = self.subject.seen();
        let mut all = [seen.holders, seen.queue, seen.readers]
            .into_iter()
            .flatten();
        let Some(owner) = all.next() else {
            return Ok(false);
        };
        self.was_unheard |= self.subject.unaware().contains(&owner);
        if self.name.owner() == Some(owner) {
            self.name.lock = None;
        }
        let mode = self.owners[usize::from(owner)].held_as;
        self.model(Call::Release(Release {
            owner,
            counter_after: 0,
            mode,
            value: None,
            keep: None,
        }));
        self.subject.die(owner);
        self.owners[usize::from(owner)].tokens = None;
        Ok(true)
    }
}

fn seen_of(name: &Name) -> Seen {
    let waits = |owner: &&Owner| name.waiter(**owner).is_some_and(|one| one.overdue > 0);
    let mut seen = Seen {
        queue: name.queue.iter().filter(waits).copied().collect(),
        readers: name.readers.iter().filter(waits).copied().collect(),
        ..Seen::default()
    };
    match name.lock.map(|lock| lock.says) {
        Some(Says::Owner(owner)) => seen.holders.push(owner),
        Some(Says::Kept) => seen.is_kept = true,
        Some(Says::Readers | Says::Permits(_)) => {
            let there = name.shares.iter().filter(|one| one.lasts > 0);
            for share in there {
                if share.kept {
                    seen.is_kept = true;
                } else {
                    seen.holders.push(share.owner);
                }
            }
        }
        _ => {}
    }
    seen.holders.sort_unstable();
    seen
}
