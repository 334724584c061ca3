//! What happens, in the loop over messages, to those that a message is between: just then, and not by chance. So each
//! race of a failover, or of a slot that moves, is met.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crosslock_world::service::Fault;
use crosslock_world::{
    Machine, Place, Process, await_message, fault, messages, pause, record, resume, slow, spawn,
    time, true_now,
};
use fastrand::Rng;

use crate::places::Site;
use crate::plan::{Plan, Topology, Trouble, all_replicas};
use crate::trouble::{fail_host, later, own_fault};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The host reaches no other, but the process does.
    Cut,
    /// The host dies, and its replicas haven't heard of the last messages. One may have taken its place just before.
    Die,
    /// The host stands still, and keeps its connections.
    Hang,
    /// The same, but for less time than leases last.
    Freeze,
    /// The process stands still for longer than its leases.
    Stop,
    /// The same for most of the time of its leases.
    Pause,
    /// Another host takes its place, by hand.
    FailOver,
    /// A slot begins to move.
    Move,
    /// Two nodes send what is for a slot to each other.
    Odds,
}

/// When it did, in microseconds; 0: it hasn't.
static HAPPENED: AtomicU64 = AtomicU64::new(0);

static HAS_FROZEN: AtomicBool = AtomicBool::new(false);

/// For longer than it takes to replace a host, and than leases last.
const LASTS: Duration = Duration::from_secs(40);

/// For longer than a waiter's heartbeat takes, and etcd's members to have another leader.
const FROZEN: Duration = Duration::from_secs(3);

/// No message is on its way for longer.
const LONGEST_WAY: Duration = Duration::from_millis(6);

/// How many messages before a death replicas haven't heard of.
const MISSED: u64 = 8;

impl Event {
    pub fn happens_on(self, topology: Topology) -> bool {
        match self {
            Event::Move | Event::Odds => topology == Topology::Cluster,
            Event::FailOver => all_replicas(topology) > 0,
            Event::Cut => !matches!(topology, Topology::Redis | Topology::Quorum),
            _ => true,
        }
    }

    /// What the judge has to know of it. A slot that moves is slow to do so at worst.
    pub fn troubles(self) -> Vec<Trouble> {
        match self {
            Event::Cut => vec![Trouble::CutHost],
            Event::Die => vec![Trouble::KillHost],
            Event::Hang | Event::Freeze => vec![Trouble::PauseHost],
            Event::Stop | Event::Pause => vec![Trouble::PauseProcess],
            Event::FailOver | Event::Odds => vec![Trouble::Own],
            Event::Move => vec![Trouble::SlowNetwork],
        }
    }

    /// How long a scene may take with it. Where all replicas must confirm leases, none is given while one isn't there.
    pub fn most(self, plan: &Plan, scene: &str) -> Duration {
        let is_replaced = all_replicas(plan.topology) > 0 && plan.min_replicas == 0;
        let usual = match scene {
            "kept" | "watched" => plan.ttl * 12,
            _ => plan.ttl * 3,
        };
        match self {
            Event::Move => usual + plan.ttl,
            _ if is_replaced => usual + plan.ttl * 3,
            _ => usual + LASTS * 3,
        }
    }

    /// Whether it has, so long ago.
    pub fn has_happened(before: Duration) -> bool {
        let at = Duration::from_micros(HAPPENED.load(Ordering::Relaxed));
        at > Duration::ZERO && at + before < true_now()
    }

    /// Whether a host froze, and later than that.
    pub fn has_frozen_behind(begin: Duration) -> bool {
        let at = Duration::from_micros(HAPPENED.load(Ordering::Relaxed));
        HAS_FROZEN.load(Ordering::Relaxed) && at > begin
    }

    /// It happens when that message is sent.
    pub fn begin(self, plan: &Plan, site: &Site, machine: Machine, at: u64) {
        let (plan, site) = (plan.clone(), site.clone());
        let _ = spawn("event", move || {
            let mut random = Rng::with_seed(at);
            if self == Event::Die {
                await_message(at.saturating_sub(MISSED).max(1), LASTS);
                for place in &site.hosts {
                    own_fault(&site, *place, |name| name == "lag", LASTS, &mut random);
                }
            }
            if let Some(ends) = await_message(at.max(messages()), LASTS) {
                self.happen(&plan, &site, machine, ends, &mut random);
            }
        });
    }

    fn happen(
        self,
        plan: &Plan,
        site: &Site,
        machine: Machine,
        ends: (Place, Process),
        random: &mut Rng,
    ) {
        let (place, process) = ends;
        if self == Event::Die {
            // What it has answered comes before it dies.
            fault(place, Fault::Pause);
            time::sleep(LONGEST_WAY);
            if !is_sentinel(site, place) {
                own_fault(site, place, |name| name == "failover", LASTS, random);
            }
        }
        let micros = u64::try_from(true_now().as_micros());
        HAPPENED.store(micros.unwrap_or(0), Ordering::Relaxed);
        HAS_FROZEN.store(self == Event::Freeze, Ordering::Relaxed);
        record(&format!("{self:?} at {:?}", true_now()));
        match self {
            Event::Cut => self.cut(site, machine, place),
            Event::Die => fail_host(place, Fault::Kill, Fault::Start { with_data: true }, LASTS),
            Event::Hang => fail_host(place, Fault::Pause, Fault::Resume, LASTS),
            Event::Freeze => fail_host(place, Fault::Pause, Fault::Resume, FROZEN),
            Event::Stop => stop(process, plan.ttl.mul_f64(1.5)),
            Event::Pause => stop(process, plan.ttl.mul_f64(0.8)),
            Event::FailOver => own_fault(site, place, |name| name == "failover", LASTS, random),
            Event::Move => own_fault(site, place, |name| name == "move slot", LASTS, random),
            Event::Odds => own_fault(site, place, |name| name == "odds", LASTS, random),
        }
    }

    /// With one sentinel, if there are any, and those of the majority are farther away.
    fn cut(self, site: &Site, machine: Machine, place: Place) {
        let hosts = site.hosts.len();
        let has_sentinels = site.hosts.iter().any(|host| is_sentinel(site, *host));
        let other = (place.host + hosts / 2) % hosts;
        for host in &site.hosts {
            if host.host == place.host || has_sentinels && host.host == other {
                fail_host(*host, Fault::Cut, Fault::Heal, LASTS);
            } else if has_sentinels {
                slow(machine, *host, Duration::from_millis(60));
            }
        }
    }
}

fn stop(process: Process, lasts: Duration) {
    pause(process);
    later(lasts, move || resume(process));
}

fn is_sentinel(site: &Site, place: Place) -> bool {
    site.url.contains("sentinel") && place.host >= site.hosts.len() / 2
}
