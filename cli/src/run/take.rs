//! Taking the lock, and the line that tells a person whom the command waits for.

use std::io::{IsTerminal, stderr};
use std::process;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crosslock::crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use crosslock::{
    CancelToken, Error, Inspection, LockGuard, LockState, Locker, LockerBuilder, Party, Result,
};
use parking_lot::Mutex;

use super::options::{Mode, Options, Patience};
use crate::output::{Words, visible, write_to_stderr};
use crate::table::Window;
use crate::time::text;

/// Opens a locker, and waits through an outage as a call that takes a lock does.
pub(crate) fn open(
    builder: &LockerBuilder,
    patience: Patience,
    token: &CancelToken,
) -> Result<Locker> {
    const UNAVAILABLE_FOR: Duration = Duration::from_secs(10);
    const PAUSE: Duration = Duration::from_millis(100);
    let most = match patience {
        Patience::None => Duration::ZERO,
        Patience::For(most) => most.min(UNAVAILABLE_FOR),
        Patience::Endless => UNAVAILABLE_FOR,
    };
    let start = Instant::now();
    loop {
        let opened = builder.clone().build();
        let left = most.saturating_sub(start.elapsed());
        match opened {
            Err(Error::Unavailable { .. }) if !left.is_zero() && !token.is_cancelled() => {
                thread::sleep(left.min(PAUSE));
            }
            opened => return opened,
        }
    }
}

/// Takes what the options ask for. `None` if somebody else has it, for as long as the caller wants to wait.
pub(crate) fn take(
    locker: &Locker,
    options: &Options,
    line: WaitingLine,
) -> Result<Option<LockGuard>> {
    let claim = Claim { locker, options };
    match options.patience {
        Patience::None => claim.attempt(Duration::ZERO),
        Patience::For(most) => {
            let _shown = line.show(locker, options);
            claim.attempt(most)
        }
        Patience::Endless => {
            let _shown = line.show(locker, options);
            claim.wait().map(Some)
        }
    }
}

struct Claim<'a> {
    locker: &'a Locker,
    options: &'a Options,
}

impl Claim<'_> {
    fn attempt(&self, most: Duration) -> Result<Option<LockGuard>> {
        let (locker, names) = (self.locker, &self.options.names);
        let is_once = most.is_zero();
        match self.options.mode {
            Mode::Exclusive if names.len() > 1 && is_once => locker.try_lock_all(names),
            Mode::Exclusive if names.len() > 1 => locker.try_lock_all_for(names, most),
            Mode::Exclusive if is_once => locker.try_lock(self.first()),
            Mode::Exclusive => locker.try_lock_for(self.first(), most),
            Mode::Shared if is_once => locker.try_read(self.first()),
            Mode::Shared => locker.try_read_for(self.first(), most),
            Mode::Permits { count, of } => {
                let permits = locker.semaphore(self.first(), of)?;
                if is_once {
                    permits.try_acquire_many(count)
                } else {
                    permits.try_acquire_many_for(count, most)
                }
            }
        }
    }

    fn wait(&self) -> Result<LockGuard> {
        let (locker, names) = (self.locker, &self.options.names);
        match self.options.mode {
            Mode::Exclusive if names.len() > 1 => locker.lock_all(names),
            Mode::Exclusive => locker.lock(self.first()),
            Mode::Shared => locker.read(self.first()),
            Mode::Permits { count, of } => locker.semaphore(self.first(), of)?.acquire_many(count),
        }
    }

    fn first(&self) -> &str {
        self.options.names.first().map_or("", String::as_str)
    }
}

/// A wait that is shorter is nobody's concern.
const FIRST: Duration = Duration::from_secs(1);
/// How often the line is renewed.
const PAUSE: Duration = Duration::from_secs(2);

/// Shows whom a command waits for, where somebody sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingLine {
    words: Words,
    is_shown: bool,
}

/// While this lives, the line is shown.
#[derive(Debug)]
pub(crate) struct Shown {
    line: Arc<Mutex<Line>>,
    /// Dropped with it, which ends the thread.
    _end: Sender<()>,
}

#[derive(Debug, Default)]
struct Line {
    is_drawn: bool,
    /// The thread may still ask the server, but draws nothing any more.
    is_over: bool,
}

impl WaitingLine {
    pub(crate) fn new(words: Words) -> Self {
        let is_shown = words == Words::Json || (words == Words::Text && stderr().is_terminal());
        WaitingLine { words, is_shown }
    }

    /// From a second on, until the result is dropped.
    pub(crate) fn show(self, locker: &Locker, options: &Options) -> Option<Shown> {
        if !self.is_shown {
            return None;
        }
        let (end, ended) = bounded(0);
        let line = Arc::new(Mutex::new(Line::default()));
        let shown = Shown {
            line: line.clone(),
            _end: end,
        };
        let (locker, names) = (locker.clone(), options.names.clone());
        let draw = move || {
            let mut pause = FIRST;
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                self.draw(&locker, &names, &line);
                if self.words.is_json() {
                    // For programs once is enough.
                    return;
                }
                pause = PAUSE;
            }
        };
        let thread = thread::Builder::new().name("crosslock-line".to_owned());
        // Without a thread there is no line.
        thread.spawn(draw).ok().map(|_| shown)
    }

    /// An engine that can't be asked, or doesn't answer, has no line.
    fn draw(self, locker: &Locker, names: &[String], line: &Mutex<Line>) {
        // Of several names, the first that is taken.
        let mut seen = names.iter().filter_map(|name| locker.inspect(name).ok());
        let Some(seen) = seen.find(|seen| seen.state != LockState::Free) else {
            return;
        };
        let mut line = line.lock();
        if line.is_over {
            return;
        }
        if self.words.is_json() {
            let facts = serde_json::to_value(&seen).unwrap_or_default();
            self.words.note("waiting", &[("lock", facts)]);
        } else {
            draw_over(&describe(&seen));
            line.is_drawn = true;
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        let mut line = self.line.lock();
        line.is_over = true;
        if line.is_drawn {
            draw_over("");
        }
    }
}

/// `waiting for deploy: web-2/4711 "deploy 4711" has had it for 12 s, 2 before you`.
fn describe(seen: &Inspection) -> String {
    let mut line = format!("waiting for {}: {}", seen.name, holders(seen));
    let waiters = &mut seen.waiters.iter().map(|waiter| &waiter.party);
    let before = waiters.position(|party| party.as_ref().is_some_and(is_own));
    if let Some(before @ 1..) = before {
        line += &format!(", {before} before you");
    }
    line
}

/// Two processes on two hosts may have the same number.
fn is_own(party: &Party) -> bool {
    let system = rustix::system::uname();
    party.pid == process::id() && *party.host == *system.nodename().to_string_lossy()
}

/// Who has a lock, for people.
pub(crate) fn holders(seen: &Inspection) -> String {
    let Some(holder) = seen.holders.first() else {
        return match seen.state {
            LockState::Kept { .. } => "nobody has it, it is kept".to_owned(),
            _ => "somebody has it".to_owned(),
        };
    };
    let party = holder.party.as_ref().map(Party::to_string);
    let mut line = party.unwrap_or_else(|| "a program that isn't crosslock".to_owned());
    let is_one = seen.holders.len() == 1;
    line += &match (holder.held_for, is_one) {
        (Some(held), true) => format!(" has had it for {}", text(held)),
        (Some(held), false) => format!(" and others have it, for {} by now", text(held)),
        (None, true) => " has it".to_owned(),
        (None, false) => " and others have it".to_owned(),
    };
    line
}

/// Replaces the line, in one write. A line that is wider than the terminal would stay.
fn draw_over(line: &str) {
    let width = Window::of(stderr()).columns - 1;
    let line: String = visible(line).chars().take(width).collect();
    write_to_stderr(&format!("\r\x1b[K{line}"));
}
