//! Short scenes for the loop over messages: each is played once for each message and each thing that can happen to it.
//!
//! A scene is the same each time, so its messages have numbers. It may end with errors, and must end in time, without
//! two holders, and with its locks free.

mod copies;
mod late;
mod list;
mod majority;
mod order;
mod tasks;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crosslock::{Error, LockGuard, Locker, MutexGuard, Result};
use crosslock_world::channel::Receiver;
use crosslock_world::{
    Machine, Message, Place, add_machine, add_process, contents_of, messages, pause, record,
    resume, set_message_fault, time, true_now, violation,
};

use crate::events::Event;
use crate::judge::{self, Kind};
use crate::messages::Fault;
use crate::places::Site;
use crate::plan::{Plan, Trouble};
use crate::trouble::later;
use crate::work::causes;

pub use list::SCENES;

/// What processes do in it, one function each, and all at once.
type Roles = &'static [fn(&Locker) -> Result<()>];

const NAME: &str = "scene";

/// Plays a scene, and then sees that its locks are free.
pub fn play(plan: &Plan, site: &Site, scene: &str, fault: Option<(u64, Fault)>) {
    let machine = add_machine("machine", 0);
    let mut most = (plan.ttl * 10 + plan.io_timeout * 10) * 4;
    match fault {
        Some((at, Fault::Message(fault))) => {
            let is_copied = matches!(fault, Message::Duplicate(_));
            COMES_TWICE.store(is_copied, Ordering::Relaxed);
            set_message_fault(Some((at, fault)));
        }
        Some((at, Fault::Event(event, _))) => {
            event.begin(plan, site, machine, at);
            most = event.most(plan, scene);
        }
        None => {}
    }
    if scene.starts_with("flushed") {
        late::lose_data(site);
    }
    match scene {
        "queue-lost" => order::lose_queues(site),
        "by-one" => majority::leave_one(site),
        "heard-late" => majority::leave_two(site),
        "late-release" => majority::delay_line(site, machine),
        "cut-off" => majority::cut_off(site, machine),
        _ => {}
    }
    let ends = begin(plan, site, scene, machine);
    let until = true_now() + most;
    while let Ok(is_last) = ends.recv_timeout(until.saturating_sub(true_now())) {
        if is_last {
            judge_end(plan);
            set_message_fault(None);
            return see_all_free(plan, site, machine);
        }
    }
    violation(format!("the scene isn't over after {most:?}"));
}

/// Starts a process for each role. What is given says when one ends, and whether it is the last.
fn begin(plan: &Plan, site: &Site, scene: &str, machine: Machine) -> Receiver<bool> {
    let found = SCENES.iter().find(|(name, _)| *name == scene);
    let (_, roles) = found.expect("a scene of that name");
    let (ended, ends) = crosslock_world::channel::bounded(roles.len());
    let left = Arc::new(AtomicUsize::new(roles.len()));
    let (is_kept, ttl) = (scene == "kept", plan.ttl);
    for (at, role) in (0..).zip(*roles) {
        let (plan, site, ended, left) = (plan.clone(), site.clone(), ended.clone(), left.clone());
        let machine = match (scene, at) {
            ("late-release", 0) => add_machine("other", 0),
            _ => machine,
        };
        let process = add_process(machine, &format!("role-{at}"), move || {
            if is_kept {
                // Another may have taken the place of the server that the first one knows.
                time::sleep(plan.ttl.mul_f64(1.5) * at);
            }
            perform(&plan, &site, *role);
            let _ = ended.try_send(left.fetch_sub(1, Ordering::Relaxed) == 1);
        });
        let still = match (scene, at) {
            ("line", 0) => SHORT * 10..ttl * 3,
            ("heard-late", 1) => order::IN_QUEUE * 5..order::IN_QUEUE * 8,
            _ => continue,
        };
        later(still.start, move || pause(process));
        later(still.end, move || resume(process));
    }
    ends
}

fn judge_end(plan: &Plan) {
    record(&format!(
        "{} messages, over at {:?}",
        messages(),
        true_now()
    ));
    // Those that take turns at a lock take hardly longer where its slot moves, unless one waits for the end of a ttl.
    let worked = Duration::from_micros(WORKED.load(Ordering::Relaxed));
    let is_late = true_now() > worked + plan.ttl / 4;
    if moves(plan) && !HAS_FAILED.load(Ordering::Relaxed) && is_late {
        violation(format!(
            "locks were held for {worked:?}, and were free while somebody waited"
        ));
    }
    if messages() > MOST_MESSAGES {
        violation(format!("{} messages were sent", messages()));
    }
}

fn see_all_free(plan: &Plan, site: &Site, machine: Machine) {
    let (ended, ends) = crosslock_world::channel::bounded(1);
    // Four times what all of it takes if it meets an outage.
    let most = (plan.ttl * 10 + plan.io_timeout * 10) * 4;
    let (plan, site) = (plan.clone(), site.clone());
    add_process(machine, "last", move || {
        perform(&plan, &site, all_is_free);
        let _ = ended.try_send(());
    });
    if ends.recv_timeout(most).is_err() {
        violation("the locks aren't free".to_owned());
    }
}

/// More are sent where somebody asks again and again, without a pause.
const MOST_MESSAGES: u64 = 20_000;

/// For how many microseconds all together worked under locks or asked for none, and whether one of them has returned an
/// error.
static WORKED: AtomicU64 = AtomicU64::new(0);
static HAS_FAILED: AtomicBool = AtomicBool::new(false);

/// Whether a message comes twice.
static COMES_TWICE: AtomicBool = AtomicBool::new(false);

fn only_messages_fail() -> bool {
    let mut troubles = judge::plan().troubles.iter();
    troubles.all(|trouble| *trouble == Trouble::Message)
}

fn moves(plan: &Plan) -> bool {
    plan.troubles == Event::Move.troubles()
}

fn perform(plan: &Plan, site: &Site, role: fn(&Locker) -> Result<()>) {
    let mut builder = Locker::builder(&site.url)
        .ttl(plan.ttl)
        .io_timeout(plan.io_timeout)
        .connect_timeout(Duration::from_millis(400));
    if plan.min_replicas > 0 {
        builder = builder.min_replicas(plan.min_replicas);
    }
    let done = builder.build().and_then(|locker| role(&locker));
    if let Err(error) = done {
        record(&format!("error: {}", causes(&error)));
        let is_odd = matches!(
            error,
            Error::Busy { .. }
                | Error::Cancelled { .. }
                | Error::Unsupported { .. }
                | Error::InvalidOption { .. }
        );
        HAS_FAILED.store(true, Ordering::Relaxed);
        // A release may come while a slot is half moved.
        if is_odd || moves(plan) && !causes(&error).contains("TRYAGAIN") {
            violation(format!(
                "an error that nothing explains: {}",
                causes(&error)
            ));
        }
    }
}

/// Holds it for a while, as the judge sees it, looks at it all the time, and gives it back.
fn hold(names: &[&str], kind: Kind, guard: LockGuard, work: Duration) -> LockGuard {
    let guard = Arc::new(guard);
    let id = judge::acquired(names, kind, &guard, None);
    if kind == Kind::Exclusive && judge::plan().min_replicas > 0 && guard.is_held() {
        judge_copies(guard.fencing_token());
    }
    let (until, pause) = (true_now() + work, SHORT.max(work / 400));
    while true_now() < until {
        time::sleep(pause.min(until.saturating_sub(true_now())));
        judge::looking(names, id);
    }
    add_worked(work);
    judge::ending(names, id, false);
    crate::work::owned(guard)
}

/// Sleeps while nobody asks for a lock.
fn wait_for_nobody(time: Duration) {
    time::sleep(time);
    add_worked(time);
}

fn add_worked(time: Duration) {
    let micros = u64::try_from(time.as_micros()).unwrap_or(0);
    WORKED.fetch_add(micros, Ordering::Relaxed);
}

/// Where all replicas must confirm a lease, they have it when it is given.
fn judge_copies(token: u64) {
    let (token, hosts) = (token.to_string(), 0..6);
    let has_it = |host: &usize| {
        let lines = contents_of(Place {
            service: 0,
            host: *host,
        });
        lines.iter().any(|line| line.contains(&token))
    };
    let least = judge::plan().min_replicas;
    let have_it = hosts.filter(has_it).count();
    if have_it <= least as usize {
        violation(format!(
            "token {token} is confirmed, and {have_it} hosts have it"
        ));
    }
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

fn keep(locker: &Locker) -> Result<()> {
    let guard = locker.lock(NAME)?;
    let long = judge::plan().ttl * 6;
    hold(&[NAME], Kind::Exclusive, guard, long).unlock()
}

/// For nearly as long as it takes until it is renewed.
fn lock_for_part_of_a_ttl(locker: &Locker) -> Result<()> {
    let (guard, ttl) = (locker.lock(NAME)?, judge::plan().ttl);
    for _ in 0..4 {
        time::sleep(ttl.mul_f64(0.005));
        guard.verify()?;
    }
    let guard = hold(&[NAME], Kind::Exclusive, guard, ttl.mul_f64(0.26));
    // Then a look-up shows it, as all renewals and releases make one that are a quarter of a ttl behind the last.
    let is_known = Event::has_happened(ttl.mul_f64(0.255));
    guard.unlock()?;
    IS_FREE.store(is_known, Ordering::Relaxed);
    Ok(())
}

static IS_FREE: AtomicBool = AtomicBool::new(false);

/// What is in front of the other on a cluster.
fn lock_front(locker: &Locker) -> Result<()> {
    let guard = locker.lock("other")?;
    hold(&["other"], Kind::Exclusive, guard, SHORT * 20).unlock()
}

/// Who waits for what is in front has nothing that is behind.
fn try_behind(locker: &Locker) -> Result<()> {
    time::sleep(SHORT * 10);
    match locker.try_lock(NAME)? {
        Some(guard) => hold(&[NAME], Kind::Exclusive, guard, SHORT).unlock(),
        None if judge::plan().is_calm() => {
            violation("who waits has what is behind it".to_owned());
            Ok(())
        }
        None => Ok(()),
    }
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
    let value = *guard;
    let id = judge::storing(NAME);
    let stored = MutexGuard::unlock(guard);
    judge::stored(NAME, id, &stored);
    let has_died = judge::plan().has(Trouble::KillHost) && Event::has_happened(Duration::ZERO);
    if stored.is_ok() && has_died {
        STORED.fetch_max(value, Ordering::Relaxed);
    }
    stored
}

/// What is stored for certain, since the server said so that took the place of one that had died.
static STORED: AtomicI64 = AtomicI64::new(0);

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
    // A drop says nothing of an error.
    HAS_FAILED.store(true, Ordering::Relaxed);
    Ok(())
}

/// Behind all ttls.
fn all_is_free(locker: &Locker) -> Result<()> {
    let plan = judge::plan();
    let most = plan.ttl * 4 + plan.io_timeout * 2;
    let names = [NAME, "other"];
    let stored = STORED.load(Ordering::Relaxed);
    if stored > 0 {
        let value = *locker.mutex(NAME, 0_i64)?.lock()?;
        if value < stored {
            violation(format!("{NAME} is {value}, and {stored} was stored"));
        }
    }
    let began = true_now();
    match locker.try_lock_all_for(&names, most)? {
        Some(guard) => {
            let took = true_now() - began;
            if IS_FREE.load(Ordering::Relaxed) && took > plan.ttl / 4 {
                violation(format!("a lock that was released was taken for {took:?}"));
            }
            hold(&names, Kind::Exclusive, guard, SHORT).unlock()
        }
        None => {
            violation(format!("{names:?} isn't free after {most:?}"));
            Ok(())
        }
    }
}
