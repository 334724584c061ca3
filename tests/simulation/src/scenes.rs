//! Short scenes for the loop over messages: each is played once for each message and each thing that can happen to it.
//!
//! A scene is the same each time, so its messages have numbers. It may end with errors, and must end in time, without
//! two holders, and with its locks free.

use std::sync::Arc;
use std::time::Duration;

use crosslock::{Error, LockGuard, Locker, MutexGuard, Result};
use crosslock_world::{
    Message, add_machine, add_process, messages, record, set_message_fault, time, violation,
};

use crate::judge::{self, Kind};
use crate::places::Site;
use crate::plan::Plan;
use crate::work::causes;

/// What processes do in it, one function each, and all at once.
type Roles = &'static [fn(&Locker) -> Result<()>];

pub const SCENES: [(&str, Roles); 10] = [
    ("free", &[lock_twice]),
    ("contended", &[lock_twice, lock_twice, lock_twice]),
    ("renewed", &[lock_for_long, lock_twice]),
    ("timed", &[lock_for_long, wait_too_short]),
    ("shared", &[read, read, write, read]),
    ("permits", &[permits, permits, permits]),
    ("all", &[lock_both, lock_both, lock_twice]),
    ("value", &[count, count, count]),
    ("passed", &[pass_on, lock_twice]),
    ("closed", &[close_while_held, lock_twice]),
];

const NAME: &str = "scene";

/// Plays a scene, and then sees that its locks are free.
pub fn play(plan: &Plan, site: &Site, scene: &str, fault: Option<(u64, Message)>) {
    let found = SCENES.iter().find(|(name, _)| *name == scene);
    let (_, roles) = found.expect("a scene of that name");
    set_message_fault(fault);
    let machine = add_machine("machine", 0);
    let (ended, ends) = crosslock_world::channel::bounded(roles.len() + 1);
    for (at, role) in roles.iter().enumerate() {
        let (plan, site, ended, role) = (plan.clone(), site.clone(), ended.clone(), *role);
        add_process(machine, &format!("role-{at}"), move || {
            perform(&plan, &site, role);
            let _ = ended.try_send(());
        });
    }
    // Four times what all of them take if each meets an outage.
    let most = (plan.ttl * 10 + plan.io_timeout * 10) * 4;
    for _ in roles.iter() {
        if ends.recv_timeout(most).is_err() {
            return violation(format!("the scene isn't over after {most:?}"));
        }
    }
    record(&format!("{} messages", messages()));
    set_message_fault(None);
    let plan = plan.clone();
    let site = site.clone();
    add_process(machine, "last", move || {
        perform(&plan, &site, all_is_free);
        let _ = ended.try_send(());
    });
    if ends.recv_timeout(most).is_err() {
        violation("the locks aren't free".to_owned());
    }
}

fn perform(plan: &Plan, site: &Site, role: fn(&Locker) -> Result<()>) {
    let opened = Locker::builder(&site.url)
        .ttl(plan.ttl)
        .io_timeout(plan.io_timeout)
        .connect_timeout(plan.io_timeout)
        .build();
    let done = opened.and_then(|locker| role(&locker));
    if let Err(error) = done {
        record(&format!("error: {}", causes(&error)));
        let is_odd = matches!(
            error,
            Error::Busy { .. }
                | Error::Cancelled { .. }
                | Error::Unsupported { .. }
                | Error::InvalidOption { .. }
        );
        if is_odd {
            violation(format!(
                "an error that nothing explains: {}",
                causes(&error)
            ));
        }
    }
}

/// Holds it for a while, as the judge sees it, and gives it back.
fn hold(names: &[&str], kind: Kind, guard: LockGuard, work: Duration) -> LockGuard {
    let guard = Arc::new(guard);
    let id = judge::acquired(names, kind, &guard, None);
    time::sleep(work);
    judge::ending(names, id, false);
    crate::work::owned(guard)
}

const SHORT: Duration = Duration::from_millis(5);

fn lock_twice(locker: &Locker) -> Result<()> {
    for _ in 0..2 {
        let guard = locker.lock(NAME)?;
        hold(&[NAME], Kind::Exclusive, guard, SHORT).unlock()?;
    }
    Ok(())
}

/// Until it was renewed at least twice.
fn lock_for_long(locker: &Locker) -> Result<()> {
    let guard = locker.lock(NAME)?;
    hold(
        &[NAME],
        Kind::Exclusive,
        guard,
        judge::plan().ttl.mul_f64(1.2),
    )
    .unlock()
}

fn wait_too_short(locker: &Locker) -> Result<()> {
    time::sleep(SHORT);
    for _ in 0..3 {
        if let Some(guard) = locker.try_lock_for(NAME, SHORT * 4)? {
            hold(&[NAME], Kind::Exclusive, guard, SHORT).unlock()?;
        }
    }
    Ok(())
}

fn read(locker: &Locker) -> Result<()> {
    let guard = locker.read(NAME)?;
    hold(&[NAME], Kind::Shared, guard, SHORT).unlock()
}

fn write(locker: &Locker) -> Result<()> {
    let guard = locker.write(NAME)?;
    let guard = hold(&[NAME], Kind::Exclusive, guard, SHORT).downgrade()?;
    hold(&[NAME], Kind::Shared, guard, SHORT).unlock()
}

fn permits(locker: &Locker) -> Result<()> {
    let semaphore = locker.semaphore(NAME, 3)?;
    let kind = Kind::Permits { count: 2, of: 3 };
    hold(&[NAME], kind, semaphore.acquire_many(2)?, SHORT).unlock()
}

fn lock_both(locker: &Locker) -> Result<()> {
    let names = [NAME, "other"];
    let guard = locker.lock_all(&names)?;
    hold(&names, Kind::Exclusive, guard, SHORT).unlock()
}

fn count(locker: &Locker) -> Result<()> {
    let counter = locker.mutex(NAME, 0_i64)?;
    let mut guard = counter.lock()?;
    if MutexGuard::lease(&guard).is_held() {
        judge::read(NAME, *guard);
    }
    *guard += 1;
    let id = judge::storing(NAME);
    let stored = MutexGuard::unlock(guard);
    judge::stored(NAME, id, &stored);
    stored
}

fn pass_on(locker: &Locker) -> Result<()> {
    let guard = locker.lock(NAME)?;
    let ticket = hold(&[NAME], Kind::Exclusive, guard, SHORT).into_ticket()?;
    hold(&[NAME], Kind::Exclusive, locker.adopt(ticket)?, SHORT).unlock()
}

fn close_while_held(locker: &Locker) -> Result<()> {
    let guard = locker.lock(NAME)?;
    let guard = hold(&[NAME], Kind::Exclusive, guard, SHORT);
    locker.clone().close();
    drop(guard);
    Ok(())
}

/// Behind all ttls.
fn all_is_free(locker: &Locker) -> Result<()> {
    let plan = judge::plan();
    let most = plan.ttl * 4 + plan.io_timeout * 2;
    let names = [NAME, "other"];
    match locker.try_lock_all_for(&names, most)? {
        Some(guard) => hold(&names, Kind::Exclusive, guard, SHORT).unlock(),
        None => {
            violation(format!("{names:?} isn't free after {most:?}"));
            Ok(())
        }
    }
}
