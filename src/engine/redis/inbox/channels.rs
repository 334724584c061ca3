//! The channels of an inbox, and their waiters: which channels are wanted, and which the server has confirmed.
//!
//! A channel is wanted when its first waiter comes. It is subscribed when the server has confirmed that, and stays so
//! while it has waiters, and for [`CHANNEL_UNUSED`] after the last one: most are wanted again soon. Then the reader of the
//! connection forgets it, and sends UNSUBSCRIBE. A waiter that comes after that wants it anew: its SUBSCRIBE follows the
//! UNSUBSCRIBE on the same connection.
//!
//! A channel of a slot that isn't at the server, or has left it, is gone. Its waiters subscribe where the slot is; one that
//! comes to it anew here, because the slot came back, makes it wanted again.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use crate::engine::net::limits::CHANNEL_UNUSED;

/// The channels of an inbox, and their waiters, by owner.
#[derive(Debug)]
pub(super) struct Channels<W> {
    all: HashMap<Arc<str>, Channel<W>>,
    /// The channels to send SUBSCRIBE for.
    wanted: Vec<Arc<str>>,
    /// The channels that had no waiter at some time, each once, and when to look whether they still have none.
    unused: VecDeque<(Instant, Arc<str>)>,
}

#[derive(Debug)]
struct Channel<W> {
    progress: Progress,
    waiters: HashMap<String, W>,
    unused_since: Option<Instant>,
    /// Whether it is in `unused`.
    is_listed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Progress {
    Wanted,
    /// SUBSCRIBE was sent.
    Requested,
    /// And confirmed.
    Confirmed,
    /// The server doesn't have it: it refused, or ended it.
    Gone,
}

/// What to send to the server, in this order.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Changes {
    pub(super) unsubscribe: Vec<Arc<str>>,
    pub(super) subscribe: Vec<Arc<str>>,
}

impl<W> Default for Channels<W> {
    fn default() -> Self {
        Channels {
            all: HashMap::new(),
            wanted: Vec::new(),
            unused: VecDeque::new(),
        }
    }
}

impl<W> Channels<W> {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The shared name of a channel that there is already.
    pub(super) fn existing(&self, name: &str) -> Option<Arc<str>> {
        let (name, channel) = self.all.get_key_value(name)?;
        (channel.progress != Progress::Gone).then(|| name.clone())
    }

    /// Adds a waiter to a channel, which is wanted from now on.
    pub(super) fn add_waiter(&mut self, name: &Arc<str>, owner: String, waiter: W) {
        if !self.all.contains_key(name) {
            self.all.insert(name.clone(), Channel::wanted());
            self.wanted.push(name.clone());
        }
        if let Some(channel) = self.all.get_mut(name) {
            if channel.progress == Progress::Gone {
                channel.progress = Progress::Wanted;
                self.wanted.push(name.clone());
            }
            channel.waiters.insert(owner, waiter);
            channel.unused_since = None;
        }
    }

    pub(super) fn remove_waiter(&mut self, name: &Arc<str>, owner: &str, now: Instant) {
        let Some(channel) = self.all.get_mut(name) else {
            return;
        };
        channel.waiters.remove(owner);
        if channel.waiters.is_empty() {
            channel.unused_since = Some(now);
            if !channel.is_listed {
                channel.is_listed = true;
                self.unused.push_back((now + CHANNEL_UNUSED, name.clone()));
            }
        }
    }

    pub(super) fn waiter(&mut self, name: &str, owner: &str) -> Option<&mut W> {
        self.all.get_mut(name)?.waiters.get_mut(owner)
    }

    pub(super) fn waiter_on_any(&mut self, owner: &str) -> Option<&mut W> {
        let mut all = self.all.values_mut();
        all.find_map(|channel| channel.waiters.get_mut(owner))
    }

    /// The waiters of a channel.
    pub(super) fn waiters(&mut self, name: &str) -> impl Iterator<Item = &mut W> {
        let channel = self.all.get_mut(name);
        channel.into_iter().flat_map(|one| one.waiters.values_mut())
    }

    pub(super) fn is_subscribed(&self, name: &str) -> bool {
        let channel = self.all.get(name);
        channel.is_some_and(|one| one.progress == Progress::Confirmed)
    }

    /// Whether it isn't at the server, and isn't wanted there either.
    pub(super) fn is_gone(&self, name: &str) -> bool {
        let channel = self.all.get(name);
        channel.is_none_or(|one| one.progress == Progress::Gone)
    }

    /// When a channel may have been unused for long enough.
    pub(super) fn next_check(&self) -> Option<Instant> {
        self.unused.front().map(|(at, _)| *at)
    }

    /// What to send to the server now. Only the reader of the connection calls this, and sends it at once.
    pub(super) fn changes(&mut self, now: Instant) -> Changes {
        let unsubscribe = self.forget_unused(now);
        let mut subscribe = Vec::new();
        for name in self.wanted.drain(..) {
            if let Some(channel) = self.all.get_mut(&name)
                && channel.progress == Progress::Wanted
            {
                channel.progress = Progress::Requested;
                subscribe.push(name);
            }
        }
        Changes {
            unsubscribe,
            subscribe,
        }
    }

    /// Forgets the channels that were unused for long enough. Returns those that the server has confirmed.
    fn forget_unused(&mut self, now: Instant) -> Vec<Arc<str>> {
        let mut confirmed = Vec::new();
        while self.next_check().is_some_and(|at| at <= now) {
            let Some((_, name)) = self.unused.pop_front() else {
                break;
            };
            let Some(channel) = self.all.get_mut(&name) else {
                continue;
            };
            channel.is_listed = false;
            let Some(since) = channel.unused_since else {
                continue;
            };
            // Forgotten before its confirmation came, that would be taken for the confirmation of the next SUBSCRIBE.
            let is_requested = channel.progress == Progress::Requested;
            if is_requested || since + CHANNEL_UNUSED > now {
                channel.is_listed = true;
                let at = (since + CHANNEL_UNUSED).max(now + CHANNEL_UNUSED / 10);
                self.unused.push_back((at, name));
                continue;
            }
            let is_confirmed = channel.progress == Progress::Confirmed;
            self.all.remove(&name);
            if is_confirmed {
                confirmed.push(name);
            }
        }
        self.shrink();
        confirmed
    }

    fn shrink(&mut self) {
        if self.all.len() < self.all.capacity() / 4 {
            self.all.shrink_to(self.all.len() * 2);
            self.unused.shrink_to(self.unused.len() * 2);
        }
    }

    /// The server has confirmed a channel.
    pub(super) fn confirm(&mut self, name: &str) {
        if let Some(channel) = self.all.get_mut(name)
            && channel.progress == Progress::Requested
        {
            channel.progress = Progress::Confirmed;
        }
    }

    /// The server has refused a channel. Gives its waiters.
    pub(super) fn refuse(&mut self, name: &str) -> impl Iterator<Item = &mut W> {
        self.lose(name, Progress::Requested)
    }

    /// The server has ended a channel. Gives its waiters. While SSUBSCRIBE is on its way, it has answered the SUNSUBSCRIBE
    /// before that: it would end the new one only after its confirmation.
    pub(super) fn end(&mut self, name: &str) -> impl Iterator<Item = &mut W> {
        self.lose(name, Progress::Confirmed)
    }

    fn lose(&mut self, name: &str, from: Progress) -> impl Iterator<Item = &mut W> {
        let channel = self.all.get_mut(name);
        let mut lost = channel.filter(|one| one.progress == from);
        if let Some(channel) = &mut lost {
            channel.progress = Progress::Gone;
        }
        lost.into_iter().flat_map(|one| one.waiters.values_mut())
    }

    /// The connection is lost: the channels that have waiters are wanted anew. Calls `visit` with each waiter, and with
    /// whether its channel was subscribed.
    pub(super) fn unsubscribe_all(&mut self, mut visit: impl FnMut(&mut W, bool)) {
        self.unused.clear();
        self.wanted.clear();
        self.all.retain(|_, channel| !channel.waiters.is_empty());
        for (name, channel) in &mut self.all {
            let was_subscribed = channel.progress == Progress::Confirmed;
            channel.progress = Progress::Wanted;
            channel.is_listed = false;
            self.wanted.push(name.clone());
            for waiter in channel.waiters.values_mut() {
                visit(waiter, was_subscribed);
            }
        }
    }
}

impl<W> Channel<W> {
    fn wanted() -> Self {
        Channel {
            progress: Progress::Wanted,
            waiters: HashMap::new(),
            unused_since: None,
            is_listed: false,
        }
    }
}

#[cfg(test)]
mod tests;
