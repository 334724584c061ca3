//! The inbox: a connection on which a locker is notified of grants, a thread that reads it, and the waiters that it wakes.
//!
//! It begins when a locker finds its first lock taken, and ends with the locker. Where names are on several servers, there is
//! a connection and a thread for each server that has a name for which somebody waits; what follows is about one of them,
//! a [`Listener`]. When another server takes the place of its own, it is closed: its waiters are notified to ask again, and
//! subscribe anew. There is a channel for each namespace, and in a cluster for each slot of it,
//! that has waiters, or had some a short while ago; without any there is no connection. A waiter subscribes its owner
//! before the server learns of the owner, and a message "owner token" is for the waiter with that owner.
//!
//! Beside each such channel there is one on which all inboxes of the namespace hear whose leases were broken. What comes there
//! is told to the engine's [`Revocations`], so that the guard of that lease knows at once.
//!
//! Messages can be lost, late or sent twice: a waiter compares what it is notified of with the last answer of the
//! server, and asks again in time. When a channel is confirmed, and when the connection is lost, the waiters of the
//! channel are notified to ask again.
//!
//! Where another server may follow one, the connection begins with INFO: the server learns from each waiter where that hears,
//! and doesn't take a waiter for gone that hears elsewhere. See `lua/README.md`.
//!
//! # The thread
//!
//! Only the thread uses the connection. It sends (UN)SUBSCRIBE, and PING to a silent server; delivers what arrives; and
//! connects anew. Whatever others want of it they write into the [`State`](state::State), and then wake it by its
//! [`Waker`](listener::Waker): a channel that is wanted, a connection that is distrusted, the end. A waiter sleeps on a condition
//! variable of its own. That a grant wakes two threads, one after the other, isn't seen beside the time that the
//! server and the network take: with waiters that read the connection themselves, hand-offs were no faster.
//!
//! - *The connection is lost*: under one lock all channels become unsubscribed, and their waiters are notified to ask again.
//! - *A waiter distrusts the connection*: the thread drops it, and connects anew.
//! - *The server of the connection is replaced*: the thread ends. The waiters' subscriptions are over.
//! - *The locker is gone*: then nobody waits, and the thread ends.
//! - *A fork*: the child's engine has an inbox of its own, and touches nothing of this one.
//!
//! # Sharded channels
//!
//! In a cluster the server may end a channel unasked, or refuse it, because the slot is another node's. The connection and
//! its other channels live on.
//!
//! | what comes | for a channel that is | then |
//! |---|---|---|
//! | `ssubscribe` | requested | it is subscribed: its waiters are notified to ask again |
//! | MOVED, TRYAGAIN, CLUSTERDOWN in answer to SSUBSCRIBE | requested | it is gone: who opens the inbox is notified, and tries again after a pause at the server that answers then |
//! | another error | requested | the connection is lost |
//! | `sunsubscribe` | subscribed | it is gone: its waiters are notified to ask again, and subscribe anew where the answer comes from |
//! | `sunsubscribe` | requested, or forgotten | nothing: that answers an earlier SUNSUBSCRIBE |
//!
//! A channel that is unused for long is forgotten, and SUNSUBSCRIBE is sent for it. Its slot may have left the server meanwhile:
//! then the server has sent `sunsubscribe` unasked, and answers with an error, which mustn't be taken for the answer to the
//! command behind it. So PING is sent behind, and all errors before the answer to that are about SUNSUBSCRIBE.

use std::fmt;
use std::sync::{Arc, Weak};

use self::listener::{Listener, Receiver};
use self::state::Hears;
pub(super) use self::state::Notification;
pub(super) use self::subscription::{OpenInbox, Subscription};
use super::channel_names::{channel, tag};
use super::server::Server;
use crate::base::clock::Deadline;
use crate::base::name::Key;
use crate::base::owner::Owner;
use crate::base::sys::sync::Mutex;
use crate::engine::Revocations;

mod listener;
mod pubsub;
mod replies;
mod state;
mod subscription;

/// Where a locker is notified of grants. There is a thread and a connection only from the first subscription on.
pub(super) struct Inbox {
    /// One for each server that has had a name for which somebody waited.
    listeners: Mutex<Vec<Arc<Listener>>>,
    revocations: Receiver,
}

impl Inbox {
    pub(super) fn new() -> Self {
        Inbox {
            listeners: Mutex::default(),
            revocations: Receiver::default(),
        }
    }

    /// Has it tell of leases that were broken, while it hears of grants. The first receiver stays.
    pub(super) fn tell_revocations(&self, to: Weak<dyn Revocations>) {
        let _ = self.revocations.set(to);
    }

    /// Subscribes a waiter to the channel of its namespace at the server that has its name.
    ///
    /// Without `open_by` only if that channel has waiters, or had some a short while ago. With it, the channel is wanted
    /// from now on; the call waits a moment for its confirmation, until that deadline at most.
    pub(super) fn subscribe(
        &self,
        server: &Arc<Server>,
        key: &Key,
        owner: &Owner,
        open_by: Option<&Deadline>,
    ) -> Option<Subscription> {
        let listener = self.listener(server, open_by.is_some())?;
        let tag = tag(server.settings().kind, key);
        let channel = channel(key.namespace(), &listener.id, tag);
        let Some(deadline) = open_by else {
            let is_here = listener.state.lock().has(&channel);
            return is_here
                .then(|| Subscription::new(listener, owner, channel.into(), Hears::Nothing));
        };
        let subscription = Subscription::new(listener, owner, channel.into(), Hears::Opening);
        subscription.await_confirmation(deadline);
        Some(subscription)
    }

    /// That of a server. Those of servers that were replaced are forgotten.
    fn listener(&self, server: &Arc<Server>, start: bool) -> Option<Arc<Listener>> {
        let mut listeners = self.listeners.lock();
        let mut all = listeners.iter();
        if let Some(listener) = all.find(|one| Arc::ptr_eq(&one.server, server)) {
            return Some(listener.clone());
        }
        if !start || server.retired().is_set() {
            return None;
        }
        listeners.retain(|one| !one.closed.is_set());
        let listener = Listener::start(server.clone(), self.revocations.clone())?;
        listeners.push(listener.clone());
        Some(listener)
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        // Nobody has locked it, but perhaps in the process that this one was forked off from.
        if let Some(listeners) = self.listeners.try_lock() {
            listeners.iter().for_each(|listener| listener.close());
        }
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
