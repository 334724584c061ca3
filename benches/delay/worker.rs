//! The processes that work: this program, started with [`ROLE`] as its first argument.

use std::convert::Infallible;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{thread, time::SystemTime};

use crosslock::Task;

use super::{Queue, drain, queue};

const ROLE: &str = "delay-worker";

/// A process that works.
pub(crate) struct Worker {
    pub(crate) child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Worker {
    pub(crate) fn spawn(url: &str, queue: &str, how: &str, threads: usize) -> Self {
        let bench = std::env::current_exe().expect("the path of this bench");
        let mut child = Command::new(bench)
            .args([ROLE, url, queue, how, &threads.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let mut worker = Worker {
            input: child.stdin.take().expect("a pipe"),
            output: BufReader::new(child.stdout.take().expect("a pipe")),
            child,
        };
        assert_eq!(worker.line(), "ready");
        worker
    }

    pub(crate) fn begin(&mut self) {
        self.input.write_all(b"\n").expect("a worker");
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a worker");
        line.trim().to_owned()
    }

    /// How late each task was, in microseconds; or how many there were.
    pub(crate) fn end(&mut self) -> Vec<f64> {
        self.begin();
        let all = self.line();
        all.split_whitespace()
            .map(|late| late.parse().expect("a number"))
            .collect()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Does the work of such a process if this is one, and says whether it was.
pub(crate) fn serve() -> bool {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [role, url, name, how, threads] = &arguments[..] else {
        return false;
    };
    if role != ROLE {
        return false;
    }
    let (queue, threads) = (queue(url, name), threads.parse().expect("a number"));
    say("ready");
    while await_line() {
        work(&queue, how, threads);
    }
    true
}

fn work(queue: &Queue, how: &str, threads: usize) {
    match how {
        "drain" => say(&drain_all(queue, threads).to_string()),
        "work" => {
            let done = Arc::new(AtomicUsize::new(0));
            let count = done.clone();
            let note = move |_: &Task<u64>| {
                count.fetch_add(1, Ordering::Relaxed);
                Ok::<_, Infallible>(())
            };
            let workers = queue.work(threads, note).expect("threads");
            if await_line() {
                drop(workers);
                say(&done.load(Ordering::Relaxed).to_string());
            }
        }
        "listen" => {
            let (sender, late) = crosslock::crossbeam_channel::unbounded();
            let note = move |task: &Task<u64>| {
                let late = SystemTime::now().duration_since(Task::due(task));
                sender.send(late.unwrap_or_default().as_micros().to_string())
            };
            let workers = queue.work(threads, note).expect("threads");
            if await_line() {
                drop(workers);
                say(&late.try_iter().collect::<Vec<_>>().join(" "));
            }
        }
        _ => {
            let task = queue.take().expect("a server");
            say("taken");
            await_line();
            drop(task);
        }
    }
}

fn drain_all(queue: &Queue, threads: usize) -> usize {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(|| drain(queue))).collect();
        let counts = threads.into_iter().map(|thread| thread.join());
        counts.map(|count| count.expect("a count")).sum()
    })
}

fn await_line() -> bool {
    matches!(
        std::io::stdin().lock().read_line(&mut String::new()),
        Ok(1..)
    )
}

fn say(line: &str) {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}").expect("a parent");
    output.flush().expect("a parent");
}
