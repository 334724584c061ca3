//! Several servers that belong together: a master with replicas, a Sentinel set, a cluster, a quorum.
//!
//! A [`Setup`] says what they are like. Each server is a [`Member`], which is a [`RedisServer`](super::RedisServer)
//! that can be killed, stopped and started again by itself. With [`Setup::proxies`] a proxy stands in front of each, at
//! the address that it tells everyone: a test can then cut off clients.

mod cluster;
mod member;
mod migration;
mod nodes;
mod quorum;
mod replicated;
mod sentinels;
mod setup;
mod slots;

use std::time::Duration;

pub use cluster::Cluster;
pub use member::Member;
pub use migration::Migration;
pub use quorum::Quorum;
pub use replicated::Replicated;
pub use sentinels::SentinelSet;
pub use setup::Setup;
pub use slots::slot_of;

/// Far more than any set takes to come to what is waited for, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the Valkey server to test on, if there is one; says on standard error when there is none.
///
/// It is the one that `CROSSLOCK_TEST_VALKEY_SERVER` names, which `tests/run.sh` sets, or the one in the path.
pub fn valkey() -> Option<String> {
    let named = std::env::var("CROSSLOCK_TEST_VALKEY_SERVER");
    let program = named.unwrap_or_else(|_| "valkey-server".into());
    let found = super::server::runs(std::process::Command::new(&program).arg("--version"));
    if !found {
        eprintln!("not tested on Valkey: there is no {program}, which tests/run.sh installs");
    }
    found.then_some(program)
}
