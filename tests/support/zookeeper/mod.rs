//! Real servers of ZooKeeper: one, or an ensemble of several.

mod server;
mod session;
mod setup;

pub use server::{Ensemble, ZooKeeper, ZooKeeperKind};
pub use session::RawSession;
pub use setup::ZooKeeperSetup;

use std::env;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use super::server::runs;

fn jars() -> &'static str {
    static JARS: OnceLock<String> = OnceLock::new();
    JARS.get_or_init(|| {
        let jars = env::var("CROSSLOCK_TEST_ZOOKEEPER").unwrap_or_default();
        assert!(
            Path::new(&jars).join("zookeeper.jar").exists() || has_version(&jars),
            "ZooKeeper not found: run ./tests/run.sh, which downloads it (tried {jars:?})"
        );
        assert!(
            runs(Command::new("java").arg("-version")),
            "java not found: run ./tests/run.sh, which installs it"
        );
        jars
    })
}

/// In Apache's own archive the names of jars have versions.
fn has_version(jars: &str) -> bool {
    let files = Path::new(jars).read_dir().into_iter().flatten().flatten();
    files
        .filter_map(|file| file.file_name().into_string().ok())
        .any(|name| name.starts_with("zookeeper-3"))
}
