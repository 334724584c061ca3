//! What ZooKeeper alone does to locks: nodes that people delete, sessions that end, replies that are lost. Where there
//! is no ZooKeeper, tests with its name in theirs are left out.

mod zookeeper_garbage;
mod zookeeper_late;
mod zookeeper_nodes;
mod zookeeper_outages;

use std::time::Duration;

use crosslock::{Locker, LockerBuilder};
use support::{ZooKeeper, ZooKeeperSetup};

/// Far more than anything here takes, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Servers whose sessions last for a minute, if that is asked for.
fn setup() -> ZooKeeperSetup {
    ZooKeeper::setup().config("maxSessionTimeout", "60000")
}

/// Options for a locker whose leases don't end while a test runs.
fn builder(server: &ZooKeeper) -> LockerBuilder {
    let url = format!("{}?tick=100ms", server.url_at("locks"));
    Locker::builder(&url).namespace("ns")
}

fn locker(server: &ZooKeeper) -> Locker {
    builder(server).build().unwrap()
}

/// The owners that have nodes in the line of `name`, in its order.
#[track_caller]
fn line(server: &ZooKeeper, name: &str) -> Vec<String> {
    let mut session = server.session();
    let children = session.children(&format!("/locks/ns/{name}"));
    session.close();
    let mut nodes: Vec<_> = children.unwrap_or_default();
    nodes.retain(|node| node.contains("-lock-"));
    nodes.sort_by_key(|node| node.rsplit('-').next().map(str::to_owned));
    nodes
}
