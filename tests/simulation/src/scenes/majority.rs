//! Leases of a quorum: they last for as long as a majority of the servers keeps them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crosslock::{LockGuard, Locker, Result};
use crosslock_world::service::Fault;
use crosslock_world::{
    Cut, Machine, Place, contents_of, cut, heal, record, spawn, time, violation,
};

use super::late::{IS_HELD, LATEST, happens};
use super::order::IN_QUEUE;
use super::{COMES_TWICE, IS_FREE, NAME, SHORT, hold};
use crate::events::Event;
use crate::judge::{self, Kind};
use crate::places::Site;
use crate::plan::Trouble;
use crate::trouble::{fail_host, later};

/// All servers but one stand still as soon as somebody has the lock.
pub fn leave_one(site: &Site) {
    let site = site.clone();
    let _ = spawn("operator", move || {
        if happens(&IS_HELD) {
            stand_still(&site.hosts[1..]);
        }
    });
}

/// The last one does, from the beginning.
pub fn leave_two(site: &Site) {
    stand_still(&site.hosts[2..]);
}

/// What a machine sends to the line's server comes late, as soon as a process of it has the lock, but before a release
/// stops waiting for an answer.
pub fn delay_line(site: &Site, machine: Machine) {
    let to_host = Cut {
        to_host: true,
        to_client: false,
    };
    cut_line(site, machine, to_host, SHORT * 8);
}

/// The machine is cut off from that server, for longer than a release waits.
pub fn cut_off(site: &Site, machine: Machine) {
    let both = Cut {
        to_host: true,
        to_client: true,
    };
    cut_line(site, machine, both, SHORT * 100);
}

fn cut_line(site: &Site, machine: Machine, ways: Cut, lasts: Duration) {
    let line = site.hosts[0];
    let _ = spawn("operator", move || {
        if happens(&IS_HELD) {
            cut(machine, line, ways);
            later(lasts, move || heal(machine, line));
        }
    });
}

/// What goes wrong where the server hears of it all the same.
const CUTS: [Trouble; 2] = [Trouble::CutNetwork, Trouble::Message];

/// The server that it is cut off from hears of the release afterwards.
pub fn release_cut_off(locker: &Locker) -> Result<()> {
    let guard = locker.lock(NAME)?;
    IS_HELD.store(true, Ordering::Relaxed);
    hold(&[NAME], Kind::Exclusive, guard, SHORT).unlock()?;
    time::sleep(LATEST);
    let may_stay = COMES_TWICE.load(Ordering::Relaxed);
    let is_free = !may_stay && (judge::plan().troubles.iter()).all(|it| CUTS.contains(it));
    IS_FREE.store(is_free, Ordering::Relaxed);
    Ok(())
}

fn stand_still(hosts: &[Place]) {
    for place in hosts {
        fail_host(*place, Fault::Pause, Fault::Resume, judge::plan().ttl * 2);
    }
}

/// What only one server renews is lost.
pub fn hold_by_one(locker: &Locker) -> Result<()> {
    let guard = locker.lock(NAME)?;
    IS_HELD.store(true, Ordering::Relaxed);
    let long = judge::plan().ttl.mul_f64(1.2);
    let guard = hold(&[NAME], Kind::Exclusive, guard, long);
    if guard.is_held() && !Event::has_happened(Duration::ZERO) {
        violation("a lease is held that only one of three servers renews".to_owned());
    }
    guard.unlock()
}

pub fn hold_before(locker: &Locker) -> Result<()> {
    let guard = locker.lock(NAME)?;
    hold(&[NAME], Kind::Exclusive, guard, IN_QUEUE * 5).unlock()
}

/// The process stands still while it is let in: what it has is as old as that.
pub fn hear_late(locker: &Locker) -> Result<()> {
    time::sleep(IN_QUEUE / 2);
    let guard = locker.lock(NAME)?;
    judge_claim(&guard);
    hold(&[NAME], Kind::Exclusive, guard, SHORT).unlock()
}

static IS_RELEASED: AtomicBool = AtomicBool::new(false);

/// It has waited for the lock, so its release reaches the line's server last.
pub fn release_late(locker: &Locker) -> Result<()> {
    time::sleep(IN_QUEUE / 2);
    let guard = locker.lock(NAME)?;
    IS_HELD.store(true, Ordering::Relaxed);
    hold(&[NAME], Kind::Exclusive, guard, SHORT).unlock()?;
    IS_RELEASED.store(true, Ordering::Relaxed);
    Ok(())
}

/// Whoever tries behind a release finds the lock free.
pub fn try_behind_release(locker: &Locker) -> Result<()> {
    let guard = locker.lock(NAME)?;
    hold(&[NAME], Kind::Exclusive, guard, IN_QUEUE).unlock()?;
    if !happens(&IS_RELEASED) {
        return Ok(());
    }
    match locker.try_lock(NAME)? {
        Some(guard) => hold(&[NAME], Kind::Exclusive, guard, SHORT).unlock(),
        None if judge::plan().is_calm() => {
            violation("a lock is taken although its release has returned".to_owned());
            Ok(())
        }
        None => Ok(()),
    }
}

/// It counts on its lease for no longer than two of three servers keep it.
fn judge_claim(guard: &LockGuard) {
    let claim = guard.remaining();
    let left = |host| {
        let lines = contents_of(Place { service: 0, host });
        let line = lines
            .into_iter()
            .find(|line| line.starts_with("{crosslock:scene} string "))?;
        let millis = line.strip_suffix(" ms")?.rsplit(' ').next()?.parse().ok()?;
        Some(Duration::from_millis(millis))
    };
    let mut kept: Vec<Duration> = (0..3).filter_map(left).collect();
    kept.sort();
    record(&format!("claims {claim:?}, and {kept:?} are kept"));
    let by_two = kept.iter().rev().nth(1).copied().unwrap_or_default();
    if claim > by_two {
        violation(format!(
            "it counts on {claim:?}, and a majority keeps it for {by_two:?}"
        ));
    }
}
