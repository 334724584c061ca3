//! The faults, and how each is fired and taken back.

use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::driver::Driver;
use super::servers::Topology::{self, Cluster, Etcd, File, Sentinel, Single, ZooKeeper};
use super::servers::{How, Place};
use super::worker::NAMES;
use support::{Fault as OnNetwork, Kind, RedisServer, Server, ServerSet};

/// A fault. None of them excuses anything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) name: &'static str,
    on: &'static [Topology],
    pub(crate) fire: fn(&mut Driver<'_>) -> bool,
}

const EVERYWHERE: &[Topology] = &[Single, Sentinel, Cluster, Etcd, ZooKeeper, File];
const REDIS: &[Topology] = &[Single, Sentinel, Cluster];
const SETS: &[Topology] = &[Sentinel, Cluster];
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
    fault("kill program", EVERYWHERE, kill_program),
    fault("kill watchdog", EVERYWHERE, kill_watchdog),
    fault("cut program off", &[Single], cut_program_off),
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

/// A part of the ttl, by chance: between these.
fn part(driver: &mut Driver<'_>, least: f64, most: f64) -> Duration {
    driver
        .ttl
        .mul_f64(least + (most - least) * driver.rng.f64())
}

fn any_worker(driver: &mut Driver<'_>) -> usize {
    driver.rng.usize(..driver.workers.len())
}

fn stop_worker(driver: &mut Driver<'_>, least: f64, most: f64) -> bool {
    let (time, any) = (part(driver, least, most), any_worker(driver));
    let worker = &driver.workers[any].child;
    worker.stop();
    thread::sleep(time);
    worker.cont();
    true
}

fn kill_worker(driver: &mut Driver<'_>) -> bool {
    let any = any_worker(driver);
    driver.kill_worker(any);
    true
}

/// But not its watchdog.
fn stop_program(driver: &mut Driver<'_>) -> bool {
    let time = part(driver, 1.5, 2.5);
    let Some(pid) = driver.program.with_command() else {
        return false;
    };
    let is_hit = driver.program.signal(pid, Signal::STOP);
    thread::sleep(time);
    is_hit && driver.program.signal(pid, Signal::CONT)
}

/// While its command runs, anywhere in the lease.
fn kill_program(driver: &mut Driver<'_>) -> bool {
    let (after, found) = (part(driver, 0.0, 0.3), driver.program.with_command());
    thread::sleep(after);
    found.is_some_and(|pid| driver.program.signal(pid, Signal::KILL))
}

fn kill_watchdog(driver: &mut Driver<'_>) -> bool {
    let (after, found) = (part(driver, 0.0, 0.3), driver.program.with_command());
    thread::sleep(after);
    found.is_some_and(|pid| driver.program.kill_watchdog(pid))
}

fn cut_program_off(driver: &mut Driver<'_>) -> bool {
    let time = part(driver, 1.5, 2.5);
    let Place::Single(_, proxy) = &driver.servers.place else {
        unreachable!("it is fired on one server");
    };
    if driver.program.with_command().is_none() {
        return false;
    }
    proxy.set(OnNetwork::BlackHole);
    thread::sleep(time);
    proxy.set(OnNetwork::None);
    true
}

fn tell_masters(driver: &Driver<'_>, words: &[&str]) -> bool {
    let masters = driver.servers.place.masters().into_iter();
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
    let masters = driver.servers.place.masters();
    masters[choice % masters.len()]
}

fn stop_server(driver: &mut Driver<'_>) -> bool {
    let time = part(driver, 0.05, 0.8);
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
    let pause = part(driver, 0.0, 1.0);
    driver.servers.place.fail_over(name, how, pause);
    true
}

#[derive(Clone, Copy, Debug)]
enum Hit {
    LeaderKilled,
    LeaderStopped,
    FollowerKilled,
    AllRestarted,
}

fn hit_members(driver: &mut Driver<'_>, hit: Hit) -> bool {
    let pause = part(driver, 0.0, 1.0);
    match &driver.servers.place {
        Place::Etcd(set) => hit.fire(set, pause),
        Place::ZooKeeper(set) => hit.fire(set, pause),
        other => unreachable!("{other:?} elect nobody"),
    }
    true
}

impl Hit {
    fn fire<K: Kind>(self, set: &ServerSet<K>, pause: Duration) {
        let leader = set.leader();
        let follower = (leader + 1) % set.members().len();
        match self {
            Hit::LeaderKilled => {
                set.member(leader).kill();
                set.wait_for_other_leader(leader);
                thread::sleep(pause);
                set.member(leader).restart();
            }
            Hit::LeaderStopped => {
                set.member(leader).stop();
                set.wait_for_other_leader(leader);
                thread::sleep(pause);
                // It takes itself for the leader, until it is told.
                set.member(leader).cont();
            }
            Hit::FollowerKilled => {
                set.member(follower).kill();
                thread::sleep(pause);
                set.member(follower).restart();
            }
            Hit::AllRestarted => {
                let members = set.members().iter();
                members.clone().for_each(|member| member.kill());
                members.for_each(Server::launch_again);
            }
        }
        set.leader();
    }
}
