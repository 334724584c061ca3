//! Looks at the files of a directory of locks.
//!
//! What a file says is read at once, and shown only if it stands in the first page, which is never half written.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use super::Told;
use crate::history::{Event, History, now};
use crate::names::NAMES;

const PAGE: usize = 4096;
const HEAD: usize = 64;
/// What the value of a lock that is shared stands for.
const SHARED: &str = "crosslock:shared";

/// What a file says of its name.
#[derive(Debug, Default)]
struct State {
    /// Owners, each with whether it has the lock for itself.
    holders: Vec<(String, bool)>,
    token: u64,
    waiters: Vec<String>,
    broken: Vec<String>,
}

pub(super) fn watch(directory: &Path, history: &History, ended: &AtomicBool) {
    const PAUSE: Duration = Duration::from_millis(5);
    let mut told = Told::default();
    while !ended.load(Relaxed) {
        thread::sleep(PAUSE);
        for name in NAMES {
            if let Some(state) = read(&directory.join(format!("crosslock+{name}.lock"))) {
                told.tell(history, state.events(name, now()));
            }
        }
    }
}

fn read(path: &PathBuf) -> Option<State> {
    let mut page = [0; PAGE];
    let filled = File::open(path).ok()?.read_at(&mut page, 0).ok()?;
    State::parse(std::str::from_utf8(page.get(..filled)?).ok()?)
}

impl State {
    fn parse(page: &str) -> Option<Self> {
        let (head, rest) = page.split_at_checked(HEAD)?;
        let field = |name: &str| {
            let mut words = head.split_whitespace();
            let value = words.find_map(|word| word.strip_prefix(name))?;
            value.parse::<usize>().ok()
        };
        if field("at=")? != HEAD {
            return None;
        }
        let mut state = State::default();
        rest.get(..field("len=")?)?
            .lines()
            .for_each(|line| state.take_in(line));
        Some(state)
    }

    fn take_in(&mut self, line: &str) {
        // What stands behind the door is the owner.
        let door = line.split_once(" door=");
        let Some((_, owner)) = door.and_then(|(_, rest)| rest.split_once(' ')) else {
            return;
        };
        let owner = owner.to_owned();
        let mut words = line.split(' ');
        let (standing, mode) = (words.next().unwrap_or_default(), words.next());
        match standing {
            "has" => {
                let is_alone = mode == Some("exclusive");
                let token = words.find_map(|word| word.strip_prefix("token="));
                self.token = token.and_then(|token| token.parse().ok()).unwrap_or(0);
                self.holders.push((owner, is_alone));
            }
            // Those that read stand in no order: they are let in together.
            "granted" | "waits" | "waits-first" if mode == Some("shared") => {}
            "granted" | "waits" | "waits-first" => self.waiters.push(owner),
            "broken" => self.broken.push(owner),
            _ => {}
        }
    }

    /// What a history tells of it. A lease ends by itself only when it was passed on.
    fn events(&self, name: &str, at: u64) -> [Event; 4] {
        let event = |op, detail| Event::shown(at, op, name, detail);
        let mut held = event("key", String::new());
        if let Some((owner, is_alone)) = self.holders.first() {
            let detail = if *is_alone { owner } else { SHARED };
            (held.token, held.until) = (self.token, u64::MAX);
            held.detail = detail.to_owned();
        }
        let shares = self.holders.iter().filter(|(_, is_alone)| !is_alone);
        let shares: Vec<_> = shares.map(|(owner, _)| format!("1 {owner} 0")).collect();
        let ids = self.broken.iter().map(|owner| {
            let id = owner.split('/').next().unwrap_or_default();
            format!("0:{id}")
        });
        [
            held,
            event("line", self.waiters.join(" ")),
            event("sharers", shares.join(" ")),
            event("broken", ids.collect::<Vec<_>>().join(" ")),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `docs/file.md` has it.
    #[test]
    fn state_is_read_as_it_is_written() {
        let text = "counter 12\nhas exclusive token=9 since=1.000000001 door=0a o1/h/7/main\n\
                    waits exclusive since=2.000000001 door=0b o2/h/8/main\n\
                    waits shared since=2.000000001 door=0d o4/h/8/main\n\
                    broken door=0c o3/h/9/main\n";
        let head = format!("crosslock 2 00000000 at=64 len={} sum=00000000", text.len());
        let state = State::parse(&format!("{head:<63}\n{text}rest")).unwrap();
        let [key, line, sharers, broken] = state.events("long", 5);
        assert_eq!(
            (key.detail.as_str(), key.token, key.until),
            ("o1/h/7/main", 9, u64::MAX)
        );
        assert_eq!(line.detail, "o2/h/8/main");
        assert_eq!(sharers.detail, "");
        assert_eq!(broken.detail, "0:o3");
    }
}
