//! The inbox: a connection on which a locker is notified of grants, a thread that reads it, and the waiters that it
//! wakes.
//!
//! It begins when a locker finds its first lock taken, and ends with the locker. Where names are on several servers,
//! there is a connection and a thread for each server that has a name for which somebody waits; what follows is about
//! one of them, a [`Listener`]. When another server takes the place of its own, it is closed: its waiters are notified
//! to ask again, and subscribe anew. There is a channel for each namespace, and in a cluster for each slot of it, that
//! has waiters, or had some a short while ago; without any there is no connection. A waiter subscribes its owner before
//! the server learns of the owner, and a message "owner token" is for the waiter with that owner.
//!
//! Beside each such channel there is one on which all inboxes of the namespace hear whose leases were broken. What
//! comes there is told to the engine's [`Revocations`], so that the guard of that lease knows at once.
//!
//! Whoever waits until a value changes subscribes to the channel of that value, and is notified to ask again when it
//! changes.
//!
//! Messages can be lost, late or sent twice: a waiter compares what it is notified of with the last answer of the
//! server, and asks again in time. When a channel is confirmed, and when the connection is lost, the waiters of the
//! channel are notified to ask again.
//!
//! Where another server may follow one, the connection begins with INFO: the server learns from each waiter where that
//! hears, and doesn't take a waiter for gone that hears elsewhere. See `lua/README.md`.
//!
//! # The thread
//!
//! Only the thread uses the connection. It sends (UN)SUBSCRIBE, and PING to a silent server; delivers what arrives; and
//! connects anew. Whatever others want of it they write into the [`State`](state::State), and then wake it by its
//! [`Waker`](crate::base::sys::net::Waker): a channel that is wanted, a connection that is distrusted, the end. A
//! waiter sleeps until its own [`Bell`] rings. That a grant wakes two threads, one after the other, isn't seen beside
//! the time that the server and the network take: with waiters that read the connection themselves, hand-offs were no
//! faster.
//!
//! - *The connection is lost*: under one lock all channels become unsubscribed, and their waiters are notified to ask
//!   again.
//! - *A waiter distrusts the connection*: the thread drops it, and connects anew.
//! - *The server of the connection is replaced*: the thread ends. The waiters' subscriptions are over.
//! - *The locker is gone*: then nobody waits, and the thread ends.
//! - *A fork*: the child's engine has an inbox of its own, and touches nothing of this one.
//!
//! # Sharded channels
//!
//! In a cluster the server may end a channel unasked, or refuse it, because the slot is another node's. The connection
//! and its other channels live on.
//!
//! | what comes | for a channel that is | then |
//! |---|---|---|
//! | `ssubscribe` | requested | it is subscribed: its waiters are notified to ask again |
//! | MOVED, TRYAGAIN, CLUSTERDOWN in answer to SSUBSCRIBE | requested | it is gone: who opens the inbox is notified, and tries again after a pause at the server that answers then |
//! | another error | requested | the connection is lost |
//! | `sunsubscribe` | subscribed | it is gone: its waiters are notified to ask again, and subscribe anew where the answer comes from |
//! | `sunsubscribe` | requested, or forgotten | nothing: that answers an earlier SUNSUBSCRIBE |
//!
//! A channel that is unused for long is forgotten, and SUNSUBSCRIBE is sent for it. Its slot may have left the server
//! meanwhile: then the server has sent `sunsubscribe` unasked, and answers with an error, which mustn't be taken for
//! the answer to the command behind it. So PING is sent behind, and all errors before the answer to that are about
//! SUNSUBSCRIBE.

use std::sync::{Arc, Weak};
use std::{fmt, io, time::Duration};

use self::listener::{Listener, Receiver, level};
pub(super) use self::state::Notification;
use self::state::{Hears, Progress, Waiter};
use super::keys::{Keys, VALUE, channel, tag};
use super::{bell::Bell, server::Server, settings::Kind};
use crate::base::sys::sync::Mutex;
use crate::base::{Deadline, Key, Owner, Registration, sys::time};
use crate::engine::{Revocations, heartbeat::Listening, net::FIRST_SUBSCRIPTION};

mod listener;
mod pubsub;
mod state;

/// Where a locker is notified of grants. There is a thread and a connection only from the first subscription on.
pub(super) struct Inbox {
    listeners: Mutex<Listeners>,
    revocations: Receiver,
}

#[derive(Default)]
struct Listeners {
    /// One for each server that has had a name for which somebody waited.
    all: Vec<Arc<Listener>>,
    /// Whether the last one couldn't be started, which was logged.
    has_failed: bool,
}

impl Inbox {
    pub(super) fn new() -> Self {
        Inbox {
            listeners: Mutex::default(),
            revocations: Receiver::default(),
        }
    }

    /// Says who is to hear of broken leases while the inbox hears of grants. The first receiver stays.
    pub(super) fn tell_revocations(&self, to: Weak<dyn Revocations>) {
        let _ = self.revocations.set(to);
    }

    /// Subscribes a waiter to the channel of its namespace at the server that has its name.
    ///
    /// Without `open_by` only if that channel has waiters, or had some a short while ago. With it, the channel is
    /// wanted from now on; the call waits a moment for its confirmation, until that deadline at most.
    pub(super) fn subscribe(
        &self,
        server: &Arc<Server>,
        key: &Key,
        (owner, bell): (&Owner, &Arc<Bell>),
        open_by: Option<&Deadline>,
    ) -> Option<Subscription> {
        let listener = self.listener(server, open_by.is_some())?;
        let tag = tag(server.settings().kind, key);
        let channel = channel(key.namespace(), &listener.id, tag);
        let who = (owner, bell.clone());
        let Some(deadline) = open_by else {
            let is_here = listener.state.lock().has(&channel);
            return is_here
                .then(|| Subscription::new(listener, who, channel.into(), Hears::Nothing));
        };
        let subscription = Subscription::new(listener, who, channel.into(), Hears::Opening);
        subscription.await_confirmation(deadline);
        Some(subscription)
    }

    /// Subscribes to the changes of a value, and waits a moment for the confirmation, until that deadline at most.
    pub(super) fn watch(
        &self,
        server: &Arc<Server>,
        key: &Key,
        (owner, bell): (&Owner, &Arc<Bell>),
        until: &Deadline,
    ) -> Option<Subscription> {
        let listener = self.listener(server, true)?;
        let channel = Keys::of(key).all()[VALUE].into();
        let subscription =
            Subscription::new(listener, (owner, bell.clone()), channel, Hears::Opening);
        subscription.await_confirmation(until);
        Some(subscription)
    }

    /// That of a server. Those of servers that were replaced are forgotten.
    fn listener(&self, server: &Arc<Server>, start: bool) -> Option<Arc<Listener>> {
        let mut listeners = self.listeners.lock();
        let mut all = listeners.all.iter();
        if let Some(listener) = all.find(|one| Arc::ptr_eq(&one.server, server)) {
            return Some(listener.clone());
        }
        if !start || server.retired().is_set() {
            return None;
        }
        listeners.all.retain(|one| !one.closed.is_set());
        let started = Listener::start(server.clone(), self.revocations.clone());
        let was_logged = std::mem::replace(&mut listeners.has_failed, started.is_err());
        if let Ok(listener) = &started {
            listeners.all.push(listener.clone());
        }
        drop(listeners);
        let failed = |e: &io::Error| {
            log::log!(
                level(was_logged),
                "can't start the thread that receives notifications, so waiters poll: {e}"
            );
        };
        started.inspect_err(failed).ok()
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        // Nobody has locked it, but perhaps in the process that this one was forked off from.
        if let Some(listeners) = self.listeners.try_lock() {
            listeners.all.iter().for_each(|listener| listener.close());
        }
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").finish_non_exhaustive()
    }
}

/// One waiter's subscription, which ends when this is dropped.
pub(super) struct Subscription {
    listener: Arc<Listener>,
    owner: String,
    channel: Arc<str>,
    bell: Arc<Bell>,
}

/// A channel that is subscribed.
pub(super) struct OpenInbox {
    channel: Arc<str>,
    run_id: Option<Arc<str>>,
}

impl OpenInbox {
    pub(super) fn listening(&self) -> Listening<'_> {
        Listening {
            channel: &self.channel,
            server: self.run_id.as_deref(),
        }
    }
}

impl Subscription {
    /// Adds a waiter to a channel, which is wanted from now on.
    fn new(
        listener: Arc<Listener>,
        (owner, bell): (&Owner, Arc<Bell>),
        channel: Arc<str>,
        hears: Hears,
    ) -> Self {
        let waiter = Waiter {
            hears,
            bell: bell.clone(),
            subscriptions: 1,
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
            bell,
        }
    }

    /// Where grants are to be sent, while the server has confirmed the channel.
    pub(super) fn inbox(&self) -> Option<OpenInbox> {
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
    pub(super) fn is_confirmed(&self) -> bool {
        self.progress() == Progress::Confirmed
    }

    /// Whether it is at that server.
    pub(super) fn is_at(&self, server: &Arc<Server>) -> bool {
        Arc::ptr_eq(&self.listener.server, server)
    }

    /// Whether nothing is heard by it any more: another server has taken the place of its own, or the slot has left
    /// that.
    pub(super) fn is_over(&self) -> bool {
        self.listener.closed.is_set() || self.progress() == Progress::Gone
    }

    fn progress(&self) -> Progress {
        self.listener.state.lock().progress(&self.channel)
    }

    /// Blocks until there is a notification, at most for `timeout`, or until `deadline` is cancelled.
    pub(super) fn wait(&self, timeout: Duration, deadline: &Deadline) -> Option<Notification> {
        let _woken = ring_when_cancelled(&self.bell, deadline);
        // A timeout past the end of the clock is none.
        let until = time::now().checked_add(timeout);
        loop {
            let notification = self.heard();
            let is_over = until.is_some_and(|until| until <= time::now());
            if notification.is_some() || is_over || deadline.is_cancelled() {
                return notification;
            }
            self.bell.wait_until(until);
        }
    }

    /// Whether both have one channel, and so hear the same.
    pub(super) fn hears_with(&self, other: &Subscription) -> bool {
        self.channel == other.channel
    }

    /// What there is to hear now.
    pub(super) fn heard(&self) -> Option<Notification> {
        let mut state = self.listener.state.lock();
        let waiter = state.waiter(&self.channel, &self.owner);
        waiter.and_then(Waiter::take_notification)
    }

    /// Makes the inbox connect anew, because the server passed this waiter over as one that isn't listening: it has
    /// become a replica, or another one is at its address.
    pub(super) fn distrust(&self) {
        let mut state = self.listener.state.lock();
        if state.progress(&self.channel) == Progress::Confirmed {
            state.is_distrusted = true;
            self.listener.waker.wake();
        }
    }

    /// Waits a moment for the confirmation of the channel.
    fn await_confirmation(&self, deadline: &Deadline) {
        if !self.is_confirmed() {
            self.wait(FIRST_SUBSCRIPTION.min(deadline.remaining()), deadline);
        }
        let mut state = self.listener.state.lock();
        if let Some(waiter) = state.waiter(&self.channel, &self.owner)
            && waiter.subscriptions == 1
        {
            // Whatever the notification was, the waiter asks now.
            waiter.hears = Hears::Nothing;
        }
    }
}

/// While it is registered, a cancel rings.
pub(super) fn ring_when_cancelled(bell: &Arc<Bell>, deadline: &Deadline) -> Option<Registration> {
    let bell = bell.clone();
    Some(deadline.cancel()?.on_set(Arc::new(move || bell.ring())))
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut state = self.listener.state.lock();
        state.remove_waiter(&self.channel, &self.owner);
    }
}

#[cfg(test)]
mod tests;
