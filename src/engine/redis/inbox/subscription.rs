//! One waiter's part in an inbox.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::listener::Listener;
use super::reading::Reader;
use super::state::{Custody, Notification, State, Waiter};
use crate::base::cancel::{Cancel, Registration};
use crate::base::clock::Deadline;
use crate::base::owner::Owner;
use crate::base::sys::sync::{Condvar, MutexGuard};
use crate::base::sys::time;
use crate::engine::heartbeat::Listening;
use crate::engine::net::limits::FIRST_SUBSCRIPTION;
use crate::engine::redis::server::Server;
use crate::engine::redis::settings::Kind;

/// One waiter's subscription, which ends when this is dropped.
pub(in crate::engine::redis) struct Subscription {
    listener: Arc<Listener>,
    owner: String,
    channel: Arc<str>,
    /// Wakes the waiter, when it sleeps.
    condvar: Arc<Condvar>,
}

/// A channel that is subscribed.
pub(in crate::engine::redis) struct OpenInbox {
    channel: Arc<str>,
    run_id: Option<Arc<str>>,
}

impl OpenInbox {
    pub(in crate::engine::redis) fn listening(&self) -> Listening<'_> {
        Listening {
            channel: &self.channel,
            server: self.run_id.as_deref(),
        }
    }
}

impl Subscription {
    /// Adds a waiter to a channel, which is wanted from now on.
    pub(super) fn new(
        listener: Arc<Listener>,
        owner: &Owner,
        channel: Arc<str>,
        is_opening: bool,
    ) -> Self {
        let condvar = Arc::new(Condvar::new());
        let waiter = Waiter {
            notification: None,
            is_opening,
            condvar: condvar.clone(),
        };
        let owner = owner.as_str().to_owned();
        let mut state = listener.state.lock();
        let is_first = state.channels.is_empty();
        state.channels.add_waiter(&channel, owner.clone(), waiter);
        if is_first {
            listener.thread_wakes.notify_one();
        }
        drop(state);
        Subscription {
            listener,
            owner,
            channel,
            condvar,
        }
    }

    /// Where grants are to be sent, while the server has confirmed the channel.
    pub(in crate::engine::redis) fn inbox(&self) -> Option<OpenInbox> {
        let state = self.listener.state.lock();
        let is_replaceable = self.listener.server.settings().kind != Kind::Single;
        let run_id = || state.run_id.clone().unwrap_or_default();
        let is_subscribed = state.channels.is_subscribed(&self.channel);
        is_subscribed.then(|| OpenInbox {
            channel: self.channel.clone(),
            run_id: is_replaceable.then(run_id),
        })
    }

    /// Whether the server has confirmed the channel.
    pub(in crate::engine::redis) fn is_confirmed(&self) -> bool {
        let state = self.listener.state.lock();
        state.channels.is_subscribed(&self.channel)
    }

    /// Whether it is at that server.
    pub(in crate::engine::redis) fn is_at(&self, server: &Arc<Server>) -> bool {
        Arc::ptr_eq(&self.listener.server, server)
    }

    /// Whether nothing is heard by it any more: another server has taken the place of its own, or the slot has left that.
    pub(in crate::engine::redis) fn is_over(&self) -> bool {
        let is_gone = || self.listener.state.lock().channels.is_gone(&self.channel);
        self.listener.closed.is_set() || is_gone()
    }

    /// Blocks until there is a notification, at most for `timeout`, or until `deadline` is cancelled.
    pub(in crate::engine::redis) fn wait(
        &self,
        timeout: Duration,
        deadline: &Deadline,
    ) -> Option<Notification> {
        let _woken = self.wake_when_cancelled(deadline);
        // A timeout past the end of the clock is none.
        let until = time::now().checked_add(timeout);
        let mut state = self.listener.state.lock();
        loop {
            let notification = self.take_notification(&mut state);
            let is_over = until.is_some_and(|until| until <= time::now());
            if notification.is_some() || is_over || deadline.is_cancelled() {
                return notification;
            }
            state = match state.take() {
                Some(pubsub) => {
                    drop(state);
                    let reader = self.reader(until, deadline.cancel());
                    self.listener.read(pubsub, reader)
                }
                None => self.sleep(state, until),
            };
        }
    }

    /// Makes the inbox connect anew, because the server passed this waiter over as one that isn't listening: it has
    /// become a replica, or another one is at its address.
    pub(in crate::engine::redis) fn distrust(&self) {
        let state = self.listener.state.lock();
        let is_subscribed = state.channels.is_subscribed(&self.channel);
        if let (Some(closer), true) = (&state.closer, is_subscribed) {
            closer.close();
        }
    }

    /// Finds that the connection came to its end while nobody read it.
    pub(super) fn check_connection(&self) {
        let pubsub = self.listener.state.lock().take();
        if let Some(pubsub) = pubsub {
            let reader = self.reader(Some(time::now()), None);
            drop(self.listener.read(pubsub, reader));
        }
    }

    /// Waits a moment for the confirmation of the channel.
    pub(super) fn await_confirmation(&self, deadline: &Deadline) {
        if !self.is_confirmed() {
            self.wait(FIRST_SUBSCRIPTION.min(deadline.remaining()), deadline);
        }
        let mut state = self.listener.state.lock();
        if let Some(waiter) = state.channels.waiter(&self.channel, &self.owner) {
            // Whatever the notification was, the waiter asks now.
            (waiter.is_opening, waiter.notification) = (false, None);
        }
    }

    /// While it is registered, a cancel wakes this waiter, whether it sleeps or reads.
    fn wake_when_cancelled(&self, deadline: &Deadline) -> Option<Registration> {
        let (listener, condvar) = (self.listener.clone(), self.condvar.clone());
        let wake = move || {
            // Under the lock, so that it finds a waiter that is about to sleep. If another reads, that one looks in vain.
            let mut state = listener.state.lock();
            condvar.notify_one();
            listener.waker.wake(&mut state.wake_pending);
        };
        Some(deadline.cancel()?.on_set(Arc::new(wake)))
    }

    /// Itself, as the reader of the connection.
    fn reader<'a>(&'a self, until: Option<Instant>, cancel: Option<&'a Cancel>) -> Reader<'a> {
        Reader::Waiter {
            channel: &self.channel,
            owner: &self.owner,
            until,
            cancel,
        }
    }

    fn take_notification(&self, state: &mut State) -> Option<Notification> {
        state.notification(&self.channel, &self.owner)?.take()
    }

    /// Sleeps until it has a notification, or is to read, or until then.
    fn sleep<'a>(
        &self,
        mut state: MutexGuard<'a, State>,
        until: Option<Instant>,
    ) -> MutexGuard<'a, State> {
        let waker = &self.listener.waker;
        state.fall_asleep(&self.condvar, waker);
        let is_read = matches!(state.custody, Custody::WithWaiter | Custody::WithThread);
        if is_read && !state.channels.is_subscribed(&self.channel) {
            waker.wake(&mut state.wake_pending);
        }
        state = self.condvar.wait_until(state, until);
        state.wake_up(&self.condvar, waker);
        state
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut state = self.listener.state.lock();
        let now = time::now();
        state
            .channels
            .remove_waiter(&self.channel, &self.owner, now);
    }
}
