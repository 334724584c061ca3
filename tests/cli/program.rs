//! Where the program is that these tests run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use support::built_program;

/// The program, as `cargo test --workspace --all-features` builds it beside the tests.
pub(crate) fn program() -> &'static str {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let sources = ["src", "lua"].map(|folder| root.join(folder));
        let how = "cargo test -p crosslock --all-features --test program";
        built_program("crosslock", &sources, how)
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
