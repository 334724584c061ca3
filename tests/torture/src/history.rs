//! What happened: one line of JSON for each event.
//!
//! Every process appends to a file of its own, each line by one write, so that what was written survives a kill. All
//! clocks are one: `CLOCK_BOOTTIME` of this machine.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Event {
    pub at: u64,
    /// The number of a worker, or zero of the driver. One that is started in place of another has its own.
    pub process: u32,
    pub call: u32,
    pub name: String,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// A call has got the lock. `until` is when its lease ends, or zero if it has ended.
    Held {
        is_shared: bool,
        token: u64,
        until: u64,
    },
    /// A holder has found its guard valid.
    Valid {
        until: u64,
    },
    Found(u64),
    /// A holder is about to release the lock, and the value that it has increased with it.
    Releasing {
        increased: bool,
    },
    /// It has: ok, dropped, lost or unavailable.
    Released(String),
    /// The driver is about to kill the worker of this number.
    Killed(u32),
    Stored(u64),
}

pub fn now() -> u64 {
    let now = Duration::try_from(clock_gettime(ClockId::Boottime)).expect("it began at zero");
    now.as_nanos().try_into().expect("no centuries")
}

/// The file of one process.
#[derive(Debug)]
pub struct History {
    file: File,
    process: u32,
}

impl History {
    pub fn open(dir: &Path, process: u32) -> io::Result<Self> {
        let path = dir.join(format!("{process}.jsonl"));
        let file = File::options().create(true).append(true).open(path)?;
        Ok(History { file, process })
    }

    pub fn tell(&self, call: u32, name: &str, what: What) {
        self.tell_at(now(), call, name, what);
    }

    pub fn tell_at(&self, at: u64, call: u32, name: &str, what: What) {
        let event = Event {
            at,
            process: self.process,
            call,
            name: name.to_owned(),
            what,
        };
        let line = serde_json::to_string(&event).expect("numbers and texts") + "\n";
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
            // The last line of a process that was killed may not be whole.
            events.extend(
                text.lines()
                    .filter_map(|line| serde_json::from_str(line).ok()),
            );
        }
    }
    events.sort_by_key(|event: &Event| event.at);
    Ok(events)
}
