//! What the waiters and the thread of an inbox share, under one lock.

use std::sync::Arc;
use std::time::Instant;

use super::channels::Channels;
use super::pubsub::PubSub;
use super::replies::Received;
use super::waker::Waker;
use crate::base::sys::sync::Condvar;
use crate::base::sys::time;
use crate::base::token::Token;
use crate::engine::net::limits::SINGLE_WAITER;
use crate::engine::net::socket::Closer;
use crate::engine::redis::failure::Failure;

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) channels: Channels<Waiter>,
    pub(super) custody: Custody,
    /// The start of the server's run id, if another may follow it, and once it has told it on this connection.
    pub(super) run_id: Option<Arc<str>>,
    /// Closes the connection, whoever has it.
    pub(super) closer: Option<Closer>,
    /// The waiters that sleep: all but the one that reads.
    sleepers: Vec<Arc<Condvar>>,
    /// When more than one waiter slept, the last time.
    crowded_at: Option<Instant>,
    /// Whether the thread sleeps until it is notified, and doesn't read.
    pub(super) thread_sleeps: bool,
    /// When the thread, if it reads, looks at the sleepers without being woken for it.
    thread_looks_at: Option<Instant>,
    /// Whether the reader's [`Waker`] has a wake that the reader hasn't seen.
    pub(super) wake_pending: bool,
}

/// Who has the connection. The table in the module's comment says how it changes.
#[derive(Debug, Default)]
pub(super) enum Custody {
    /// There is no connection: none is needed, or the thread makes one.
    #[default]
    None,
    /// Nobody reads it, since then, because nobody sleeps.
    Free { pubsub: Box<PubSub>, since: Instant },
    /// A waiter has left it to the thread, because other waiters sleep.
    Left { pubsub: Box<PubSub> },
    /// A waiter reads it.
    WithWaiter,
    /// The thread reads it.
    WithThread,
    /// Its reader found it broken, and the thread hasn't seen that yet.
    Lost {
        failure: Failure,
        was_subscribed: bool,
    },
}

/// What a waiter is notified of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::redis) enum Notification {
    /// The lock was granted to it, at some time.
    Granted(Token),
    /// A grant may have been missed: the server knows.
    AskAgain,
}

#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) notification: Option<Notification>,
    /// Whether it waits for its channel to be confirmed, and hasn't asked the server for the lock since.
    pub(super) is_opening: bool,
    pub(super) condvar: Arc<Condvar>,
}

impl State {
    /// What a waiter is notified of, if anything; `None` for a waiter that has left.
    pub(super) fn notification(
        &mut self,
        channel: &str,
        owner: &str,
    ) -> Option<&mut Option<Notification>> {
        let waiter = self.channels.waiter(channel, owner)?;
        Some(&mut waiter.notification)
    }

    /// The connection, for a waiter that is to read it.
    pub(super) fn take(&mut self) -> Option<Box<PubSub>> {
        if !matches!(self.custody, Custody::Free { .. }) {
            return None;
        }
        match std::mem::replace(&mut self.custody, Custody::WithWaiter) {
            Custody::Free { pubsub, .. } => Some(pubsub),
            _ => None,
        }
    }

    /// Puts back the connection that a waiter has read.
    pub(super) fn put_back(&mut self, pubsub: Box<PubSub>) {
        let now = time::now();
        self.custody = if self.sleepers.is_empty() {
            Custody::Free { pubsub, since: now }
        } else {
            self.crowded_at = Some(now);
            Custody::Left { pubsub }
        };
    }

    /// Puts back the connection that the thread has read, for the one waiter that sleeps, if there is one.
    pub(super) fn make_free(&mut self, pubsub: Box<PubSub>) {
        let since = time::now();
        self.custody = Custody::Free { pubsub, since };
        self.sleepers.iter().for_each(|one| one.notify_one());
    }

    pub(super) fn fall_asleep(&mut self, waiter: &Arc<Condvar>, waker: &Waker) {
        self.sleepers.push(waiter.clone());
        self.see_crowd();
        self.wake_thread_if_alone(waker);
    }

    pub(super) fn wake_up(&mut self, waiter: &Arc<Condvar>, waker: &Waker) {
        self.see_crowd();
        let own = |one: &Arc<Condvar>| Arc::ptr_eq(one, waiter);
        if let Some(at) = self.sleepers.iter().position(own) {
            self.sleepers.swap_remove(at);
        }
        self.wake_thread_if_alone(waker);
    }

    fn see_crowd(&mut self) {
        if self.sleepers.len() > 1 {
            self.crowded_at = Some(time::now());
        }
    }

    fn wake_thread_if_alone(&mut self, waker: &Waker) {
        if self.sleepers.len() == 1
            && self.thread_looks_at.is_none()
            && matches!(self.custody, Custody::WithThread)
        {
            waker.wake(&mut self.wake_pending);
        }
    }

    /// When the thread, which reads, is to look at the sleepers: it isn't woken for each waiter that comes or goes.
    pub(super) fn thread_looks_at(&mut self, now: Instant) -> Option<Instant> {
        if self.thread_looks_at.is_none_or(|at| at <= now) {
            let crowded_at = self.crowded_at.filter(|_| self.sleepers.len() == 1);
            self.thread_looks_at = crowded_at.map(|at| at + SINGLE_WAITER);
        }
        self.thread_looks_at
    }

    /// Whether the one waiter that sleeps had better read the connection itself, or nobody needs it any more.
    pub(super) fn thread_is_done(&self, now: Instant) -> bool {
        let is_alone = self.crowded_at.is_none_or(|at| at + SINGLE_WAITER <= now);
        self.channels.is_empty() || (self.sleepers.len() == 1 && is_alone)
    }

    /// The connection is broken: until there is another, no waiter is notified of grants.
    pub(super) fn lose(&mut self, failure: Failure) {
        self.closer = None;
        let was_subscribed = self.unsubscribe_all();
        self.custody = Custody::Lost {
            failure,
            was_subscribed,
        };
    }

    /// Makes the waiters ask for the lock that might have missed a grant. Returns whether any channel was subscribed.
    pub(super) fn unsubscribe_all(&mut self) -> bool {
        let mut any = false;
        self.channels.unsubscribe_all(|waiter, was_subscribed| {
            any |= was_subscribed;
            if was_subscribed || waiter.is_opening {
                waiter.notify(Notification::AskAgain);
            }
        });
        any
    }

    /// Gives what the server sent to its waiters. Returns a waiter that the caller is to wake when it has unlocked the
    /// state, which that waiter needs at once.
    pub(super) fn deliver(&mut self, received: &Received) -> Option<Arc<Condvar>> {
        match received {
            Received::Message { channel, text } => {
                if let Some((owner, below)) = received.broken_lease() {
                    self.take_back_grant(owner, below);
                    return None;
                }
                return self.grant(channel, text);
            }
            Received::Subscribed { channel } => {
                self.channels.confirm(channel);
                // In the engine's queue these waiters have no channel yet: asking again enters it.
                for waiter in self.channels.waiters(channel) {
                    waiter.notify(Notification::AskAgain);
                }
            }
            Received::RunId(id) => self.run_id = Some(id.clone()),
            Received::Refused { channel } => {
                // The others ask as often as a waiter does that hears of nothing.
                let waiters = self.channels.refuse(channel);
                waiters
                    .filter(|one| one.is_opening)
                    .for_each(Waiter::ask_again);
            }
            Received::Ended { channel } => {
                self.channels.end(channel).for_each(Waiter::ask_again);
            }
            Received::Other => {}
        }
        None
    }

    /// A waiter that hasn't seen its grant yet has nothing any more: it asks.
    fn take_back_grant(&mut self, owner: &str, below: u64) {
        if let Some(waiter) = self.channels.waiter_on_any(owner)
            && let Some(Notification::Granted(token)) = waiter.notification
            && token.number < below
        {
            waiter.notification = Some(Notification::AskAgain);
        }
    }

    fn grant(&mut self, channel: &str, message: &str) -> Option<Arc<Condvar>> {
        let (owner, token) = message.rsplit_once(' ')?;
        let token = Token::from_number(token.parse().ok()?);
        let waiter = self.channels.waiter(channel, owner)?;
        // If there is a notification already, the waiter asks, and so learns of the grant.
        let granted = Notification::Granted(token);
        waiter.notification.get_or_insert(granted);
        Some(waiter.condvar.clone())
    }
}

impl Waiter {
    fn ask_again(&mut self) {
        self.notify(Notification::AskAgain);
    }

    /// A notification that is there already stays: the waiter asks because of either.
    fn notify(&mut self, notification: Notification) {
        self.notification.get_or_insert(notification);
        self.condvar.notify_one();
    }
}
