//! The faults, and how each is fired and taken back. None of them excuses anything.

use std::thread;
use std::time::Duration;

use super::driver::Driver;
use super::servers::How;
use super::servers::Topology::{self, Cluster, Etcd, File, Quorum, Sentinel, Single, ZooKeeper};
use super::worker::NAMES;
use support::RedisServer;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) name: &'static str,
    pub(crate) on: &'static [Topology],
    pub(crate) fire: fn(&mut Driver<'_>),
}

const EVERYWHERE: &[Topology] = &[Single, Sentinel, Cluster, Quorum, Etcd, ZooKeeper, File];
const REDIS: &[Topology] = &[Single, Sentinel, Cluster, Quorum];
const SETS: &[Topology] = &[Sentinel, Cluster, Etcd, ZooKeeper];

const fn fault(name: &'static str, on: &'static [Topology], fire: fn(&mut Driver<'_>)) -> Fault {
    Fault { name, on, fire }
}

#[rustfmt::skip]
pub(crate) const FAULTS: [Fault; 8] = [
    fault("stop worker", EVERYWHERE, |driver| stop_worker(driver, 0.05, 0.5)),
    fault("stop worker past ttl", EVERYWHERE, |driver| stop_worker(driver, 1.1, 2.1)),
    fault("kill worker", EVERYWHERE, kill_worker),
    fault("cut connections", REDIS, cut_connections),
    fault("stop server", REDIS, stop_server),
    // Where others replace it, one that comes back is a replica, and empty.
    fault("restart server", &[Single, Quorum], |driver| any_master(driver).restart()),
    fault("kill master", SETS, |driver| fail_over(driver, How::Killed)),
    // Before etcd 3.4.31 and 3.5.13 two may hold a lock after it: see docs/etcd.md.
    fault("stop master past failover", &[Sentinel, Cluster, ZooKeeper], |driver| fail_over(driver, How::Stopped)),
];

/// A part of the ttl, by chance: between these.
fn part(driver: &mut Driver<'_>, least: f64, most: f64) -> Duration {
    let ttl = driver.servers.topology.ttl();
    ttl.mul_f64(least + (most - least) * driver.rng.f64())
}

fn any_worker(driver: &mut Driver<'_>) -> usize {
    driver.rng.usize(..driver.workers.len())
}

fn stop_worker(driver: &mut Driver<'_>, least: f64, most: f64) {
    let (time, any) = (part(driver, least, most), any_worker(driver));
    let worker = &driver.workers[any].child;
    worker.stop();
    thread::sleep(time);
    worker.cont();
}

fn kill_worker(driver: &mut Driver<'_>) {
    let any = any_worker(driver);
    driver.kill_worker(any);
}

fn any_master<'a>(driver: &'a mut Driver<'_>) -> &'a RedisServer {
    let choice = driver.rng.usize(..);
    let masters = driver.servers.masters();
    masters[choice % masters.len()]
}

fn cut_connections(driver: &mut Driver<'_>) {
    for master in driver.servers.masters() {
        for kind in ["normal", "pubsub"] {
            master.query::<()>(&["CLIENT", "KILL", "TYPE", kind]);
        }
    }
}

fn stop_server(driver: &mut Driver<'_>) {
    let time = part(driver, 0.05, 0.8);
    let server = any_master(driver);
    server.stop();
    thread::sleep(time);
    server.cont();
}

fn fail_over(driver: &mut Driver<'_>, how: How) {
    let name = NAMES[driver.rng.usize(..NAMES.len())];
    let pause = part(driver, 0.0, 1.0);
    driver.servers.fail_over(name, how, pause);
}
