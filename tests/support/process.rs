//! Child processes: the tests' helper (`tests/helper`), which cargo builds beside the tests, in one of its roles.
//!
//! Parent and child talk in lines. The child's begin with "@ ", which tells them from what else is printed; its
//! standard error is the parent's.

use std::env;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use super::{nursery, signals, wait_until};

const ROLE: &str = "CROSSLOCK_CHILD";
const PARENT: &str = "CROSSLOCK_CHILD_OF";

/// A child process; dropping it kills it.
#[derive(Debug)]
pub struct Child {
    role: String,
    process: std::process::Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// What the child has printed, each line with whether it was waited for.
    seen: Vec<(String, bool)>,
}

impl Child {
    /// Runs the helper in this role, with `args` in its environment.
    pub fn spawn(role: &str, args: &[(&str, &str)]) -> Self {
        Self::spawn_by(Command::new(helper()), role, args)
    }

    /// The same as another user, if one is given.
    pub fn spawn_as(uid: Option<u32>, role: &str, args: &[(&str, &str)]) -> Self {
        // Not by its path, which that user may be unable to walk.
        let program = File::open(helper()).expect("cargo builds the helper for tests");
        let mut command = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()));
        become_user(&mut command, uid);
        Self::spawn_by(command, role, args)
    }

    /// The same by a program that executes its arguments in its own place, such as `unshare`.
    pub fn spawn_under(program: &[&str], role: &str, args: &[(&str, &str)]) -> Self {
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).arg(helper());
        Self::spawn_by(command, role, args)
    }

    pub fn spawn_by(mut command: Command, role: &str, args: &[(&str, &str)]) -> Self {
        command
            .env_remove("CROSSLOCK_URL")
            .envs(args.iter().copied())
            .env(ROLE, role)
            .env(PARENT, std::process::id().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut process = nursery::spawn(command).expect("start the helper");
        let stdout = process.stdout.take().expect("stdout is piped");
        Self {
            role: role.to_owned(),
            stdin: process.stdin.take(),
            lines: read_lines(stdout),
            process,
            seen: Vec::new(),
        }
    }

    /// Waits for a line that begins with `word` and returns its rest.
    ///
    /// Lines with other words stay, for later calls; one that was returned doesn't.
    #[track_caller]
    pub fn wait_for(&mut self, word: &str, timeout: Duration) -> String {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(rest) = self.take(word) {
                return rest;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.seen.push((line, false)),
                Err(error) => panic!("{error}, waiting for {word:?} from {}", self.story()),
            }
        }
    }

    /// Returns whether the child has said `word` in a line that no call of `wait_for` returned yet.
    pub fn has_said(&mut self, word: &str) -> bool {
        self.seen
            .extend(self.lines.try_iter().map(|line| (line, false)));
        let mut unread = self.seen.iter().filter(|(_, read)| !read);
        unread.any(|(line, _)| rest_after(line, word).is_some())
    }

    #[track_caller]
    pub fn rest(&mut self, timeout: Duration) -> Vec<String> {
        let deadline = Instant::now() + timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.seen.push((line, false)),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("no end of {}", self.story()),
            }
        }
        let unread = self.seen.iter().filter(|(_, read)| !read);
        let said = unread.filter_map(|(line, _)| line.strip_prefix("@ "));
        said.map(str::to_owned).collect()
    }

    /// Sends a line, which the child gets from [`hear`].
    pub fn tell(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin
            .write_all(format!("{line}\n").as_bytes())
            .expect("the child reads");
    }

    /// The same to one that may be dead.
    pub fn try_tell(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        let _ = stdin.write_all(format!("{line}\n").as_bytes());
    }

    /// Closes the child's standard input: its [`hear`] returns `None`.
    pub fn hang_up(&mut self) {
        self.stdin = None;
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub fn kill(&mut self) {
        signals::kill(&mut self.process);
    }

    pub fn stop(&self) {
        signals::stop(&self.process);
    }

    pub fn cont(&self) {
        signals::cont(&self.process);
    }

    #[track_caller]
    pub fn wait(&mut self, timeout: Duration) -> ExitStatus {
        let mut status = None;
        let what = format!("{} to end", self.role);
        wait_until(&what, timeout, || {
            status = self.try_wait();
            status.is_some()
        });
        status.expect("the child has ended")
    }

    pub fn try_wait(&mut self) -> Option<ExitStatus> {
        self.process.try_wait().expect("wait for a child")
    }

    fn take(&mut self, word: &str) -> Option<String> {
        let mut unread = self.seen.iter_mut().filter(|(_, read)| !read);
        unread.find_map(|(line, read)| {
            let rest = rest_after(line, word)?.to_owned();
            *read = true;
            Some(rest)
        })
    }

    fn story(&mut self) -> String {
        self.seen
            .extend(self.lines.try_iter().map(|line| (line, false)));
        let mut story = format!("{} (process {}), which printed:", self.role, self.pid());
        for (line, _) in &self.seen {
            let _ = write!(story, "\n    {line}");
        }
        story
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        signals::kill(&mut self.process);
    }
}

/// Returns the role of this process, if it is a child.
///
/// A child is killed when its parent dies, whatever it is blocked in at that time.
pub fn role() -> Option<String> {
    let role = env::var(ROLE).ok()?;
    // One in a namespace of its own doesn't see its parent.
    if let Ok(parent) = env::var(PARENT) {
        die_with(&parent);
    }
    Some(role)
}

/// Returns a command that runs the helper in this role by `program`, in whose child it doesn't see its parent.
pub fn helper_in_a_child_of(program: &[&str], role: &str) -> Command {
    let mut command = Command::new(program[0]);
    command.args(&program[1..]).arg(helper()).env(ROLE, role);
    command
}

/// Where the helper is: beside the tests' folder, or this very program.
fn helper() -> PathBuf {
    let own = env::current_exe().expect("the path of this program");
    if own.file_name().is_some_and(|name| name == "helper") {
        return own;
    }
    let target = own.ancestors().nth(2).expect("tests are in deps");
    target.join("helper")
}

fn become_user(command: &mut Command, uid: Option<u32>) {
    if let Some(uid) = uid {
        command.uid(uid).gid(uid).current_dir("/");
    }
}

pub fn say(line: &str) {
    // In one write, because others may print between two; the newline ends what they left unfinished.
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(format!("\n@ {line}\n").as_bytes())
        .and_then(|()| stdout.flush())
        .expect("the parent reads");
}

/// Returns the next line from the parent, or `None` when there won't be any: the child should end then.
pub fn hear() -> Option<String> {
    let mut line = String::new();
    let bytes = io::stdin().read_line(&mut line).expect("read stdin");
    (bytes > 0).then(|| line.trim_end_matches('\n').to_owned())
}

fn die_with(parent: &str) {
    set_parent_process_death_signal(Some(Signal::KILL)).expect("set the parent-death signal");
    let found = getppid().map(|pid| pid.as_raw_nonzero().to_string());
    // It may have died before.
    assert_eq!(found.as_deref(), Some(parent), "the parent is gone");
}

fn read_lines(stdout: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    let body = move || {
        let lines = BufReader::new(stdout).lines().map_while(Result::ok);
        for line in lines.filter(|line| !line.is_empty()) {
            if sender.send(line).is_err() {
                return;
            }
        }
    };
    thread::Builder::new()
        .name("child-lines".into())
        .spawn(body)
        .expect("start a thread");
    receiver
}

fn rest_after<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let rest = line.strip_prefix("@ ")?.strip_prefix(word)?;
    rest.strip_prefix(' ').or(rest.is_empty().then_some(rest))
}
