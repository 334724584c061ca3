//! Faults of servers that have replicas: another takes the place of a master, or slots move.

use std::thread;
use std::time::Duration;

use super::driver::Driver;
use super::kinds::STALE;
use super::names::{NAMES, key_of};
use super::servers::Set;
use support::{Cluster, Fault, slot_of};

/// So much later at most the next process is led to a new master.
const APART: Duration = Duration::from_millis(20);

/// Hits the master of this name, or the slots of some. Is over when all servers are what they were to each other.
#[allow(clippy::too_many_lines, reason = "a table")]
pub(crate) fn fire(driver: &mut Driver<'_>, fault: &str, name: &str) -> bool {
    let Some(set) = driver.servers.set() else {
        return false;
    };
    if let (Set::Cluster(cluster), "slots moved") = (set, fault) {
        move_slots(cluster, &mut driver.rng);
    } else {
        let (key, choice) = (key_of(name), driver.rng.usize(..));
        let stays = driver.ttl.mul_f64(driver.rng.f64());
        let cuts_off = driver.rng.bool();
        let old = set.master_of(&key);
        let server = set.server(old);
        match fault {
            "master killed" => {
                driver.servers.look_away_from(server);
                server.kill();
                set.await_other(old, &key, choice);
                lead_to_master(driver, false, APART);
                thread::sleep(stays);
                server.restart();
            }
            "master stopped past failover" => {
                driver.servers.look_away_from(server);
                server.stop();
                set.await_other(old, &key, choice);
                lead_to_master(driver, cuts_off, APART);
                // It goes on as the master that it was, until it is told.
                server.cont();
                thread::sleep(stays);
            }
            "master cut off" => {
                driver.servers.look_away_from(server);
                set.cut_off(old);
                set.await_other(old, &key, choice);
                // Two take themselves for the master. Clients reach both.
                driver.servers.look();
                driver.servers.look_away_from(server);
                thread::sleep(stays);
                set.join(old);
            }
            STALE => {
                let replica = set.part(old, choice);
                thread::sleep(stays);
                set.lead(replica);
                lead_to_master(driver, true, Duration::ZERO);
                set.rejoin(old);
            }
            _ => {
                set.replace(old, choice);
                lead_to_master(driver, cuts_off, APART);
                thread::sleep(stays);
            }
        }
    }
    driver.servers.mend();
    true
}

/// Has the proxies of workers lead to the new master, one after the other. What is connected stays where it is, unless
/// it is cut off. Servers that announce their addresses are found without.
fn lead_to_master(driver: &Driver<'_>, cuts_off: bool, apart: Duration) {
    let mut rng = driver.rng.clone();
    driver.servers.look();
    let Some(addr) = driver.servers.entrances().first().copied() else {
        return;
    };
    let program = driver.program.iter().flat_map(|program| program.proxies());
    for proxy in driver.proxies.iter().flatten().chain(program) {
        proxy.point_to(addr);
        if cuts_off {
            proxy.set(Fault::Refuse);
            proxy.set(Fault::None);
        }
        thread::sleep(apart.mul_f64(rng.f64()));
    }
}

/// Brings the slots of one to three names to other masters, step by step.
fn move_slots(cluster: &Cluster, rng: &mut fastrand::Rng) {
    let mut names = NAMES;
    rng.shuffle(&mut names);
    for name in &names[..rng.usize(1..=3)] {
        let slot = slot_of(&key_of(name));
        let from = cluster.owner_of_slot(slot);
        let others = cluster.masters().into_iter();
        let others: Vec<_> = others.filter(|index| Some(*index) != from).collect();
        let migration = cluster.migration(slot, others[rng.usize(0..others.len())]);
        let mut pause = || thread::sleep(Duration::from_micros(rng.u64(0..20_000)));
        migration.import();
        pause();
        migration.migrate();
        pause();
        // One key after the other, so that a lock is in two parts meanwhile.
        while let Some(key) = migration.keys().first() {
            migration.move_key(key);
            pause();
        }
        migration.finish();
        pause();
    }
}
