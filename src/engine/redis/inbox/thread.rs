//! The thread of an inbox: makes the connection, makes it again when it is lost, and reads it where no waiter does.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::listener::{Listener, Receiver};
use super::pubsub::PubSub;
use super::reading::Reader;
use super::state::Custody;
use crate::base::backoff::Waits;
use crate::base::clock::Deadline;
use crate::base::sys::{self, time};
use crate::engine::net::limits::{LASTING, RECONNECT, UNREAD};
use crate::engine::redis::failure::Failure;
use crate::engine::redis::server::Server;

/// Why there is no connection.
struct Disconnected {
    failure: Failure,
    /// Whether any channel was subscribed before.
    was_subscribed: bool,
}

/// How the thread goes on when a connection has failed.
struct Outage {
    pauses: Waits,
    was_logged: bool,
}

impl Outage {
    fn none() -> Self {
        Outage {
            pauses: RECONNECT.waits(),
            was_logged: false,
        }
    }
}

impl Listener {
    /// `None`, which is logged, if its thread can't be started.
    pub(super) fn start(server: Arc<Server>, revocations: Receiver) -> Option<Arc<Self>> {
        let started = Listener::new(server, revocations).and_then(|listener| {
            let listener = Arc::new(listener);
            listener.start_thread()?;
            listener.end_with_server();
            Ok(listener)
        });
        started
            .inspect_err(|e| {
                log::warn!("no thread to hear of grants, so waiting is by asking: {e}");
            })
            .ok()
    }

    fn start_thread(self: &Arc<Self>) -> std::io::Result<()> {
        // TLS and the user's logger are all that needs stack here.
        const STACK: usize = 512 * 1024;
        let listener = self.clone();
        sys::spawn_with_stack("crosslock-inbox", STACK, move || listener.run())
    }

    fn run(&self) {
        let mut outage = Outage::none();
        while !self.closed.is_set() {
            // A logger that panics must not end the thread that waiters rely on.
            let served = catch_unwind(AssertUnwindSafe(|| self.serve_and_log(&mut outage)));
            let state = self.state.lock();
            if !self.closed.is_set() && !matches!(served, Ok(true)) {
                let pause = outage.pauses.next().unwrap_or(RECONNECT.cap);
                drop(self.thread_wakes.wait_for(state, pause));
            }
        }
    }

    /// Returns whether the connection ended because nobody needed it.
    fn serve_and_log(&self, outage: &mut Outage) -> bool {
        self.await_first_channel();
        let began = time::now();
        let Err(disconnected) = self.serve() else {
            *outage = Outage::none();
            return true;
        };
        if disconnected.was_subscribed && time::since(began) > LASTING {
            *outage = Outage::none();
        }
        if !self.closed.is_set() {
            let level = if outage.was_logged {
                log::Level::Debug
            } else {
                log::Level::Warn
            };
            outage.was_logged = true;
            let (place, cause) = (&self.server.settings().shown, disconnected.failure.cause());
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
            state = self.thread_wakes.wait_until(state, None);
        }
    }

    /// Makes a connection, and sees to it that it is read, until nobody needs it any more.
    fn serve(&self) -> Result<(), Disconnected> {
        let connected = self.server.connect(&Deadline::NEVER.or(&self.closed));
        let mut state = self.state.lock();
        let connection = connected.map_err(|failure| Disconnected {
            failure,
            was_subscribed: state.unsubscribe_all(),
        })?;
        state.closer = Some(connection.closer());
        state.custody = Custody::WithThread;
        state.run_id = None;
        drop(state);
        let pubsub = PubSub::new(connection, self.server.settings());
        let mut taken = Some(Box::new(pubsub));
        while let Some(pubsub) = taken {
            drop(self.read(pubsub, Reader::Thread));
            taken = self.await_turn()?;
        }
        Ok(())
    }

    /// Waits until a waiter leaves the connection to the thread, or nobody has read it for a while, and takes it.
    /// Closes it and returns `None` when nobody needs it.
    fn await_turn(&self) -> Result<Option<Box<PubSub>>, Disconnected> {
        let mut state = self.state.lock();
        loop {
            if self.closed.is_set() || state.channels.is_empty() {
                (state.custody, state.closer) = (Custody::None, None);
                // A waiter that comes now would sleep, as one that is subscribed.
                state.unsubscribe_all();
                return Ok(None);
            }
            match std::mem::replace(&mut state.custody, Custody::WithThread) {
                Custody::Left { pubsub } => return Ok(Some(pubsub)),
                Custody::Free { pubsub, since } if time::since(since) >= UNREAD => {
                    return Ok(Some(pubsub));
                }
                Custody::Free { pubsub, since } => {
                    state.custody = Custody::Free { pubsub, since };
                    state = self.thread_wakes.wait_until(state, since + UNREAD);
                }
                Custody::Lost {
                    failure,
                    was_subscribed,
                } => {
                    state.custody = Custody::None;
                    return Err(Disconnected {
                        failure,
                        was_subscribed,
                    });
                }
                read_by_a_waiter => {
                    state.custody = read_by_a_waiter;
                    state.thread_sleeps = true;
                    state = self.thread_wakes.wait_until(state, None);
                    state.thread_sleeps = false;
                }
            }
        }
    }
}
