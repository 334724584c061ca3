//! Takes the lock, and meanwhile shows a line with the holder.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};
use std::{process, sync::Arc, thread};

use crosslock::crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use crosslock::{
    CancelToken, Error, Inspection, Leadership, LockGuard, LockState, Locker, LockerBuilder, Party,
    Result,
};
use parking_lot::Mutex;

use super::options::{Mode, Options};
use crate::output::{Words, visible, write_to_stderr};
use crate::{show, table::size_of};

/// Opens a locker. An outage is tolerated for as long as by a call that takes a lock.
pub(crate) fn open(
    builder: &LockerBuilder,
    wait: Option<Duration>,
    token: &CancelToken,
) -> Result<Locker> {
    const UNAVAILABLE_FOR: Duration = Duration::from_secs(10);
    const PAUSE: Duration = Duration::from_millis(100);
    let most = wait.unwrap_or(UNAVAILABLE_FOR).min(UNAVAILABLE_FOR);
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

/// What the command runs under.
#[derive(Debug)]
pub(crate) enum Held {
    Lock(LockGuard),
    Leadership(Leadership),
}

/// Takes what the options name. Returns `None` if it is taken until the wait is over.
pub(crate) fn take(locker: &Locker, options: &Options, words: Words) -> Result<Option<Held>> {
    let names = &options.names;
    let name = names.first().map_or("", String::as_str);
    // The longest time has no end.
    let most = options.wait.unwrap_or(Duration::MAX);
    let is_once = most.is_zero();
    let _line = (!is_once).then(|| WaitingLine::show(words, locker, names));
    let guard = match &options.mode {
        Mode::Exclusive if is_once => locker.try_lock_all(names),
        Mode::Exclusive => locker.try_lock_all_for(names, most),
        Mode::Shared if is_once => locker.try_read(name),
        Mode::Shared => locker.try_read_for(name, most),
        Mode::Permits { count, of } => {
            let permits = locker.semaphore(name, *of)?;
            match is_once {
                true => permits.try_acquire_many(*count),
                false => permits.try_acquire_many_for(*count, most),
            }
        }
        Mode::Leading(publish) => {
            let election = locker.election(name)?;
            let leadership = match is_once {
                true => election.try_campaign(),
                false => election.try_campaign_for(most),
            }?;
            if let (Some(leadership), Some(text)) = (&leadership, publish) {
                leadership.publish(text)?;
            }
            return Ok(leadership.map(Held::Leadership));
        }
    };
    Ok(guard?.map(Held::Lock))
}

/// A shorter wait shows no line.
const FIRST: Duration = Duration::from_secs(1);
/// The time between two updates of the line.
const PAUSE: Duration = Duration::from_secs(2);

/// Shows a line with the holder until it is dropped.
#[derive(Debug)]
struct WaitingLine {
    line: Arc<Mutex<Line>>,
    /// Its drop ends the thread.
    _end: Sender<()>,
}

#[derive(Debug, Default)]
struct Line {
    is_drawn: bool,
    /// The thread may still be asking the server. It must not draw afterwards.
    is_over: bool,
}

impl WaitingLine {
    /// Shows the line after a second. Returns `None` if nobody would see it.
    fn show(words: Words, locker: &Locker, names: &[String]) -> Option<Self> {
        if words.quiet || !(words.json || stderr().is_terminal()) {
            return None;
        }
        let (end, ended) = bounded(0);
        let line = Arc::new(Mutex::new(Line::default()));
        let shown = WaitingLine {
            line: line.clone(),
            _end: end,
        };
        let (locker, names) = (locker.clone(), names.to_vec());
        let work = move || {
            let mut pause = FIRST;
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                draw(words, &locker, &names, &line);
                if words.json {
                    // Programs need one event.
                    return;
                }
                pause = PAUSE;
            }
        };
        let thread = thread::Builder::new().name("crosslock-line".to_owned());
        // If the thread can't be started, there is no line.
        thread.spawn(work).ok().map(|_| shown)
    }
}

/// The first of the locks that is taken, if the engine answers.
pub(crate) fn first_taken(locker: &Locker, names: &[String]) -> Option<Inspection> {
    let mut seen = names.iter().filter_map(|name| locker.inspect(name).ok());
    seen.find(|seen| seen.state != LockState::Free)
}

fn draw(words: Words, locker: &Locker, names: &[String], line: &Mutex<Line>) {
    let Some(seen) = first_taken(locker, names) else {
        return;
    };
    let mut line = line.lock();
    if line.is_over {
        return;
    }
    if words.json {
        let facts = serde_json::to_value(&seen).unwrap_or_default();
        words.note("waiting", &[("lock", facts)]);
    } else {
        draw_over(&describe(&seen));
        line.is_drawn = true;
    }
}

impl Drop for WaitingLine {
    fn drop(&mut self) {
        let mut line = self.line.lock();
        line.is_over = true;
        if line.is_drawn {
            draw_over("");
        }
    }
}

/// `waiting for deploy: held by web-2/4711 "deploy 4711" for 12 s, 2 before you`.
fn describe(seen: &Inspection) -> String {
    let mut line = format!("waiting for {}: {}", seen.name, show::held(seen));
    let waiters = &mut seen.waiters.iter().map(|waiter| &waiter.party);
    let before = waiters.position(|party| party.as_ref().is_some_and(is_own));
    if let Some(before @ 1..) = before {
        line += &format!(", {before} before you");
    }
    line
}

/// Compares the host too, because two hosts may use the same process number.
fn is_own(party: &Party) -> bool {
    let system = rustix::system::uname();
    party.pid == process::id() && *party.host == *system.nodename().to_string_lossy()
}

/// Replaces the line in one write. It is cut at the terminal's edge: a wrapped line couldn't be cleared.
fn draw_over(line: &str) {
    let width = size_of(stderr()).0 - 1;
    let line: String = visible(line).chars().take(width).collect();
    write_to_stderr(&format!("\r\x1b[K{line}"));
}
