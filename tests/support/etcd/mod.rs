//! Real servers of etcd: one, or a cluster of several.

mod calls;
mod http;
mod server;
mod setup;

pub use calls::Status;
pub use server::{Etcd, EtcdCluster, EtcdKind};
pub use setup::EtcdSetup;

use std::env;
use std::process::Command;
use std::sync::OnceLock;

use super::server::runs;

/// Returns the version of the etcd that is tested on: 3, 4, 23.
pub fn etcd_version() -> [u32; 3] {
    let told = Command::new(program()).arg("--version").output();
    let told = String::from_utf8(told.expect("run etcd").stdout).expect("it is text");
    let first = told.lines().next().unwrap_or_default();
    let numbers = first.rsplit(' ').next().unwrap_or_default().split('.');
    let mut version = [0; 3];
    for (part, number) in version.iter_mut().zip(numbers) {
        *part = number.parse().expect("a number");
    }
    version
}

/// The program to start.
///
/// # Panics
///
/// If there is none.
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
