//! What the waiters and the thread of an inbox share, under one lock: a table of channels, and of their waiters.
//!
//! A channel is wanted when its first waiter comes, and stays subscribed while it has waiters, and for
//! [`CHANNEL_UNUSED`] to twice as long after the last one: most are wanted again soon. Then the thread forgets it, and
//! sends UNSUBSCRIBE. A waiter that comes after that wants it anew: its SUBSCRIBE follows the UNSUBSCRIBE on the same
//! connection.
//!
//! A channel of a slot that isn't at the server, or has left it, is gone. Its waiters subscribe where the slot is; one
//! that comes to it anew here, because the slot came back, makes it wanted again.
//!
//! [`CHANNEL_UNUSED`]: crate::engine::net::CHANNEL_UNUSED

use std::sync::Arc;

use super::pubsub::{Changes, Received};
use crate::base::Token;
use crate::base::sys::collections::HashMap;
use crate::engine::redis::{bell::Bell, keys::is_of_value};

#[derive(Debug, Default)]
pub(super) struct State {
    channels: HashMap<Arc<str>, Channel>,
    /// The channels to send SUBSCRIBE for.
    wanted: Vec<Arc<str>>,
    /// The start of the server's run id, if another may follow it, and once it has told it on this connection.
    pub(super) run_id: Option<Arc<str>>,
    /// Whether a waiter has found that nothing is heard on this connection.
    pub(super) is_distrusted: bool,
}

#[derive(Debug, Default)]
struct Channel {
    progress: Progress,
    /// By owner.
    waiters: HashMap<String, Waiter>,
    /// Whether it had no waiter at the last sweep, and none since.
    is_unused: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Progress {
    /// SUBSCRIBE is to be sent.
    Wanted,
    /// SUBSCRIBE was sent.
    Requested,
    /// And confirmed.
    Confirmed,
    /// The server doesn't have it: it refused, or ended it, or was never asked.
    #[default]
    Gone,
}

#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) hears: Hears,
    /// Rings when there is something to hear.
    pub(super) bell: Arc<Bell>,
    /// How many subscriptions it has: one for each shard on the slot of the channel.
    pub(super) subscriptions: usize,
}

/// How far a waiter is.
#[derive(Debug)]
pub(super) enum Hears {
    /// It waits for its channel to be confirmed, and hasn't asked the server for the lock since.
    Opening,
    /// Nothing yet.
    Nothing,
    /// What it hasn't seen yet.
    Of(Notification),
}

/// What a waiter is notified of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notification {
    /// The lock was granted to it, at some time.
    Granted(Token),
    /// A grant may have been missed: the server knows.
    AskAgain,
}

impl State {
    /// Whether no channel is wanted, or was a short while ago.
    pub(super) fn is_empty(&self) -> bool {
        self.channels.is_empty()
    }

    /// Whether a channel has waiters, or had some a short while ago.
    pub(super) fn has(&self, channel: &str) -> bool {
        self.channels.contains_key(channel)
    }

    /// Adds a waiter to a channel. Returns whether there is something to send for it.
    pub(super) fn add_waiter(&mut self, name: &Arc<str>, owner: String, waiter: Waiter) -> bool {
        let channel = self.channels.entry(name.clone()).or_default();
        let same = channel.waiters.entry(owner);
        // What it hasn't seen yet may be about another shard.
        same.and_modify(|one| one.subscriptions += 1)
            .or_insert(waiter);
        channel.is_unused = false;
        let is_gone = channel.progress == Progress::Gone;
        if is_gone {
            channel.progress = Progress::Wanted;
            self.wanted.push(name.clone());
        }
        is_gone
    }

    pub(super) fn remove_waiter(&mut self, name: &str, owner: &str) {
        let Some(waiter) = self.waiter(name, owner) else {
            return;
        };
        waiter.subscriptions -= 1;
        if waiter.subscriptions == 0
            && let Some(channel) = self.channels.get_mut(name)
        {
            channel.waiters.remove(owner);
        }
    }

    /// `None` for a waiter that has left.
    pub(super) fn waiter(&mut self, channel: &str, owner: &str) -> Option<&mut Waiter> {
        self.channels.get_mut(channel)?.waiters.get_mut(owner)
    }

    pub(super) fn progress(&self, name: &str) -> Progress {
        let channel = self.channels.get(name);
        channel.map_or(Progress::Gone, |one| one.progress)
    }

    /// What to send to the server, at once: for channels that are wanted, and with `sweep`, which is to come every
    /// [`CHANNEL_UNUSED`](crate::engine::net::CHANNEL_UNUSED), for those that nobody has wanted since the last.
    pub(super) fn changes(&mut self, sweep: bool) -> Changes {
        let unsubscribe = if sweep { self.sweep() } else { Vec::new() };
        let mut subscribe = std::mem::take(&mut self.wanted);
        let channels = &mut self.channels;
        subscribe.retain(|name| match channels.get_mut(name) {
            Some(channel) if channel.progress == Progress::Wanted => {
                channel.progress = Progress::Requested;
                true
            }
            _ => false,
        });
        Changes {
            unsubscribe,
            subscribe,
        }
    }

    /// Forgets the channels that were unused since the last sweep. Returns those that the server has confirmed.
    fn sweep(&mut self) -> Vec<Arc<str>> {
        let mut confirmed = Vec::new();
        self.channels.retain(|name, channel| {
            // Forgotten before its confirmation came, that would be taken for the confirmation of the next SUBSCRIBE.
            let is_requested = channel.progress == Progress::Requested;
            if !channel.is_unused || is_requested {
                channel.is_unused = channel.waiters.is_empty();
                return true;
            }
            if channel.progress == Progress::Confirmed {
                confirmed.push(name.clone());
            }
            false
        });
        if self.channels.len() < self.channels.capacity() / 4 {
            self.channels.shrink_to(self.channels.len() * 2);
        }
        confirmed
    }

    /// The connection is lost: until there is another, no waiter is notified of grants. The channels that have waiters
    /// are wanted anew. Returns whether any was subscribed.
    pub(super) fn disconnect(&mut self) -> bool {
        (self.run_id, self.is_distrusted) = (None, false);
        self.channels.retain(|_, one| !one.waiters.is_empty());
        self.wanted = self.channels.keys().cloned().collect();
        let mut any = false;
        for channel in self.channels.values_mut() {
            any |= channel.lose(Progress::Wanted);
        }
        any
    }

    /// Gives what the server sent to its waiters. Returns a waiter that the caller is to wake when it has unlocked the
    /// state, which that waiter needs at once.
    pub(super) fn deliver(&mut self, received: &Received) -> Option<Arc<Bell>> {
        match received {
            Received::Granted {
                channel,
                owner,
                token,
            } => {
                let waiter = self.waiter(channel, owner)?;
                waiter.notify(Notification::Granted(*token));
                return Some(waiter.bell.clone());
            }
            Received::Broken { owner, below } => self.take_back_grant(owner, *below),
            Received::Stored { channel } => self.ask_again(channel),
            Received::Subscribed { channel } => {
                if let Some(channel) = self.channel_that_is(Progress::Requested, channel) {
                    channel.progress = Progress::Confirmed;
                    // In the engine's queue these waiters have no channel yet: asking again enters it.
                    channel.waiters.values_mut().for_each(Waiter::ask_again);
                }
            }
            Received::Refused { channels } => {
                for channel in channels {
                    self.lose(channel, Progress::Requested);
                    // Who waits for a value doesn't ask meanwhile.
                    if is_of_value(channel) {
                        self.ask_again(channel);
                    }
                }
            }
            // While SSUBSCRIBE is on its way, this answers the SUNSUBSCRIBE before that: the server would end the new
            // one only after its confirmation.
            Received::Ended { channel } => self.lose(channel, Progress::Confirmed),
            Received::RunId(id) => self.run_id = Some(id.clone()),
            Received::Other => {}
        }
        None
    }

    fn ask_again(&mut self, channel: &str) {
        if let Some(channel) = self.channels.get_mut(channel) {
            channel.waiters.values_mut().for_each(Waiter::ask_again);
        }
    }

    fn channel_that_is(&mut self, progress: Progress, name: &str) -> Option<&mut Channel> {
        let channel = self.channels.get_mut(name);
        channel.filter(|one| one.progress == progress)
    }

    fn lose(&mut self, channel: &str, from: Progress) {
        if let Some(channel) = self.channel_that_is(from, channel) {
            channel.lose(Progress::Gone);
        }
    }

    /// A waiter that hasn't seen its grant yet has nothing any more: it asks.
    fn take_back_grant(&mut self, owner: &str, below: u64) {
        let mut all = self.channels.values_mut();
        if let Some(waiter) = all.find_map(|channel| channel.waiters.get_mut(owner))
            && let Hears::Of(Notification::Granted(token)) = waiter.hears
            && token.number < below
        {
            waiter.hears = Hears::Of(Notification::AskAgain);
        }
    }
}

impl Channel {
    /// It isn't subscribed any more: its waiters may have missed grants. If it wasn't before, those that don't open it
    /// ask as often as a waiter does that hears of nothing. Returns whether it was.
    fn lose(&mut self, to: Progress) -> bool {
        let was_subscribed = std::mem::replace(&mut self.progress, to) == Progress::Confirmed;
        let waiters = self.waiters.values_mut();
        waiters
            .filter(|one| was_subscribed || matches!(one.hears, Hears::Opening))
            .for_each(Waiter::ask_again);
        was_subscribed
    }
}

impl Waiter {
    pub(super) fn take_notification(&mut self) -> Option<Notification> {
        let Hears::Of(notification) = self.hears else {
            return None;
        };
        self.hears = Hears::Nothing;
        Some(notification)
    }

    fn ask_again(&mut self) {
        self.notify(Notification::AskAgain);
        self.bell.ring();
    }

    /// A notification that is there already stays: the waiter asks because of either, and so learns of a grant.
    fn notify(&mut self, notification: Notification) {
        if !matches!(self.hears, Hears::Of(_)) {
            self.hears = Hears::Of(notification);
        }
    }
}
