//! How each fault is aimed, fired, and taken back.

use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::breaks::{break_lock, stop_and_break};
use super::driver::{Driver, WORKERS};
use super::history::{self, ALL, Event, PROGRAM};
use super::kinds::{KEPT_BY_CHILD, Kind, STALE, Whom};
use super::names::NAMES;
use super::program::signal;
use super::register::{Moment, Target};
use super::server_faults::on_server;
use super::servers::MEMBERS;
use support::scripts::{ACQUIRE, ACQUIRE_ALL, DOWNGRADE, RELEASE, RENEW, digest};
use support::{Fault, eventually};

/// For how long somebody is waited for who could be hit.
const AIMING: Duration = Duration::from_secs(3);
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Does this to all of them at once. Says whether any was hit.
pub(crate) fn at_once<T: Send>(all: Vec<T>, hit: impl Fn(T) -> bool + Sync) -> bool {
    let hit = &hit;
    thread::scope(|scope| {
        let threads: Vec<_> = all
            .into_iter()
            .map(|one| scope.spawn(move || hit(one)))
            .collect();
        // Each is waited for.
        let hits = threads
            .into_iter()
            .map(|one| one.join().expect("no panics"));
        hits.filter(|hit| *hit).count() > 0
    })
}

/// Waits for the moment, and says whom the fault is to hit; `None` when it didn't come.
pub(crate) fn aim(driver: &mut Driver<'_>, kind: &Kind) -> Option<Target> {
    if kind.whom == Whom::Program {
        let name = String::new();
        // It has its turn behind the threads of all workers.
        let runs = driver.program.as_mut()?.aim(AIMING.max(driver.ttl * 8));
        return runs.then_some(Target {
            process: PROGRAM,
            name,
        });
    }
    let long = driver.ttl.mul_f64(0.6);
    let moment = match kind.name {
        "kill releasing" | "lose reply to release" => Moment::Releases,
        "kill passing" => Moment::Passes,
        "delay and kill holder"
        | "lose reply to renew"
        | "stop holder past ttl"
        | "stop holder and break" => Moment::Holds(long),
        _ => Moment::Has(millis(20)),
    };
    if kind.name == STALE
        && let Some(set) = driver.servers.set()
    {
        set.follow();
    }
    let holder = driver.register.await_moment(moment, AIMING)?;
    let process = match kind.whom {
        Whom::Holder => holder.process,
        Whom::Waiter => (holder.process + driver.rng.u32(1..WORKERS)) % WORKERS,
        Whom::Anyone => driver.rng.u32(0..WORKERS),
        Whom::All => ALL,
        Whom::Program => PROGRAM,
    };
    let name = match kind.name {
        // Whoever has it, or waits for it.
        "break" if driver.rng.u8(0..3) == 0 => NAMES[driver.rng.usize(0..NAMES.len())].to_owned(),
        // What hits a server hits the one that has this lock.
        _ if kind.breaks() || process == ALL => holder.name,
        _ => String::new(),
    };
    Some(Target { process, name })
}

/// Breaks something, waits, and mends it. Says whether it did what it was to do.
pub(crate) fn fire(driver: &mut Driver<'_>, kind: &Kind, target: &Target) -> bool {
    match kind.name {
        name if kind.whom == Whom::Program => on_program(driver, name),
        "break" => break_lock(driver, &target.name),
        "stop holder and break" => stop_and_break(driver, target),
        name if target.process == ALL && !name.starts_with("lose reply") => {
            on_server(driver, kind, &target.name)
        }
        _ => fire_at(driver, kind, target.process),
    }
}

/// The program, while its command runs.
fn on_program(driver: &mut Driver<'_>, name: &str) -> bool {
    // Anywhere in the lease, and for longer than it lasts.
    thread::sleep(driver.ttl.mul_f64(0.3 * driver.rng.f64()));
    let past = driver.ttl.mul_f64(1.1 + driver.rng.f64());
    let Some(program) = &driver.program else {
        return false;
    };
    match name {
        "stop program" => program.stop(past),
        "kill program" => program.kill(),
        "kill watchdog" => program.kill_watchdog(),
        "cut program off" => program.cut_off(past),
        name => unreachable!("{name} is no fault of the program"),
    }
}

fn fire_at(driver: &mut Driver<'_>, kind: &Kind, target: u32) -> bool {
    match kind.name {
        name if name.starts_with("lose reply") => lose_reply(driver, target, name),
        "stop holder" | "stop waiter" => {
            let most = u64::try_from(driver.ttl.as_millis() / 2).expect("short");
            stop(driver, target, millis(driver.rng.clone().u64(20..most)))
        }
        "stop holder past ttl" => {
            let time = driver.ttl.mul_f64(1.1 + driver.rng.f64());
            stop(driver, target, time)
        }
        "stop waiter and delay grants" => stop_and_delay(driver, target),
        "kill holder" | "kill waiter" | "kill releasing" | "kill passing" => kill(driver, target),
        "close" => {
            driver.worker(target).tell("close");
            // It opens another one first, for which a busy machine takes its time.
            driver.worker(target).wait_for("closed", PATIENCE * 6);
            true
        }
        "delay and kill holder" => {
            let delay = millis(driver.rng.u64(25..60));
            driver.set_network(target, Fault::Delay(delay));
            // It is renewed meanwhile.
            thread::sleep(driver.ttl.mul_f64(0.55));
            kill(driver, target);
            driver.set_network(target, Fault::None);
            true
        }
        KEPT_BY_CHILD => kill_but_for_a_child(driver, target),
        "descriptors exhausted" | "threads exhausted" | "open files exhausted" => {
            exhaust(driver, target, kind.name)
        }
        name => on_network(driver, target, name),
    }
}

fn stop(driver: &mut Driver<'_>, target: u32, time: Duration) -> bool {
    driver.worker(target).stop();
    thread::sleep(time);
    driver.worker(target).cont();
    true
}

/// Stops somebody past the ttl of what it is granted meanwhile, who then asks again, and hears of the grant before the
/// answer.
fn stop_and_delay(driver: &mut Driver<'_>, target: u32) -> bool {
    let past = driver.ttl.mul_f64(1.1 + driver.rng.f64());
    driver.set_network(target, Fault::DelayMessages(PATIENCE));
    driver.worker(target).stop();
    thread::sleep(past);
    // From now on, for the grant; from when it is sent, for the question, and for its answer.
    driver.set_network(target, Fault::Delay(millis(30)));
    driver.worker(target).cont();
    thread::sleep(millis(driver.rng.u64(80..160)));
    driver.set_network(target, Fault::None);
    true
}

fn kill(driver: &mut Driver<'_>, target: u32) -> bool {
    driver.worker(target).kill();
    let new = driver.new_worker(target);
    *driver.worker(target) = new;
    true
}

/// Kills somebody whose child has copies of its files, and then the child.
fn kill_but_for_a_child(driver: &mut Driver<'_>, target: u32) -> bool {
    let time = driver.ttl.mul_f64(driver.rng.f64());
    let worker = driver.worker(target);
    let pid = worker.pid();
    worker.tell("fork");
    let child = worker.wait_for("forked", PATIENCE);
    let forked = history::now();
    kill(driver, target);
    thread::sleep(time);
    driver.history.tell(&Event {
        pid,
        until: forked,
        ..Event::now("kept")
    });
    child.parse().is_ok_and(|child| signal(child, Signal::KILL))
}

fn on_network(driver: &mut Driver<'_>, target: u32, name: &str) -> bool {
    let rng = &mut driver.rng;
    let fault = match name {
        "delay" => Fault::Delay(millis(rng.u64(1..60))),
        "drop" => Fault::Refuse,
        "black hole" => Fault::BlackHole,
        "truncate" => Fault::Truncate(rng.usize(1..60)),
        "half-close" => Fault::HalfClose,
        name => unreachable!("{name} is no fault of the network"),
    };
    let time = millis(rng.u64(50..500));
    // All of them, or the way to one of several servers.
    let only = driver.rng.usize(0..2 * MEMBERS);
    let hit = |index: usize| only >= MEMBERS || only == index;
    let proxies = driver.proxies_of(target);
    let is_one_of_several = driver.servers.members().is_some();
    let some = proxies.iter().enumerate();
    for (_, proxy) in some.filter(|(index, _)| !is_one_of_several || hit(*index)) {
        proxy.set(fault);
    }
    thread::sleep(time);
    driver.set_network(target, Fault::None);
    true
}

fn lose_reply(driver: &mut Driver<'_>, target: u32, name: &str) -> bool {
    let request = match driver.servers.members() {
        Some(members) => members.request(name).to_owned(),
        None => script(name),
    };
    let then_close = driver.rng.bool();
    let proxies = driver.proxies_of(target);
    let lost = || -> u64 { proxies.iter().map(|proxy| proxy.lost_replies()).sum() };
    let before = lost();
    for proxy in &proxies {
        proxy.lose_next_reply(&request, then_close);
    }
    let was_lost = eventually(Duration::from_secs(2), || lost() > before);
    // A connection that isn't closed stays silent.
    thread::sleep(driver.servers.topology().io_timeout() * 2);
    proxies.iter().for_each(|proxy| proxy.set(Fault::None));
    was_lost
}

/// What a request to a server of Redis has in it.
fn script(fault: &str) -> String {
    digest(match fault {
        "lose reply to acquire" => ACQUIRE,
        "lose reply to renew" => RENEW,
        "lose reply to downgrade" => DOWNGRADE,
        "lose reply to acquire several" => ACQUIRE_ALL,
        _ => RELEASE,
    })
}

/// Leaves a process no descriptors for the connections that it needs, or none of the threads. Says whether that was
/// noticed: it is for want of a thread that calls are refused, for want of a connection they wait.
fn exhaust(driver: &mut Driver<'_>, target: u32, name: &str) -> bool {
    let time = driver.rng.u64(50..400);
    let worker = driver.worker(target);
    worker.tell(&format!("{name}: {time}"));
    worker.wait_for("exhausted", PATIENCE);
    if name == "descriptors exhausted" {
        driver.set_network(target, Fault::Refuse);
        driver.set_network(target, Fault::None);
    }
    let refused = driver.worker(target).wait_for("refused", PATIENCE);
    name != "threads exhausted" || refused != "0"
}
