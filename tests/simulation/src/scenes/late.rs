//! Messages that come when they should do nothing any more: of a call that was cancelled, or of a lease that is over.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crosslock::{CancelToken, Error, LockGuard, Locker, Result};
use crosslock_world::{spawn, time, true_now, violation};
use fastrand::Rng;

use super::{COMES_TWICE, IS_FREE, NAME, SHORT, hold, only_messages_fail, wait_for_nobody};
use crate::judge::{self, Kind};
use crate::places::Site;
use crate::trouble::own_fault;

/// No message comes later than that, and all that repairs it is over.
pub(super) const LATEST: Duration = Duration::from_millis(900);

/// Those that another cancels soon. Nothing of them stays.
pub fn cancel_early(locker: &Locker) -> Result<()> {
    for _ in 0..3 {
        let token = CancelToken::new();
        let theirs = token.clone();
        let _ = spawn("canceller", move || {
            time::sleep(SHORT);
            theirs.cancel();
        });
        match locker.with_cancel(&token).lock(NAME) {
            Ok(guard) => hold(&[NAME], Kind::Exclusive, guard, SHORT).unlock()?,
            Err(Error::Cancelled { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    wait_for_nobody(LATEST);
    // One that has had the lock, and has released it, may have it anew for a ttl.
    let may_stay = COMES_TWICE.load(Ordering::Relaxed);
    IS_FREE.store(only_messages_fail() && !may_stay, Ordering::Relaxed);
    Ok(())
}

pub(super) static IS_HELD: AtomicBool = AtomicBool::new(false);
pub(super) static WAS_TAKEN_AWAY: AtomicBool = AtomicBool::new(false);

/// Whether it happens before the scene would be over.
pub(super) fn happens(what: &AtomicBool) -> bool {
    let until = true_now() + judge::plan().ttl;
    while !what.load(Ordering::Relaxed) && true_now() < until {
        time::sleep(SHORT / 10);
    }
    what.load(Ordering::Relaxed)
}

/// What an operator has broken is nobody's, whatever comes late.
pub fn hold_until_broken(locker: &Locker) -> Result<()> {
    let guard = locker.lock(NAME)?;
    IS_HELD.store(true, Ordering::Relaxed);
    let guard = hold(&[NAME], Kind::Exclusive, guard, LATEST);
    let is_broken = WAS_TAKEN_AWAY.load(Ordering::Relaxed) && !guard.is_held();
    IS_FREE.store(is_broken && only_messages_fail(), Ordering::Relaxed);
    Ok(())
}

pub fn break_it(locker: &Locker) -> Result<()> {
    if happens(&IS_HELD) {
        judge::breaking(NAME);
        let holders = locker.break_lock(NAME)?;
        let tokens: Vec<u64> = holders.iter().filter_map(|holder| holder.token).collect();
        judge::broke(NAME, &tokens);
        WAS_TAKEN_AWAY.store(!tokens.is_empty(), Ordering::Relaxed);
    }
    Ok(())
}

/// Empties the servers as soon as somebody has the lock.
pub fn lose_data(site: &Site) {
    let site = site.clone();
    let _ = spawn("operator", move || {
        if happens(&IS_HELD) {
            let mut random = Rng::with_seed(0);
            for place in &site.hosts {
                own_fault(&site, *place, |name| name == "flush", SHORT, &mut random);
            }
            WAS_TAKEN_AWAY.store(true, Ordering::Relaxed);
        }
    });
}

/// The token of the one that has had it since.
pub(super) static NEXT: AtomicU64 = AtomicU64::new(0);

/// Who holds what another has had meanwhile learns of it.
pub fn hold_what_is_lost(locker: &Locker) -> Result<()> {
    hold_until_lost(locker.lock(NAME)?, Kind::Exclusive)
}

/// The same of several names, whose leases are renewed together.
pub fn hold_all_that_is_lost(locker: &Locker) -> Result<()> {
    hold_until_lost(locker.lock_all(&[NAME, "other"])?, Kind::Exclusive)
}

pub(super) fn hold_until_lost(guard: LockGuard, kind: Kind) -> Result<()> {
    IS_HELD.store(true, Ordering::Relaxed);
    let guard = hold(&[NAME], kind, guard, judge::plan().ttl.mul_f64(1.2));
    let (own, next) = (guard.fencing_token(), NEXT.load(Ordering::Relaxed));
    if guard.is_held() && next > own {
        violation(format!(
            "token {own} is said to hold it, and {next} has held it since"
        ));
    }
    guard.unlock()
}

pub fn lock_what_was_lost(locker: &Locker) -> Result<()> {
    if happens(&WAS_TAKEN_AWAY) {
        let guard = locker.lock(NAME)?;
        NEXT.store(guard.fencing_token(), Ordering::Relaxed);
        hold(&[NAME], Kind::Exclusive, guard, SHORT / 5).unlock()?;
    }
    Ok(())
}
