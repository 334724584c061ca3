//! The thread of an inbox: makes the connection, makes it again when it is lost, and reads it while nobody waits.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::Inbox;
use super::pubsub::Link;
use super::reading::Reader;
use super::state::Place;
use crate::base::backoff::{Backoff, Waits};
use crate::base::clock::Deadline;
use crate::engine::redis::failure::Failure;

/// A connection that nobody has read for as long is read by the thread: so it isn't woken by waits that follow one
/// another closely, and an end of the connection is found all the same.
const LINGER: Duration = Duration::from_secs(1);

const PAUSES: Backoff = Backoff {
    base: Duration::from_millis(10),
    cap: Duration::from_millis(250),
    jitter: 0.5,
};

/// A connection that lasted for as long was one: the next is made at once when it ends.
const SETTLED: Duration = PAUSES.cap;

/// Why there is no connection.
struct Deaf {
    broken: Failure,
    /// Whether anything was heard before.
    was_heard: bool,
}

/// How the thread goes on when a connection has failed.
struct Outage {
    pauses: Waits,
    was_told: bool,
}

impl Outage {
    fn none() -> Self {
        Outage {
            pauses: PAUSES.waits(),
            was_told: false,
        }
    }
}

impl Inbox {
    /// Says whether it could be started.
    pub(super) fn start_thread(self: &Arc<Self>) -> std::io::Result<()> {
        // TLS and a logger are all that needs stack here.
        const STACK: usize = 512 * 1024;
        let theirs = self.clone();
        let thread = thread::Builder::new()
            .name("crosslock-inbox".into())
            .stack_size(STACK);
        thread.spawn(move || theirs.run()).map(drop)
    }

    fn run(&self) {
        let mut outage = Outage::none();
        while !self.closed.is_set() {
            // A logger that panics must not end the thread that waiters rely on.
            let served = catch_unwind(AssertUnwindSafe(|| self.serve_and_tell(&mut outage)));
            let mut state = self.state.lock();
            if !self.closed.is_set() && !matches!(served, Ok(true)) {
                let pause = outage.pauses.next().unwrap_or(PAUSES.cap);
                self.changed.wait_for(&mut state, pause);
            }
        }
    }

    /// Says whether the connection ended because nobody needed it.
    fn serve_and_tell(&self, outage: &mut Outage) -> bool {
        self.await_first_channel();
        let began = Instant::now();
        let Err(Deaf { broken, was_heard }) = self.serve() else {
            *outage = Outage::none();
            return true;
        };
        if was_heard && began.elapsed() > SETTLED {
            *outage = Outage::none();
        }
        if !self.closed.is_set() {
            let level = if outage.was_told {
                log::Level::Debug
            } else {
                log::Level::Warn
            };
            outage.was_told = true;
            let (place, cause) = (self.server.place(), broken.cause());
            log::log!(
                level,
                "no grants heard from {place}, so waiting is by asking: {cause}"
            );
        }
        false
    }

    fn await_first_channel(&self) {
        let mut state = self.state.lock();
        while state.channels.is_empty() && !self.closed.is_set() {
            self.changed.wait(&mut state);
        }
    }

    /// Makes a connection, and sees to it that it is read, until nobody needs it any more.
    fn serve(&self) -> Result<(), Deaf> {
        let connected = self.server.connect(&Deadline::NEVER.or(&self.closed));
        let mut state = self.state.lock();
        let connection = connected.map_err(|broken| Deaf {
            broken,
            was_heard: state.deafen(),
        })?;
        state.closer = Some(connection.closer());
        state.place = Place::WithThread;
        drop(state);
        let mut free = Some(Box::new(Link::new(connection, self.server.io_timeout())));
        while let Some(link) = free {
            drop(self.read(link, Reader::Thread));
            free = self.await_turn()?;
        }
        Ok(())
    }

    /// Waits until the connection is left to the thread, or nobody has read it for a while, and takes it; `None` when
    /// nobody needs it, and it is closed.
    fn await_turn(&self) -> Result<Option<Box<Link>>, Deaf> {
        let mut state = self.state.lock();
        loop {
            if self.closed.is_set() || state.channels.is_empty() {
                (state.place, state.closer) = (Place::None, None);
                return Ok(None);
            }
            match std::mem::replace(&mut state.place, Place::WithThread) {
                Place::Left { link } => return Ok(Some(link)),
                Place::Free { link, since } if since.elapsed() >= LINGER => return Ok(Some(link)),
                Place::Free { link, since } => {
                    state.place = Place::Free { link, since };
                    self.changed.wait_until(&mut state, since + LINGER);
                }
                Place::Lost { broken, was_heard } => {
                    state.place = Place::None;
                    return Err(Deaf { broken, was_heard });
                }
                read_by_a_waiter => {
                    state.place = read_by_a_waiter;
                    state.thread_sleeps = true;
                    self.changed.wait(&mut state);
                    state.thread_sleeps = false;
                }
            }
        }
    }
}
