//! What is set once, latches, barriers and elections.

use std::time::Duration;

use crosslock::crossbeam_channel::Receiver;
use crosslock::{Election, Error, Leader, Leadership, LockGuard, Result};
use crosslock_world::{record, time, true_now, violation};

use super::{Worker, in_time, locks::panic_with, owned};
use crate::judge::meetings::{self, Came, SOON};
use crate::judge::{self, Kind};

impl Worker {
    /// A name that is used for a while: what is set once is of no more use then.
    fn passing_name(&mut self, kind: &str) -> (String, u64) {
        let age = true_now().as_secs() / 2;
        let name = self.name(kind);
        (format!("{name}-{age}"), age)
    }

    pub(super) fn once(&mut self) -> Result<()> {
        let (name, _) = self.passing_name("once");
        let once = self.locker.once_lock::<u64>(&name)?;
        let own = judge::number();
        let began = true_now();
        match self.random.u32(..4) {
            0 => match once.get()? {
                Some(value) => meetings::is_set(&name, value),
                None => meetings::is_unset(&name, began),
            },
            1 => match once.wait_for(Duration::from_millis(self.random.u64(..1_000)))? {
                Some(value) => meetings::is_set(&name, value),
                // Where threads or messages are held up, its last answer may be as old as the call.
                None if !self.plan.is_calm() => meetings::is_unset(&name, began),
                None => meetings::is_unset(&name, true_now().saturating_sub(SOON).max(began)),
            },
            2 => {
                if once.set(own)?.is_ok() {
                    meetings::is_set(&name, own);
                }
            }
            _ => {
                // Others come meanwhile.
                let lasts = Duration::from_millis(self.random.u64(..100));
                let init = || {
                    time::sleep(lasts);
                    own
                };
                meetings::is_set(&name, once.get_or_init(init)?);
            }
        }
        Ok(())
    }

    pub(super) fn latch(&mut self) -> Result<()> {
        let (name, age) = self.passing_name("latch");
        let of = u32::try_from(age % 4 + 1).unwrap_or(1);
        let latch = self.locker.latch(&name, of)?;
        let began = true_now();
        match self.random.u32(..3) {
            0 => {
                meetings::counting(&name);
                let left = latch.count_down()?;
                record(&format!("counts {name} of {of} down to {left}"));
                meetings::counted(&name, of, left);
            }
            1 => {
                let certain = meetings::certainly_counted(&name);
                let left = latch.remaining()?;
                meetings::left_of(&name, of, left, certain);
            }
            _ => {
                let timeout = Duration::from_millis(self.random.u64(..3_000));
                let is_open = latch.wait_for(timeout)?;
                meetings::waited(&name, of, began, is_open);
            }
        }
        Ok(())
    }

    pub(super) fn barrier(&mut self) -> Result<()> {
        let at = self.random.usize(..self.plan.names);
        let (name, n) = (format!("barrier-{at}"), 2 + at % 2);
        let barrier = self.locker.barrier(&name, n)?;
        let timeout = Duration::from_millis(self.random.u64(..3_000));
        let (id, end) = (meetings::coming(&name), true_now() + timeout);
        record(&format!("comes to {name}"));
        let met = barrier.wait_for(timeout);
        let how = match &met {
            Ok(Some(met)) if met.is_leader() => Came::Leader,
            Ok(Some(_)) => Came::Follower,
            Ok(None) => Came::TooEarly,
            Err(_) => Came::Unknown,
        };
        record(&format!("came to {name}: {how:?}"));
        meetings::came(&name, n, id, how);
        match met {
            // Its time was over before the answer.
            Err(Error::Unavailable { .. }) if true_now() >= end => Ok(()),
            met => met.map(drop),
        }
    }

    pub(super) fn election(&mut self) -> Result<()> {
        let name = self.name("election");
        let election = self.locker.election(&name)?;
        let observes = self.random.u32(..3) == 0;
        let observed = observes.then(|| election.observe()).transpose()?;
        let timeout = self.plan.ttl.mul_f64(self.random.f64());
        if self.random.u32(..4) == 0 {
            return self.lead_in_silence(&name, &election, timeout);
        }
        let Some((led, call)) = self.ask(&name, Some(timeout + SOON), |_| {
            in_time(timeout, || election.try_campaign_for(timeout))
        })?
        else {
            return Ok(());
        };
        let (led, id) = self.hold_on(&[&name], Kind::Exclusive, led, Some(call));
        // It has published nothing yet.
        let first = election.leader();
        let leads = first.as_ref().ok().and_then(Option::as_ref);
        meetings::shown(&name, leads);
        let (own, shown) = (led.fencing_token(), leads.map(|leader| leader.token));
        // One that has died has left what it published.
        if shown.is_some_and(|it| it != own) && led.is_held() && self.plan.keeps_leases() {
            violation(format!("{name}: {own} leads, and {leads:?} is shown"));
        }
        let text = judge::number().to_string();
        meetings::publishing(&name, led.fencing_token(), &text);
        let published = led.publish(&*text);
        let shown = election.leader();
        meetings::shown(&name, shown.as_ref().ok().and_then(Option::as_ref));
        if published.is_ok() && self.plan.is_calm() && led.is_held() {
            judge_shown(&led, &text, shown.as_ref().ok());
            if let Some(observed) = observed {
                judge_observed(&led, &text, &observed);
            }
        }
        let panics = self.random.u32(..8) == 0;
        judge::ending(&[&name], id, panics);
        let done = match panics {
            true => panic_with(&name, owned(led)),
            false => self.release(&[&name], owned(led), Leadership::resign),
        };
        first.and(published).and(shown.map(drop)).and(done)
    }

    /// Takes the lock of an election, and says nothing: what a leader before has published is no more shown.
    fn lead_in_silence(&mut self, name: &str, of: &Election, timeout: Duration) -> Result<()> {
        let held = self.ask(name, Some(timeout), |locker| {
            locker.try_lock_for(name, timeout)
        })?;
        let Some((guard, call)) = held else {
            return Ok(());
        };
        let (guard, id) = self.hold_on(&[name], Kind::Exclusive, guard, Some(call));
        let shown = of.leader();
        let token = guard.fencing_token();
        // A thread before may have led by the same lease, which has so many tokens.
        if let Ok(Some(leader)) = &shown
            && leader.token + 1024 <= token
            && guard.is_held()
            && self.plan.keeps_leases()
        {
            violation(format!("{name}: {token} has it, and {leader:?} is shown"));
        }
        judge::ending(&[name], id, false);
        let done = self.release(&[name], owned(guard), LockGuard::unlock);
        shown.and(done)
    }
}

/// Whoever looks sees who leads.
fn judge_shown(led: &Leadership, text: &str, shown: Option<&Option<Leader>>) {
    let (name, token) = (led.name(), led.fencing_token());
    let is_own = |leader: &Leader| leader.token == token && leader.value.as_deref() == Some(text);
    let is_right = shown.is_none_or(|shown| shown.as_ref().is_some_and(is_own));
    if !is_right && led.is_held() {
        violation(format!(
            "{name}: {token} leads with {text}, and {shown:?} is shown"
        ));
    }
}

/// Who observes is told of it soon.
fn judge_observed(led: &Leadership, text: &str, observed: &Receiver<Option<Leader>>) {
    let until = true_now() + SOON;
    let mut last = None;
    while let Ok(leader) = observed.recv_timeout(until.saturating_sub(true_now())) {
        meetings::shown(led.name(), leader.as_ref());
        last = leader.and_then(|leader| leader.value);
        if last.as_deref() == Some(text) {
            return;
        }
    }
    if led.is_held() {
        let name = led.name();
        violation(format!(
            "{name}: {text} was published, and {last:?} observed"
        ));
    }
}
