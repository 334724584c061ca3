//! What servers have done since they were asked to count anew, and what processes have used.

use std::fs;
use std::time::Duration;

use redis::Connection;

use super::place::ask;

/// What servers have done.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage {
    /// Scripts that clients had run.
    pub(crate) evalsha: usize,
    /// Those of the server that ran most.
    pub(crate) most: usize,
    /// All commands, with those that scripts ran.
    pub(crate) all: usize,
    /// Microseconds in scripts.
    pub(crate) script: f64,
    /// Seconds of CPU.
    pub(crate) cpu: f64,
    /// Each command with how often it was called, and the microseconds of that.
    pub(crate) commands: Vec<(String, usize, f64)>,
    /// How many were opened.
    pub(crate) connections: usize,
}

/// Counts what servers do from now on.
pub(crate) struct Counting {
    servers: Vec<Connection>,
    cpu: f64,
}

impl Counting {
    pub(crate) fn start(mut servers: Vec<Connection>) -> Self {
        for server in &mut servers {
            ask::<()>(server, &["CONFIG", "RESETSTAT"]);
        }
        let cpu = servers.iter_mut().map(cpu_of).sum();
        Counting { servers, cpu }
    }

    pub(crate) fn end(mut self) -> Usage {
        let mut usage = Usage::default();
        for server in &mut self.servers {
            let commands = commands(server);
            for (command, calls, usec) in &commands {
                usage.all += calls;
                if command == "evalsha" {
                    usage.evalsha += calls;
                    usage.most = usage.most.max(*calls);
                    usage.script += usec;
                }
            }
            usage.commands.extend(commands);
            usage.connections += connections(server);
        }
        usage.cpu = self.servers.iter_mut().map(cpu_of).sum::<f64>() - self.cpu;
        usage
    }
}

/// The commands of a server, how often each was called, and the microseconds of that; without the bench's own.
fn commands(server: &mut Connection) -> Vec<(String, usize, f64)> {
    let info: String = ask(server, &["INFO", "commandstats"]);
    let all = info.lines().filter_map(|line| {
        let (command, numbers) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let (calls, rest) = numbers.split_once(",usec=")?;
        let usec = rest.split(',').next()?.parse().ok()?;
        let is_own = command.starts_with("config") || command == "info";
        (!is_own).then_some((command.to_owned(), calls.parse().ok()?, usec))
    });
    all.collect()
}

fn connections(server: &mut Connection) -> usize {
    let info: String = ask(server, &["INFO", "stats"]);
    let mut lines = info.lines();
    let count = lines.find_map(|line| line.strip_prefix("total_connections_received:"));
    count.expect("a count").parse().expect("a count")
}

/// The CPU time that the server has used, in seconds.
fn cpu_of(server: &mut Connection) -> f64 {
    let info: String = ask(server, &["INFO", "cpu"]);
    let used = info.lines().filter_map(|line| {
        let (name, seconds) = line.split_once(':')?;
        let is_own = ["used_cpu_sys", "used_cpu_user"].contains(&name);
        is_own.then(|| seconds.parse::<f64>().expect("seconds"))
    });
    used.sum()
}

/// The CPU time that the threads of processes have used.
pub(crate) fn cpu_time(processes: &[u32]) -> Duration {
    let tasks = |pid: &u32| fs::read_dir(format!("/proc/{pid}/task"));
    let tasks = processes.iter().filter_map(|pid| tasks(pid).ok());
    let used = tasks.flatten().map_while(Result::ok).filter_map(|task| {
        // A thread may have ended.
        let times = fs::read_to_string(task.path().join("schedstat")).ok()?;
        times.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(used.sum())
}
