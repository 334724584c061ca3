//! What happened: one line of JSON before and after each operation and each fault.
//!
//! Every process appends to a file of its own, each line by one write, so that what was written survives a kill. All
//! clocks are one: `CLOCK_BOOTTIME` of this machine.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Every process, as the target of a fault.
pub const ALL: u32 = 99;
/// The process that runs the proxies between the workers and the server.
pub const DRIVER: u32 = 98;
/// The program `crosslock`, its watchdog and its command.
pub const PROGRAM: u32 = 96;
/// The server, which writes nothing itself: a watcher says how late it answers.
pub const SERVER: u32 = 97;

/// How a lock is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    #[default]
    Exclusive,
    Read,
    /// So many permits.
    Permits(u32),
}

/// What an event tells of.
///
/// One asks by lock, timed, try, adopt, open, close or run. The outcome of an `answer` is held, none, opened, closed,
/// or an error. A `release` is by unlock, downgrade, drop, panic or pass; of a value by commit, drop, panic, discard,
/// or unchanged.
///
/// | op | tells | fields |
/// |---|---|---|
/// | `ask` | before a call | `id`, `name` (or two), `mode`, `token` the number of its locker, `detail` how, `until` its timeout, or the call that an adopted lease is from |
/// | `cancel` | before a call is cancelled | `id` |
/// | `answer` | after it, or after a downgrade | `id`, `mode`, `outcome`, `token`, `until` when the lease ends, `detail` abandoned, handed over, or an error |
/// | `look` | the guard is valid | `id`, `until` when the lease ends |
/// | `lost` | the guard isn't valid | `id`, `detail` why |
/// | `value` | the value that the lock protects | `id`, `name`, `until` the value |
/// | `release` | before a release | `id`, `detail` how, `until` when the lease ends |
/// | `released` | after it, or after the wait for another value behind it | `id`, `outcome`, `detail` why it was lost, or waited |
/// | `meet`, `met` | before and after a call for a barrier | `id`, `name`, `outcome` leader, follower, none or an error |
/// | `register` | the register has answered | `id`, `name`, `token`, `detail` its verb, `outcome`, `until` its value |
/// | `fault`, `faulted` | before and after a fault | `id`, `process` its target, `name` of the lock that it breaks or whose server it hits, `detail` its kind, `outcome` whom it hit |
/// | `broke` | a break has ended a lease | `id` of the fault, `name`, `token` of the lease, zero when it isn't known, `until` before it |
/// | `late` | threads of a process that were due then ran so late, or waited for the disk, or the server answered so late | `process`, `pid`, `until` when they did, `detail` waited or tried |
/// | `key` | a lock as the server has it | `name`, `detail` its owner, or mark, `token` its counter, `until` its expiry |
/// | `line` | who waits, as the server has it | `name`, `detail` their owners, first come first |
/// | `sharers` | who shares a lock, as the server has it | `name`, `detail` count, owner and end of each |
/// | `broken` | whose leases were broken, as the server has it | `name`, `detail` the last end, then end:id of each |
/// | `bare` | a key without a ttl | `name` |
/// | `run` | what was run | `detail` safe or unsafe, `outcome` against which servers, `until` the ttl in nanoseconds, `token` for how many seconds, `id` rounds |
/// | `kept` | before a child is killed that had copies of the files of a process that was | `pid` of that process, `until` when it was forked off |
/// | `down` | most members of etcd or ZooKeeper have been down | `until` they are started again |
/// | `without` | a fault that can't be fired here | `detail` its kind |
/// | `left` | what stayed behind | `detail` |
/// | `stored` | the value at the end | `name`, `until` the value |
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Event {
    /// Nanoseconds since boot.
    pub at: u64,
    pub op: String,
    /// The number of a worker.
    #[serde(skip_serializing_if = "is_default")]
    pub process: u32,
    #[serde(skip_serializing_if = "is_default")]
    pub pid: u32,
    #[serde(skip_serializing_if = "is_default")]
    pub thread: u32,
    #[serde(skip_serializing_if = "is_default")]
    pub id: u64,
    #[serde(skip_serializing_if = "is_default")]
    pub token: u64,
    #[serde(skip_serializing_if = "is_default")]
    pub until: u64,
    #[serde(skip_serializing_if = "is_default")]
    pub mode: Mode,
    /// Of several names that are locked together: all of them, with spaces between.
    #[serde(skip_serializing_if = "is_default")]
    pub name: String,
    #[serde(skip_serializing_if = "is_default")]
    pub outcome: String,
    #[serde(skip_serializing_if = "is_default")]
    pub detail: String,
}

/// What is zero or empty is left out.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Nanoseconds since boot.
pub fn now() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let part = |number: i64| u64::try_from(number).expect("no time before boot");
    part(now.tv_sec) * 1_000_000_000 + part(now.tv_nsec)
}

impl Event {
    /// An event of this moment.
    pub fn now(op: &str) -> Self {
        Event {
            at: now(),
            op: op.to_owned(),
            ..Event::default()
        }
    }

    /// What a look shows of a name.
    pub(crate) fn shown(at: u64, op: &str, name: &str, detail: String) -> Self {
        Event {
            at,
            op: op.to_owned(),
            name: name.to_owned(),
            detail,
            ..Event::default()
        }
    }

    /// The event as one line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and texts")
    }

    /// Reads such a line; `None` for one that isn't whole, as the last one of a process that was killed may be.
    pub fn from_json(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}

/// What is shorter isn't told of those that are late: half of the shortest timeout whose outcome is judged. What many
/// such moments come to is in the slack of the rules.
pub const LATE: Duration = Duration::from_millis(10);

/// What is told of a lock that another thread of the same process has handed over, with its lease.
pub const HANDED_OVER: &str = "handed over";

/// How it is known that somebody was late: by others, which looked what would happen to them.
pub const TRIED: &str = "tried";
/// The same: by itself.
pub const WAITED: &str = "waited";

/// The file of one process.
#[derive(Debug)]
pub struct History {
    file: File,
    /// The process's number.
    process: u32,
}

impl History {
    /// Appends to `file` of the directory, for a process with this number.
    pub fn open(dir: &Path, file: &str, process: u32) -> io::Result<Self> {
        let path = dir.join(file);
        let file = File::options().create(true).append(true).open(path)?;
        Ok(History { file, process })
    }

    /// Writes an event, in one write; and another one, if the disk has kept this process waiting for that.
    pub fn tell(&self, event: &Event) {
        let begun = now();
        self.write(event);
        let took = Duration::from_nanos(now() - begun);
        if took >= LATE {
            self.tell_late(WAITED, took);
        }
    }

    /// Writes that the process was late until now, by so much; and how that is known.
    pub fn tell_late(&self, how: &str, by: Duration) {
        self.tell_late_of(self.process, std::process::id(), how, by);
    }

    /// The same for another.
    pub fn tell_late_of(&self, process: u32, pid: u32, how: &str, by: Duration) {
        let by = u64::try_from(by.as_nanos()).expect("no centuries");
        let until = now();
        self.write(&Event {
            at: until.saturating_sub(by),
            op: "late".to_owned(),
            process,
            pid,
            until,
            detail: how.to_owned(),
            ..Event::default()
        });
    }

    fn write(&self, event: &Event) {
        let line = event.to_json() + "\n";
        let written = (&self.file).write_all(line.as_bytes());
        written.expect("write history");
    }
}

/// All events of all files of the directory, in the order of time.
pub fn read(dir: &Path) -> io::Result<Vec<Event>> {
    let mut events = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|kind| kind == "jsonl") {
            let text = fs::read_to_string(path)?;
            events.extend(text.lines().filter_map(Event::from_json));
        }
    }
    events.sort_by_key(|event| event.at);
    Ok(events)
}
