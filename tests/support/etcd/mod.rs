//! Real servers of etcd: one, or a cluster of several.

mod calls;
pub mod gateway;
mod server;
mod setup;

pub use server::{Etcd, EtcdCluster, EtcdKind};
pub use setup::EtcdSetup;

use std::env;
use std::process::Command;
use std::sync::OnceLock;

use super::server::runs;

fn program() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let program = env::var("CROSSLOCK_TEST_ETCD").unwrap_or_else(|_| "etcd".into());
        assert!(
            runs(Command::new(&program).arg("--version")),
            "etcd not found: run ./tests/run.sh, which downloads it (tried {program:?})"
        );
        program
    })
}
