//! Tests of this program that run as processes of their own, to be killed.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;

use tempfile::TempDir;

use super::dir::Dir;

const DIRECTORY: &str = "CROSSLOCK_TEST_DIRECTORY";
const SAYS: &str = "child says ";

/// A process, killed when this is dropped.
pub(super) struct TestChild {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl TestChild {
    /// Runs that test, which does its work only in such a process.
    pub(super) fn run(test: &str, directory: &Path) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "--nocapture", test])
            .env(DIRECTORY, directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        TestChild { child, output }
    }

    /// What it says next.
    pub(super) fn hear(&mut self) -> String {
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).unwrap();
            assert!(read > 0, "it says no more");
            if let Some((_, said)) = line.trim_end().split_once(SAYS) {
                return said.to_owned();
            }
        }
    }

    /// What it reads, and its own children.
    pub(super) fn take_input(&mut self) -> ChildStdin {
        self.child.stdin.take().unwrap()
    }

    pub(super) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(super) fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for TestChild {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The directory that the parent has named; `None` in a run of all tests, in which such a test does nothing.
pub(super) fn directory_of_parent() -> Option<PathBuf> {
    env::var_os(DIRECTORY).map(PathBuf::from)
}

/// Tells the parent.
pub(super) fn say(text: impl std::fmt::Display) {
    let mut out = std::io::stdout();
    writeln!(out, "{SAYS}{text}")
        .and_then(|()| out.flush())
        .unwrap();
}

pub(super) fn opened(path: &Path) -> Arc<Dir> {
    Arc::new(Dir::at(path).unwrap())
}

pub(super) fn temp_dir() -> TempDir {
    tempfile::tempdir().unwrap()
}
