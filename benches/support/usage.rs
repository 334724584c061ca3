//! What servers have done since they were asked to count anew.

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
        let cpu = servers.iter_mut().map(cpu_time).sum();
        Counting { servers, cpu }
    }

    pub(crate) fn end(mut self) -> Usage {
        let mut usage = Usage::default();
        for server in &mut self.servers {
            usage.add(server);
        }
        usage.cpu = self.servers.iter_mut().map(cpu_time).sum::<f64>() - self.cpu;
        usage
    }
}

impl Usage {
    fn add(&mut self, server: &mut Connection) {
        let info: String = ask(server, &["INFO", "commandstats"]);
        for line in info.lines() {
            let Some((command, calls, usec)) = calls(line) else {
                continue;
            };
            self.all += calls;
            if command == "evalsha" {
                self.evalsha += calls;
                self.most = self.most.max(calls);
                self.script += usec;
            }
        }
    }
}

/// A command, how often it was called, and the microseconds of that.
fn calls(line: &str) -> Option<(&str, usize, f64)> {
    let (command, numbers) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
    let (calls, rest) = numbers.split_once(",usec=")?;
    let usec = rest.split(',').next()?.parse().ok()?;
    // The bench's own.
    let ours = !command.starts_with("config") && command != "info";
    ours.then_some((command, calls.parse().ok()?, usec))
}

/// The CPU time that the server has used, in seconds.
fn cpu_time(server: &mut Connection) -> f64 {
    let info: String = ask(server, &["INFO", "cpu"]);
    let used = info.lines().filter_map(|line| {
        let (name, seconds) = line.split_once(':')?;
        let is_own = ["used_cpu_sys", "used_cpu_user"].contains(&name);
        is_own.then(|| seconds.parse::<f64>().expect("seconds"))
    });
    used.sum()
}
