//! Starts the program, and watches it.

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use support::{RedisServer, wait_until};
use tempfile::TempDir;

use crate::PATIENCE;

/// A directory with locks, and with what the tool and its commands write.
pub(crate) struct Place {
    dir: TempDir,
    url: String,
}

impl Place {
    pub(crate) fn with_files() -> Self {
        let dir = tempfile::tempdir().expect("make a directory");
        let url = format!("file://{}/locks", dir.path().display());
        Place { dir, url }
    }

    pub(crate) fn with_locks_at(url: &str) -> Self {
        let dir = tempfile::tempdir().expect("make a directory");
        Place {
            dir,
            url: url.to_owned(),
        }
    }

    pub(crate) fn with_server() -> (RedisServer, Self) {
        let server = RedisServer::start();
        let place = Place::with_locks_at(&server.url());
        (server, place)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, name: &str) -> String {
        wait_until(name, PATIENCE, || self.read(name).ends_with('\n'));
        self.read(name)
    }

    /// The tool with these arguments, a blank between two. The command's working directory is this place.
    pub(crate) fn tool(&self, args: &str) -> Tool {
        let args: Vec<_> = args.split(' ').collect();
        self.tool_with(&args)
    }

    pub(crate) fn tool_with(&self, args: &[&str]) -> Tool {
        let mut command = heeding_signals(program());
        command.args(args).stdin(Stdio::null());
        self.here(command)
    }

    /// With its directory, and its locks.
    fn here(&self, mut command: Command) -> Tool {
        command.env("CROSSLOCK_URL", &self.url);
        command.current_dir(self.dir.path());
        Tool {
            command,
            input: Vec::new(),
        }
    }

    /// `run` with these options, and a command for the shell.
    pub(crate) fn run(&self, options: &str, script: &str) -> Tool {
        self.running("run", options, script)
    }

    pub(crate) fn elect(&self, options: &str, script: &str) -> Tool {
        self.running("elect", options, script)
    }

    fn running(&self, verb: &str, options: &str, script: &str) -> Tool {
        let mut args = vec![verb];
        args.extend(options.split(' '));
        args.extend(["--", "sh", "-c", script]);
        self.tool_with(&args)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }
}

pub(crate) struct Tool {
    pub(crate) command: Command,
    input: Vec<u8>,
}

impl Tool {
    pub(crate) fn input(mut self, bytes: &[u8]) -> Self {
        self.input = bytes.to_vec();
        self
    }

    pub(crate) fn start(mut self) -> Running {
        let dir = tempfile::tempdir().expect("make a directory");
        let file = |name: &str| fs::File::create(dir.path().join(name)).expect("make a file");
        self.command.stdout(file("out")).stderr(file("err"));
        if !self.input.is_empty() {
            self.command.stdin(Stdio::piped());
        }
        let mut process = self.command.spawn().expect("start the tool");
        if let Some(mut stdin) = process.stdin.take() {
            // A command that doesn't read it has closed it.
            let _ = stdin.write_all(&self.input);
        }
        let line = format!("{:?}", self.command);
        Running { process, dir, line }
    }

    #[track_caller]
    pub(crate) fn done(self) -> Done {
        self.start().done()
    }

    #[track_caller]
    pub(crate) fn ends(self, code: i32) -> Done {
        self.start().ends(code)
    }
}

pub(crate) struct Running {
    process: Child,
    dir: TempDir,
    /// Its command line, for a test that fails.
    line: String,
}

impl Running {
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.process)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("signal the tool");
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().expect("kill the tool");
        self.process.wait().expect("reap the tool");
    }

    pub(crate) fn is_over(&mut self) -> bool {
        let status = self.process.try_wait().expect("wait for the tool");
        status.is_some()
    }

    pub(crate) fn out(&self) -> String {
        self.read("out")
    }

    #[track_caller]
    pub(crate) fn wait_for_err(&self, text: &str) {
        wait_until(text, PATIENCE, || self.read("err").contains(text));
    }

    #[track_caller]
    pub(crate) fn done(mut self) -> Done {
        let mut status = None;
        wait_until("the tool to end", PATIENCE, || {
            status = self.process.try_wait().expect("wait for the tool");
            status.is_some()
        });
        Done {
            status: status.expect("it has ended"),
            out: self.read("out"),
            err: self.read("err"),
        }
    }

    #[track_caller]
    pub(crate) fn ends(self, code: i32) -> Done {
        let line = self.line.clone();
        let done = self.done();
        assert_eq!(done.code(), code, "{line}: {}{}", done.out, done.err);
        done
    }

    fn read(&self, name: &str) -> String {
        let bytes = fs::read(self.dir.path().join(name)).expect("read what the tool wrote");
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only for a process that has been reaped.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[derive(Debug)]
pub(crate) struct Done {
    status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Done {
    #[track_caller]
    pub(crate) fn code(&self) -> i32 {
        let signal = self.status.signal();
        self.status
            .code()
            .unwrap_or_else(|| panic!("signal {signal:?} has ended it: {}", self.err))
    }
}

/// What the kernel says of a process: whether it runs, by a letter, and whose child it is; `None` of one that is gone.
pub(crate) fn stat(pid: &str) -> Option<(String, String)> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).ok()?;
    let mut rest = stat.rsplit_once(") ")?.1.split(' ');
    Some((rest.next()?.to_owned(), rest.next()?.to_owned()))
}

/// Whether a process of that number can run: it isn't a zombie.
pub(crate) fn is_running(pid: &str) -> bool {
    stat(pid).is_some_and(|(state, _)| !["Z", "X"].contains(&&*state))
}

/// Waits until a process is in a state: `S`, it sleeps, or `T`, a signal has stopped it.
#[track_caller]
pub(crate) fn wait_until_state(pid: &str, wanted: &str) {
    wait_until("a process to sleep or stop", PATIENCE, || {
        stat(pid).is_some_and(|(state, _)| state == wanted)
    });
}

pub(crate) fn parent_of(pid: &str) -> String {
    stat(pid).expect("it is there").1
}

/// Waits for as long as a condition must hold to be believed.
pub(crate) fn pause(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}

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

/// What a shell does with the tool on a terminal that script(1) makes, of 80 columns, as nobody says otherwise. There
/// it is `$X`, and somebody types `input`.
pub(crate) fn on_terminal(place: &Place, script: &str, input: &str) -> Done {
    terminal(place, script).input(input.as_bytes()).done()
}

pub(crate) fn terminal(place: &Place, script: &str) -> Tool {
    let mut command = heeding_signals("script");
    command.args(["-q", "-e", "-f", "-c", script, "/dev/null"]);
    command.env("X", program()).env_remove("NO_COLOR");
    place.here(command)
}
