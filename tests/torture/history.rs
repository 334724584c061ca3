//! What happened: one line of JSON before and after each operation and each fault.
//!
//! Every process appends to a file of its own, each line by one write, so that what was written survives a kill. All
//! clocks are one: `CLOCK_BOOTTIME` of this machine.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use rustix::time::{ClockId, clock_gettime};

/// Every process, as the target of a fault.
pub(crate) const ALL: u32 = 99;

/// What an event tells of.
///
/// | op | tells | fields |
/// |---|---|---|
/// | `ask` | before a call | `id`, `name`, `detail` lock, timed or try, `until` its timeout |
/// | `answer` | after it | `id`, `outcome` held, none or an error, `token`, `until` when the lease ends |
/// | `look` | the guard is valid | `id`, `until` when the lease ends |
/// | `lost` | the guard isn't valid | `id`, `outcome` |
/// | `release` | before a release | `id`, `detail` unlock, drop or panic, `until` when the lease ends |
/// | `released` | after it | `id`, `outcome` |
/// | `register` | the register has answered | `id`, `name`, `token`, `detail` read or write, `outcome`, `until` its value |
/// | `fault`, `faulted` | before and after a fault | `id`, `process` its target, `detail` its kind, `outcome` whom it hit |
/// | `stall` | the machine did nothing for this program | `until` its end |
/// | `slow` | the server took so long to answer | `until` its end |
/// | `key` | a lock as the server has it | `name`, `detail` its owner, `token` its counter, `until` its expiry |
/// | `line` | who waits, as the server has it | `name`, `detail` their owners, first come first |
/// | `bare` | a key without a ttl | `name` |
/// | `run` | what was run | `detail` safe or unsafe, `until` the ttl in nanoseconds, `token` for how many seconds, `id` rounds |
/// | `left` | what stayed behind | `detail` |
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// Nanoseconds since boot.
    pub(crate) at: u64,
    pub(crate) op: String,
    /// The number of a worker.
    pub(crate) process: u32,
    pub(crate) pid: u32,
    pub(crate) thread: u32,
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) outcome: String,
    pub(crate) token: u64,
    pub(crate) until: u64,
    pub(crate) detail: String,
}

/// Nanoseconds since boot.
pub(crate) fn now() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let part = |number: i64| u64::try_from(number).expect("no time before boot");
    part(now.tv_sec) * 1_000_000_000 + part(now.tv_nsec)
}

impl Event {
    /// An event of this moment.
    pub(crate) fn now(op: &str) -> Self {
        Event {
            at: now(),
            op: op.to_owned(),
            ..Event::default()
        }
    }

    /// The event as one line of JSON; what is zero or empty is left out.
    pub(crate) fn to_json(&self) -> String {
        let mut line = format!("{{\"at\":{},\"op\":{}", self.at, quoted(&self.op));
        let numbers = [
            ("process", u64::from(self.process)),
            ("pid", self.pid.into()),
            ("thread", self.thread.into()),
            ("id", self.id),
            ("token", self.token),
            ("until", self.until),
        ];
        for (key, number) in numbers.into_iter().filter(|(_, number)| *number != 0) {
            let _ = write!(line, ",\"{key}\":{number}");
        }
        let texts = [
            ("name", &self.name),
            ("outcome", &self.outcome),
            ("detail", &self.detail),
        ];
        for (key, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            let _ = write!(line, ",\"{key}\":{}", quoted(text));
        }
        line + "}"
    }

    /// Reads such a line; `None` for one that isn't whole, as the last one of a process that was killed may be.
    pub(crate) fn from_json(line: &str) -> Option<Self> {
        let mut rest = line.trim().strip_prefix('{')?.strip_suffix('}')?;
        let mut event = Event::default();
        while !rest.is_empty() {
            let (key, behind) = text(rest)?;
            let behind = behind.strip_prefix(':')?;
            rest = if behind.starts_with('"') {
                let (value, behind) = text(behind)?;
                event.set_text(&key, value)?;
                behind
            } else {
                let end = behind.find(',').unwrap_or(behind.len());
                event.set_number(&key, behind[..end].parse().ok()?)?;
                &behind[end..]
            };
            rest = rest.strip_prefix(',').unwrap_or(rest);
        }
        Some(event)
    }

    fn set_text(&mut self, key: &str, value: String) -> Option<()> {
        *match key {
            "op" => &mut self.op,
            "name" => &mut self.name,
            "outcome" => &mut self.outcome,
            "detail" => &mut self.detail,
            _ => return None,
        } = value;
        Some(())
    }

    fn set_number(&mut self, key: &str, value: u64) -> Option<()> {
        match key {
            "at" => self.at = value,
            "id" => self.id = value,
            "token" => self.token = value,
            "until" => self.until = value,
            "process" => self.process = value.try_into().ok()?,
            "pid" => self.pid = value.try_into().ok()?,
            "thread" => self.thread = value.try_into().ok()?,
            _ => return None,
        }
        Some(())
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            char if char.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(char));
            }
            char => quoted.push(char),
        }
    }
    quoted + "\""
}

/// The text at the beginning, and what is behind it.
fn text(json: &str) -> Option<(String, &str)> {
    let json = json.strip_prefix('"')?;
    let mut text = String::new();
    let mut chars = json.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((text, &json[at + 1..])),
            '\\' => match chars.next()?.1 {
                'u' => {
                    let digits: String = chars.by_ref().take(4).map(|(_, digit)| digit).collect();
                    text.push(char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?);
                }
                other => text.push(other),
            },
            char => text.push(char),
        }
    }
    None
}

/// The file of one process.
#[derive(Debug)]
pub(crate) struct History(File);

impl History {
    /// Appends to `file` of the directory.
    pub(crate) fn open(dir: &Path, file: &str) -> io::Result<Self> {
        let path = dir.join(file);
        let file = File::options().create(true).append(true).open(path)?;
        Ok(History(file))
    }

    /// Writes an event, in one write.
    pub(crate) fn tell(&self, event: &Event) {
        let line = event.to_json() + "\n";
        (&self.0).write_all(line.as_bytes()).expect("write history");
    }
}

/// All events of all files of the directory, in the order of time.
pub(crate) fn read(dir: &Path) -> io::Result<Vec<Event>> {
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
