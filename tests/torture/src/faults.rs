//! The faults, and how each is fired and taken back.

use std::thread;
use std::time::Duration;

use fastrand::Rng;

use super::driver::Driver;
use super::history::What;
use super::names::NAMES;
use super::program::Program;
use super::servers::{How, Place, Set};
use super::topology::Topology::{self, Cluster, Etcd, File, Replicas, Sentinel, Single, ZooKeeper};
use support::{Fault as OnNetwork, Kind, RedisServer, Server, ServerSet};

/// A fault. None of them excuses anything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) name: &'static str,
    on: &'static [Topology],
    /// Breaks something, waits, and mends it. Says whether it was there to be hit.
    pub(crate) fire: fn(&mut Driver<'_>) -> bool,
}

const EVERYWHERE: &[Topology] = &[Single, Replicas, Sentinel, Cluster, Etcd, ZooKeeper, File];
const REDIS: &[Topology] = &[Single, Replicas, Sentinel, Cluster];
const SETS: &[Topology] = &[Replicas, Sentinel, Cluster];
const ELECTING: &[Topology] = &[Etcd, ZooKeeper];

const fn fault(
    name: &'static str,
    on: &'static [Topology],
    fire: fn(&mut Driver<'_>) -> bool,
) -> Fault {
    Fault { name, on, fire }
}

#[rustfmt::skip]
pub(crate) const FAULTS: [Fault; 18] = [
    fault("stop worker", EVERYWHERE, |driver| stop_worker(driver, 0.05, 0.5)),
    fault("stop worker past ttl", EVERYWHERE, |driver| stop_worker(driver, 1.1, 2.1)),
    fault("kill worker", EVERYWHERE, kill_worker),
    fault("stop program", EVERYWHERE, stop_program),
    fault("kill program", EVERYWHERE, |driver| hit_program(driver, Program::kill)),
    fault("kill watchdog", EVERYWHERE, |driver| hit_program(driver, Program::kill_watchdog)),
    fault("cut program off", &[Single, Replicas], cut_program_off),
    fault("connections cut", REDIS, cut_connections),
    fault("script flush", REDIS, |driver| tell_masters(driver, &["SCRIPT", "FLUSH"])),
    fault("stop server", REDIS, stop_server),
    // Where others replace it, one that comes back is a replica, and empty.
    fault("restart server", &[Single], restart_server),
    fault("fail over", SETS, |driver| fail_over(driver, How::Asked)),
    fault("master killed", SETS, |driver| fail_over(driver, How::Killed)),
    fault("master stopped past failover", SETS, |driver| fail_over(driver, How::Stopped)),
    fault("leader killed", ELECTING, |driver| hit_members(driver, Hit::LeaderKilled)),
    // Before etcd 3.4.31 and 3.5.13 two may hold a lock after it: see docs/etcd.md.
    fault("leader stopped past election", &[ZooKeeper], |driver| hit_members(driver, Hit::LeaderStopped)),
    fault("follower killed", ELECTING, |driver| hit_members(driver, Hit::FollowerKilled)),
    fault("all restarted", ELECTING, |driver| hit_members(driver, Hit::AllRestarted)),
];

impl Fault {
    pub(crate) fn is_on(&self, topology: Topology) -> bool {
        self.on.contains(&topology)
    }
}

/// A part of it, by chance: between these.
fn part(rng: &mut Rng, of: Duration, least: f64, most: f64) -> Duration {
    of.mul_f64(least + (most - least) * rng.f64())
}

/// With so many threads it nearly always has a lock, and waits for another.
fn any_worker(driver: &mut Driver<'_>) -> usize {
    driver.rng.usize(..driver.workers.len())
}

fn stop_worker(driver: &mut Driver<'_>, least: f64, most: f64) -> bool {
    let time = part(&mut driver.rng, driver.ttl, least, most);
    let any = any_worker(driver);
    let worker = &driver.workers[any].child;
    worker.stop();
    thread::sleep(time);
    worker.cont();
    true
}

/// Another is started in its place.
fn kill_worker(driver: &mut Driver<'_>) -> bool {
    let any = any_worker(driver);
    driver.tell_of(driver.workers[any].number, What::Killed);
    driver.workers[any].child.kill();
    driver.workers[any] = driver.new_worker();
    true
}

/// But not its watchdog.
fn stop_program(driver: &mut Driver<'_>) -> bool {
    let time = part(&mut driver.rng, driver.ttl, 1.5, 2.5);
    hit_program(driver, |program| {
        program.stop();
        thread::sleep(time);
        program.go_on()
    })
}

/// While its command runs, anywhere in the lease.
fn hit_program(driver: &mut Driver<'_>, hit: impl FnOnce(&Program) -> bool) -> bool {
    let after = part(&mut driver.rng, driver.ttl, 0.0, 0.3);
    driver.program.await_command();
    thread::sleep(after);
    hit(&driver.program)
}

/// It reaches the server no more.
fn cut_program_off(driver: &mut Driver<'_>) -> bool {
    let time = part(&mut driver.rng, driver.ttl, 1.5, 2.5);
    driver.program.await_command();
    let Some(entrance) = driver.servers.entrance_of_program() else {
        return false;
    };
    entrance.set(OnNetwork::BlackHole);
    thread::sleep(time);
    entrance.set(OnNetwork::None);
    true
}

fn redis<'a>(driver: &'a Driver<'_>) -> &'a Set {
    match &driver.servers.place {
        Place::Redis(set) => set,
        other => unreachable!("{other:?} is no Redis"),
    }
}

fn tell_masters(driver: &Driver<'_>, words: &[&str]) -> bool {
    let masters = redis(driver).masters().into_iter();
    let told = masters.map(|one| one.try_query::<()>(words).is_ok());
    !told.collect::<Vec<_>>().contains(&false)
}

fn cut_connections(driver: &mut Driver<'_>) -> bool {
    let kinds = ["normal", "pubsub"];
    let cut = kinds.map(|kind| tell_masters(driver, &["CLIENT", "KILL", "TYPE", kind]));
    cut == [true; 2]
}

fn any_master<'a>(driver: &'a mut Driver<'_>) -> &'a RedisServer {
    let choice = driver.rng.usize(..);
    let masters = redis(driver).masters();
    masters[choice % masters.len()]
}

fn stop_server(driver: &mut Driver<'_>) -> bool {
    let time = part(&mut driver.rng, driver.ttl, 0.05, 0.8);
    let server = any_master(driver);
    server.stop();
    thread::sleep(time);
    server.cont();
    true
}

fn restart_server(driver: &mut Driver<'_>) -> bool {
    any_master(driver).restart();
    true
}

fn fail_over(driver: &mut Driver<'_>, how: How) -> bool {
    let name = NAMES[driver.rng.usize(..NAMES.len())];
    let (pause, cuts_off) = (
        part(&mut driver.rng, driver.ttl, 0.0, 1.0),
        driver.rng.bool(),
    );
    redis(driver).fail_over(name, how, |master| {
        driver.servers.lead_to(master.addr(), cuts_off);
        thread::sleep(pause);
    });
    true
}

/// What happens to members that elect who leads.
#[derive(Clone, Copy, Debug)]
enum Hit {
    LeaderKilled,
    LeaderStopped,
    FollowerKilled,
    AllRestarted,
}

fn hit_members(driver: &mut Driver<'_>, hit: Hit) -> bool {
    let pause = part(&mut driver.rng, driver.ttl, 0.0, 1.0);
    match &driver.servers.place {
        Place::Etcd(set) => hit.fire(set, pause),
        Place::ZooKeeper(set) => hit.fire(set, pause),
        other => unreachable!("{other:?} elect nobody"),
    }
    true
}

impl Hit {
    /// It is over when one leads again.
    fn fire<K: Kind>(self, set: &ServerSet<K>, pause: Duration) {
        let leader = set.leader();
        let follower = (leader + 1) % set.members().len();
        match self {
            Hit::LeaderKilled => {
                set.kill(leader);
                set.wait_for_other_leader(leader);
                thread::sleep(pause);
                set.restart(leader);
            }
            Hit::LeaderStopped => {
                set.stop(leader);
                set.wait_for_other_leader(leader);
                thread::sleep(pause);
                // It takes itself for the leader, until it is told.
                set.go_on(leader);
            }
            Hit::FollowerKilled => {
                set.kill(follower);
                thread::sleep(pause);
                set.restart(follower);
            }
            Hit::AllRestarted => {
                let members = set.members().iter();
                members.clone().for_each(Server::kill);
                members.for_each(Server::launch_again);
            }
        }
        set.leader();
    }
}
