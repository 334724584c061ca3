//! What has to hold of what a server holds, whatever the model says of it.

use crosslock_protocol::server::{
    Acquired, Answer, Call, Ear, Key, Mode, Name, Names, Owner, Release, Released, Says, Token,
    Waiter,
};

use crosslock_protocol::steps::Step;

use super::replayer::{Outcome, Replayer};

/// More tokens than one script gives out.
const FEW: Token = 64;

pub(crate) struct Rules {
    /// The highest number that the counter of each name ever held.
    highest: Vec<Token>,
}

/// A call, the names before it, and what became of it.
#[derive(Clone, Copy)]
pub(crate) struct Done<'a> {
    pub(crate) names: Names,
    pub(crate) call: Call,
    pub(crate) before: &'a [Name],
    pub(crate) outcome: &'a Outcome,
    pub(crate) ears: &'a [Ear],
}

impl Rules {
    pub(crate) fn new(names: usize) -> Self {
        Rules {
            highest: vec![0; names],
        }
    }

    /// Tokens increase also where a counter was lost, if the clock wasn't behind it: leases that end by themselves take
    /// longer than tokens are skipped for them, unlike here.
    pub(crate) fn suffer(&self, step: Step, replayer: &mut Replayer) {
        if let Step::Delete(Key::Counter) | Step::Forget | Step::FailOver = step {
            let highest = self.highest.iter().max().copied().unwrap_or(0);
            replayer.wait_for_clock(highest + FEW);
        }
    }

    /// Says what doesn't hold.
    pub(crate) fn check(&mut self, done: Done<'_>) -> Result<(), String> {
        self.check_tokens(done)?;
        done.outcome.names.iter().try_for_each(check_holders)?;
        if !has_served(done) {
            return Ok(());
        }
        let names = done.outcome.names.iter().enumerate();
        let mut served = names.filter(|(at, _)| done.names.has(*at));
        served.try_for_each(|(_, name)| check_nobody_could_be_let_in(name, done.ears))
    }

    fn check_tokens(&mut self, done: Done<'_>) -> Result<(), String> {
        let granted = match (done.call, done.outcome.answer) {
            (Call::Acquire(ask), Answer::Acquired(Acquired::Granted { token, .. })) => {
                Some((ask.owner, token))
            }
            (Call::Downgrade { ask, .. }, Answer::Downgraded(token)) if token > 0 => {
                Some((ask.owner, token))
            }
            (Call::Adopt(ask), Answer::Adopted(token)) if token > 0 => Some((ask.owner, token)),
            _ => None,
        };
        let names = done.outcome.names.iter().zip(done.before).enumerate();
        for ((at, (after, before)), highest) in names.zip(&mut self.highest) {
            let counter = after.counter.map_or(0, |counter| counter.number);
            let was = before.counter.map_or(0, |counter| counter.number);
            if let Some((owner, token)) = granted.filter(|_| done.names.has(at)) {
                // A repeated request is told the same again.
                let mut shares = before.shares.iter();
                let is_its = shares.any(|one| (one.owner, one.token) == (owner, token));
                let repeats = before.is_held_by(owner) && (token >= was || is_its);
                check(repeats || token > *highest, || {
                    format!("{token} after {highest}")
                })?;
            }
            check(counter >= was, || format!("{counter} counted after {was}"))?;
            *highest = counter.max(*highest);
        }
        Ok(())
    }
}

fn check(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

fn check_holders(name: &Name) -> Result<(), String> {
    let Some(lock) = name.lock else {
        return Ok(());
    };
    let is_foreign = lock.says == Says::Foreign;
    check(is_foreign || lock.lasts.is_some(), || {
        "a lock without a ttl".to_owned()
    })?;
    let out: i16 = name.shares.iter().map(|share| i16::from(share.count)).sum();
    match lock.says {
        Says::Permits(said) if !name.shares.is_empty() => {
            check(said == out, || format!("{out} permits are out, not {said}"))
        }
        Says::Owner(_) => {
            let is_odd = name.counter.is_none_or(|counter| counter.number % 2 == 1);
            check(is_odd, || {
                "an even counter, and an exclusive holder".to_owned()
            })
        }
        _ => Ok(()),
    }
}

/// Whether the call let in those that could be.
fn has_served(done: Done<'_>) -> bool {
    let had = |owner| {
        let mut names = done.before.iter().enumerate();
        names.all(|(at, name)| !done.names.has(at) || name.is_held_by(owner))
    };
    match (done.call, done.outcome.answer) {
        (Call::Release(Release { keep: Some(_), .. }), _) => false,
        (Call::Release(ask), Answer::Released(Released::Done)) => had(ask.owner),
        // What it had somebody else has ended, and has let in others.
        (Call::Release(_), Answer::Released(Released::Broken)) => false,
        (Call::Release(ask), _) => ask.counter_after == 0,
        (Call::Break, _) => true,
        (Call::Acquire(ask), _) if is_refused(done, ask.owner) => false,
        (Call::Acquire(ask), Answer::Acquired(Acquired::Taken(_))) => {
            // Whoever asks is there while it asks, whoever hears it.
            let inbox = ask.wait.and_then(|wait| wait.inbox);
            inbox.is_none_or(|inbox| done.ears[usize::from(inbox)] != Ear::Gone)
        }
        _ => false,
    }
}

/// Whether somebody broke the lease of an owner, which isn't over yet.
fn is_refused(done: Done<'_>, owner: Owner) -> bool {
    let mut names = done.before.iter().enumerate();
    names.any(|(at, name)| done.names.has(at) && name.refuses_broken(owner))
}

/// The first that lives and hears waits because it has to.
fn check_nobody_could_be_let_in(name: &Name, ears: &[Ear]) -> Result<(), String> {
    let hears = |waiter: &Waiter| {
        let ear = waiter.inbox.map(|inbox| ears[usize::from(inbox)]);
        waiter.lives() && ear != Some(Ear::Gone)
    };
    let mut line = name.queue.iter().chain(&name.readers);
    let first = line.find_map(|owner| name.waiter(*owner).filter(|waiter| hears(waiter)));
    let Some(first) = first else {
        return Ok(());
    };
    // Leases that are over, but that nobody has looked for, are counted as well: this comes after a look.
    let fits = match (name.lock.map(|lock| lock.says), first.mode) {
        (None, _) => true,
        (Some(Says::Readers), mode) => mode.is_read(),
        (Some(Says::Permits(out)), Mode::Permits { count, of }) => {
            out + i16::from(count) <= i16::from(of)
        }
        _ => false,
    };
    check(!fits, || format!("{} could be let in", first.owner))
}
