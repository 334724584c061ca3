//! One waiter's part in an inbox.

use std::sync::Arc;
use std::time::Duration;

use super::listener::Listener;
use super::state::{Hears, Notification, Progress, Waiter};
use crate::base::cancel::Registration;
use crate::base::clock::Deadline;
use crate::base::owner::Owner;
use crate::base::sys::sync::Condvar;
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
    /// Wakes the waiter.
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
        hears: Hears,
    ) -> Self {
        let condvar = Arc::new(Condvar::new());
        let waiter = Waiter {
            hears,
            condvar: condvar.clone(),
        };
        let owner = owner.as_str().to_owned();
        let mut state = listener.state.lock();
        if state.add_waiter(&channel, owner.clone(), waiter) {
            listener.waker.wake();
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
        let is_confirmed = state.progress(&self.channel) == Progress::Confirmed;
        is_confirmed.then(|| OpenInbox {
            channel: self.channel.clone(),
            run_id: is_replaceable.then(run_id),
        })
    }

    /// Whether the server has confirmed the channel.
    pub(in crate::engine::redis) fn is_confirmed(&self) -> bool {
        self.progress() == Progress::Confirmed
    }

    /// Whether it is at that server.
    pub(in crate::engine::redis) fn is_at(&self, server: &Arc<Server>) -> bool {
        Arc::ptr_eq(&self.listener.server, server)
    }

    /// Whether nothing is heard by it any more: another server has taken the place of its own, or the slot has left that.
    pub(in crate::engine::redis) fn is_over(&self) -> bool {
        self.listener.closed.is_set() || self.progress() == Progress::Gone
    }

    fn progress(&self) -> Progress {
        self.listener.state.lock().progress(&self.channel)
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
            let waiter = state.waiter(&self.channel, &self.owner);
            let notification = waiter.and_then(Waiter::take_notification);
            let is_over = until.is_some_and(|until| until <= time::now());
            if notification.is_some() || is_over || deadline.is_cancelled() {
                return notification;
            }
            state = self.condvar.wait_until(state, until);
        }
    }

    /// Makes the inbox connect anew, because the server passed this waiter over as one that isn't listening: it has
    /// become a replica, or another one is at its address.
    pub(in crate::engine::redis) fn distrust(&self) {
        let mut state = self.listener.state.lock();
        if state.progress(&self.channel) == Progress::Confirmed {
            state.is_distrusted = true;
            self.listener.waker.wake();
        }
    }

    /// Waits a moment for the confirmation of the channel.
    pub(super) fn await_confirmation(&self, deadline: &Deadline) {
        if !self.is_confirmed() {
            self.wait(FIRST_SUBSCRIPTION.min(deadline.remaining()), deadline);
        }
        let mut state = self.listener.state.lock();
        if let Some(waiter) = state.waiter(&self.channel, &self.owner) {
            // Whatever the notification was, the waiter asks now.
            waiter.hears = Hears::Nothing;
        }
    }

    /// While it is registered, a cancel wakes this waiter.
    fn wake_when_cancelled(&self, deadline: &Deadline) -> Option<Registration> {
        let (listener, condvar) = (self.listener.clone(), self.condvar.clone());
        let wake = move || {
            // Under the lock, so that it finds a waiter that is about to sleep.
            let _state = listener.state.lock();
            condvar.notify_one();
        };
        Some(deadline.cancel()?.on_set(Arc::new(wake)))
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut state = self.listener.state.lock();
        state.remove_waiter(&self.channel, &self.owner);
    }
}
