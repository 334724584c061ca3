//! Real faults against locks that are held and waited for, judged by what was written down meanwhile.
//!
//! `docs/testing.md` says which variables it reads.

use std::path::Path;

use crosslock_torture::{Topology, torture};

fn run(topology: Topology) {
    torture(topology, Path::new(env!("CARGO_BIN_EXE_torture-worker")));
}

#[test]
fn single() {
    run(Topology::Single);
}

#[test]
fn sentinel() {
    run(Topology::Sentinel);
}

#[test]
fn cluster() {
    run(Topology::Cluster);
}

#[test]
fn etcd() {
    run(Topology::Etcd);
}

#[test]
fn zookeeper() {
    run(Topology::ZooKeeper);
}

#[test]
fn file() {
    run(Topology::File);
}
