//! What goes wrong, one thing at a time or several over each other.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crosslock_world::service::Fault;
use crosslock_world::{
    Cut, Machine, Message, Place, allow_threads, cut, fault, heal, kill, lose_power, messages,
    pause, resume, resume_machine, set_message_fault, set_names, set_piece, slow, spawn,
    step_clock, suspend_machine, time, uninterrupted,
};
use fastrand::Rng;
use std::sync::atomic::Ordering;

use crate::judge;
use crate::places::{NAMED, Site};
use crate::plan::{Plan, Trouble};
use crate::world::Part;

/// Makes one trouble of those that the plan has. What lasts is ended by a thread of its own.
pub fn make(plan: &Plan, site: &Site, parts: &mut [Part], random: &mut Rng) {
    judge::TROUBLES.fetch_add(1, Ordering::Relaxed);
    let trouble = plan.troubles[random.usize(..plan.troubles.len())];
    let lasts = plan.ttl.mul_f64(random.f64() * random.f64() * 3.0);
    let at = random.usize(..parts.len());
    let part = &parts[at];
    match trouble {
        // Nothing runs between the death and the judge's note of it.
        Trouble::KillProcess => uninterrupted(|| {
            kill(part.process);
            judge::died(part.process);
        }),
        Trouble::LosePower => uninterrupted(|| {
            lose_power(part.process);
            judge::died(part.process);
        }),
        Trouble::NoThreads => {
            let process = part.process;
            allow_threads(process, false);
            later(lasts, move || allow_threads(process, true));
        }
        Trouble::PauseProcess => {
            let process = part.process;
            pause(process);
            later(lasts, move || resume(process));
        }
        Trouble::SuspendMachine => {
            let machine = part.machine;
            suspend_machine(machine);
            later(lasts, move || resume_machine(machine));
        }
        Trouble::StepClientClock => {
            step_clock(part.machine, random.i64(-100_000_000..=100_000_000));
        }
        Trouble::Message => fail_message(plan, random),
        Trouble::Names => lead_astray(site, lasts, random),
        _ => trouble_host(site, trouble, part.machine, lasts, random),
    }
}

pub fn later(lasts: Duration, end: impl FnOnce() + Send + 'static) {
    let _ = spawn("trouble", move || {
        time::sleep(lasts);
        end();
    });
}

fn lead_astray(site: &Site, lasts: Duration, random: &mut Rng) {
    let nobody = IpAddr::from([10, 0, 0, 99]);
    set_names(NAMED, random.bool().then(|| vec![nobody]));
    let own = site.named;
    later(lasts, move || set_names(NAMED, own.map(|ip| vec![ip])));
}

fn fail_message(plan: &Plan, random: &mut Rng) {
    let which = messages() + random.u64(1..20);
    let what = match random.u32(..6) {
        0 => Message::Drop,
        1 => Message::Close,
        2 => Message::CloseBehind,
        3 => Message::Duplicate(late_copy(plan, random)),
        4 => Message::Delay(plan.io_timeout.mul_f64(random.f64() * 3.0)),
        _ => Message::Garble,
    };
    set_message_fault(Some((which, what)));
}

/// A copy that the network kept comes soon, or when the lease that it is about may have ended.
fn late_copy(plan: &Plan, random: &mut Rng) -> Duration {
    let most = if random.bool() {
        Duration::from_millis(50)
    } else {
        plan.ttl * 2
    };
    most.mul_f64(random.f64())
}

fn trouble_host(
    site: &Site,
    trouble: Trouble,
    machine: Machine,
    lasts: Duration,
    random: &mut Rng,
) {
    if site.hosts.is_empty() {
        return;
    }
    let place = site.hosts[random.usize(..site.hosts.len())];
    match trouble {
        Trouble::CutNetwork => cut_ways(machine, place, lasts, random),
        Trouble::SlowHost => {
            set_piece(machine, place, Some(random.usize(1..64)));
            later(lasts, move || set_piece(machine, place, None));
        }
        Trouble::SlowNetwork => {
            slow(machine, place, lasts.mul_f64(random.f64() * 0.1));
            later(lasts, move || slow(machine, place, Duration::ZERO));
        }
        Trouble::KillHost => start_anew(place, !site.forgets || random.bool(), lasts),
        Trouble::PauseHost => fail_host(place, Fault::Pause, Fault::Resume, lasts),
        Trouble::CutHost => fail_host(place, Fault::Cut, Fault::Heal, lasts),
        Trouble::LoseData if random.bool() => start_anew(place, false, lasts),
        Trouble::Evict => (0..random.u32(1..8))
            .for_each(|_| own_fault(site, place, |name| name == "evict", lasts, random)),
        Trouble::StepHostClock => set_host_clock(place, random),
        Trouble::LoseData => own_fault(site, place, takes_data, lasts, random),
        Trouble::Strangers => own_fault(site, place, |name| name == STRANGERS, lasts, random),
        Trouble::Own => own_fault(site, place, is_of_all, lasts, random),
        _ => {}
    }
}

fn start_anew(place: Place, with_data: bool, lasts: Duration) {
    fail_host(place, Fault::Kill, Fault::Start { with_data }, lasts);
}

fn cut_ways(machine: Machine, place: Place, lasts: Duration, random: &mut Rng) {
    let [to_host, to_client] = match random.u32(..3) {
        0 => [true, false],
        1 => [false, true],
        _ => [true, true],
    };
    cut(machine, place, Cut { to_host, to_client });
    later(lasts, move || heal(machine, place));
}

/// Those of the servers' own faults that take something from them.
const LOSES_DATA: [&str; 2] = ["flush", "evict"];
/// That of them which does nothing to the servers, and one that is for a scene.
const STRANGERS: &str = "strangers";
pub const LOSE_QUEUES: &str = "lose queues";

fn takes_data(name: &str) -> bool {
    LOSES_DATA.contains(&name)
}

/// Whether any world may have it.
fn is_of_all(name: &str) -> bool {
    !takes_data(name) && name != STRANGERS && name != LOSE_QUEUES
}

pub fn own_fault(
    site: &Site,
    place: Place,
    of: impl Fn(&str) -> bool,
    lasts: Duration,
    random: &mut Rng,
) {
    let which: Vec<usize> = (0..site.own.len()).filter(|at| of(site.own[*at])).collect();
    if which.is_empty() {
        return;
    }
    let which = which[random.usize(..which.len())];
    let own = Fault::Own(which);
    match site.own[which] {
        // The second one makes room again.
        "full" => fail_host(place, own, own, lasts),
        _ => fault(place, own),
    }
}

/// By how much the clocks of hosts were set, in microseconds.
static SET: Mutex<BTreeMap<Place, i64>> = Mutex::new(BTreeMap::new());

/// Sets a clock up to 2 s fast or slow. Those of two servers are less apart than the `rejoin` of a quorum, which its
/// tokens need where data is lost.
fn set_host_clock(place: Place, random: &mut Rng) {
    let to = random.i64(-2_000_000..=2_000_000);
    let mut set = SET.lock().unwrap_or_else(PoisonError::into_inner);
    let before = set.insert(place, to).unwrap_or(0);
    drop(set);
    fault(
        place,
        Fault::StepClock {
            micros: to - before,
        },
    );
}

/// The hosts that something has happened to which will end.
static IN_TROUBLE: Mutex<BTreeSet<Place>> = Mutex::new(BTreeSet::new());

pub fn fail_host(place: Place, begin: Fault, end: Fault, lasts: Duration) {
    let in_trouble = || IN_TROUBLE.lock().unwrap_or_else(PoisonError::into_inner);
    if in_trouble().insert(place) {
        fault(place, begin);
        later(lasts, move || {
            fault(place, end);
            in_trouble().remove(&place);
        });
    }
}
