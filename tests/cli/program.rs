//! How these tests start the program.

use std::process::Command;

/// The program, as cargo has built it for these tests.
pub(crate) fn program() -> &'static str {
    env!("CARGO_BIN_EXE_crosslock")
}

/// A program that heeds every signal, also where these tests were started to ignore some: a shell that starts a job in
/// the background has it ignore SIGINT and SIGQUIT.
pub(crate) fn heeding_signals(program: &str) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal", program]);
    command
}
