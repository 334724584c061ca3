//! Real faults against locks that are held and waited for, judged by what was written down meanwhile.
//!
//! `docs/internals/testing.md` says which variables it reads.

use std::path::Path;

use crosslock_torture::{Topology, torture};

macro_rules! torture_each {
    ($($test:ident: $topology:ident,)*) => {
        $(#[test] fn $test() {
            torture(Topology::$topology, Path::new(env!("CARGO_BIN_EXE_torture-worker")));
        })*
    };
}

torture_each! {
    single: Single,
    sentinel: Sentinel,
    cluster: Cluster,
    quorum: Quorum,
    etcd: Etcd,
    zookeeper: ZooKeeper,
    file: File,
}
