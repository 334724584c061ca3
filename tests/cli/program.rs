//! Where the program is that these tests run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::SystemTime;

/// The program, as `cargo test --workspace --all-features` builds it beside the tests.
pub(crate) fn program() -> &'static str {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
        let test = std::env::current_exe().expect("a test knows its file");
        let program = test
            .ancestors()
            .nth(2)
            .expect("it is in deps")
            .join("crosslock");
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let sources = ["src", "lua"].map(|folder| newest(&root.join(folder)));
        let built = fs::metadata(&program).and_then(|found| found.modified());
        assert!(
            built.is_ok_and(|built| sources.iter().all(|source| *source <= built)),
            "{} isn't there, or older than its sources: cargo test -p crosslock --all-features --test program",
            program.display()
        );
        program
    });
    PROGRAM.to_str().expect("its path is text")
}

/// A program that heeds every signal, also where these tests were started to ignore some: a shell that starts a job in the
/// background has it ignore SIGINT and SIGQUIT.
pub(crate) fn heeding_signals(program: &str) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal", program]);
    command
}

/// When a file in there was changed last.
fn newest(folder: &Path) -> SystemTime {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let times = entries.map(|entry| {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            return newest(&path);
        }
        let found = fs::metadata(&path).and_then(|found| found.modified());
        found.expect("a file has a time")
    });
    times.max().unwrap_or(SystemTime::UNIX_EPOCH)
}
