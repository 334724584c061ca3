//! What passes leases on, breaks them, looks at them, and closes lockers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use crosslock::{Error, LeaseTicket, LockGuard, Result};
use crosslock_world::{record, spawn_joined, time, true_now, violation};

use super::{Worker, open, owned};
use crate::judge::{self, Kind};
use crate::plan::{Plan, Step, Topology};

/// A lease that is on its way to whoever adopts it.
#[derive(Clone)]
struct Passed {
    id: u64,
    name: String,
    secret: String,
    token: u64,
    /// When its lease was sure to be renewed last.
    since: Duration,
    /// How many have tried.
    tries: usize,
}

static PASSED: Mutex<Vec<Passed>> = Mutex::new(Vec::new());
static ADOPTED: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

fn passed<T>(work: impl FnOnce(&mut Vec<Passed>) -> T) -> T {
    work(&mut PASSED.lock().expect("nobody panics with it"))
}

/// How often somebody tried to adopt a lease, and it was lost.
static LOST: Mutex<BTreeMap<u64, usize>> = Mutex::new(BTreeMap::new());

/// Whether all who have tried so far to adopt that lease have found it lost. Of a quorum's servers two may have adopted
/// it at one each.
fn all_lost(id: u64, plan: &Plan) -> bool {
    let tries = passed(|all| {
        all.iter()
            .find(|one| one.id == id)
            .map_or(2, |one| one.tries)
    });
    let mut lost = LOST.lock().expect("nobody panics with it");
    let lost = lost.entry(id).or_default();
    *lost += 1;
    *lost == tries && (tries == 1 || plan.topology != Topology::Quorum)
}

/// The last that was passed on. Two try to adopt each.
fn next_passed() -> Option<Passed> {
    passed(|all| {
        let one = all.last_mut()?;
        one.tries += 1;
        let one = one.clone();
        if one.tries == 2 {
            all.pop();
        }
        Some(one)
    })
}

impl Worker {
    /// Passes a lease on, and takes one that another has passed on.
    pub(super) fn pass_on(&mut self) -> Result<()> {
        if self.random.bool() {
            return self.adopt();
        }
        let name = self.name("passed");
        let held = self.ask(&name, None, |locker| locker.lock(&name).map(Some))?;
        let guard = self.hold(&[&name], Kind::Exclusive, held.expect("it waits for ever"));
        judge::passed_on(&[&name]);
        let (token, since) = (guard.fencing_token(), true_now());
        let ticket = guard.into_ticket()?;
        record(&format!("passes {name} on, with token {token}"));
        let one = Passed {
            id: judge::number(),
            name,
            secret: ticket.to_secret(),
            token,
            since,
            tries: 0,
        };
        passed(|all| all.push(one));
        Ok(())
    }

    fn adopt(&mut self) -> Result<()> {
        let Some(one) = next_passed() else {
            return Ok(());
        };
        let ticket: LeaseTicket = one.secret.parse()?;
        let call = judge::began(&one.name, None);
        let adopted = self.locker.adopt(&ticket);
        judge::ended(call, false);
        record(&format!(
            "adopts {}: {:?}",
            one.name,
            adopted.as_ref().err()
        ));
        match adopted {
            Ok(guard) => {
                let is_first = ADOPTED
                    .lock()
                    .expect("nobody panics with it")
                    .insert(one.id);
                if !is_first && self.plan.is_safe() {
                    violation(format!("{}: two have adopted a lease", one.name));
                }
                judge::adopted(&one.name, one.token, &guard);
                let name = one.name.as_str();
                let (guard, id) = self.hold_on(&[name], Kind::Exclusive, guard, None);
                judge::ending(&[name], id, false);
                self.release(&[name], owned(guard), LockGuard::unlock)
            }
            Err(Error::Lost { .. }) => {
                let is_fresh = true_now() < one.since + self.plan.ttl.mul_f64(0.6);
                if all_lost(one.id, &self.plan)
                    && is_fresh
                    && self.plan.is_calm()
                    && !self.plan.loses()
                {
                    violation(format!("{} was lost on its way", one.name));
                }
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// An operator breaks a lock.
    pub(super) fn break_one(&mut self) -> Result<()> {
        let kinds = ["lock", "lock", "shared", "permits", "counter", "value"];
        let kind = kinds[self.random.usize(..kinds.len())];
        let name = self.name(kind);
        judge::breaking(&name);
        let holders = self.locker.break_lock(&name)?;
        let tokens: Vec<u64> = holders.iter().filter_map(|holder| holder.token).collect();
        record(&format!("has broken {name}: {tokens:?}"));
        judge::broke(&name, &tokens);
        Ok(())
    }

    /// Whoever holds a lock is shown, and nobody else.
    pub(super) fn inspect(&mut self) -> Result<()> {
        let name = self.name("lock");
        let held = self.ask(&name, None, |locker| locker.lock(&name).map(Some))?;
        let (guard, call) = held.expect("it waits for ever");
        let (guard, id) = self.hold_on(&[&name], Kind::Exclusive, guard, Some(call));
        let seen = self.locker.inspect(&name);
        // Where servers of a quorum are started anew, another may be shown by as many as still know the holder.
        let is_shown = self.plan.topology != Topology::Quorum || self.plan.is_calm();
        if let Ok(seen) = &seen
            && guard.is_held()
            && is_shown
            && self.plan.is_safe()
            && !self.plan.does(Step::Break)
        {
            let pid = crosslock_world::process_id();
            let is_own = |holder: &crosslock::Holder| {
                let party = holder.party.as_ref();
                party.is_some_and(|party| party.pid == pid)
            };
            if seen.holders.len() != 1 || !seen.holders.iter().all(is_own) {
                violation(format!(
                    "{name} is {pid}'s, and {:?} are shown",
                    seen.holders
                ));
            }
        }
        judge::ending(&[&name], id, false);
        let done = self.release(&[&name], owned(guard), LockGuard::unlock);
        seen.and(done)
    }

    /// Closes a locker that holds a lock while another call of it waits.
    pub(super) fn close(&mut self) -> Result<()> {
        let url = self.url.clone();
        let plan = self.plan.clone();
        let Some(locker) = open(&plan, &url, self.prefer, self.part) else {
            return Ok(());
        };
        let name = self.name("closed");
        let call = judge::began(&name, None);
        let guard = locker.lock(&name);
        judge::ended(call, guard.is_ok());
        let (guard, id) = self.hold_on(&[&name], Kind::Exclusive, guard?, Some(call));
        let (other, theirs) = (locker.clone(), name.clone());
        let waits = spawn_joined("waiter", move || {
            let waited = other.lock(&theirs);
            let error = waited.as_ref().err();
            record(&format!("a waiter of a closed locker: {error:?}"));
            if error.is_none() {
                judge::abandoned(&theirs, None);
            }
        });
        time::sleep(Duration::from_millis(self.random.u64(..30)));
        judge::ending(&[&name], id, false);
        judge::abandoned(&name, None);
        let began = true_now();
        locker.close();
        let took = true_now() - began;
        judge::unreleased(&[&name], true_now());
        if took > Duration::from_millis(600) && self.plan.has_time() {
            violation(format!("it took {took:?} to close a locker"));
        }
        if guard.is_held() {
            violation(format!("{name} is held though its locker is closed"));
        }
        if let Ok(waits) = waits {
            let _ = waits.join();
        }
        Ok(())
    }
}
