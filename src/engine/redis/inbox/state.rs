//! What the waiters and the thread of an inbox share, under one lock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Condvar;

use super::channels::Channels;
use super::pubsub::{Link, Said};
use super::waker::Bell;
use crate::base::token::Token;
use crate::engine::redis::News;
use crate::engine::redis::connection::Closer;
use crate::engine::redis::failure::Failure;

/// When no two have waited at once for as long, a waiter reads for itself, where the thread has read before.
const ALONE: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) channels: Channels<Waiter>,
    pub(super) place: Place,
    /// Closes the connection, wherever it is.
    pub(super) closer: Option<Closer>,
    /// Those that wait, but for one that reads.
    sleepers: Vec<Arc<Condvar>>,
    /// When there were several that waited, the last time.
    crowded_at: Option<Instant>,
    /// Whether the thread sleeps until it is woken, and doesn't read.
    pub(super) thread_sleeps: bool,
    /// When the thread, if it reads, looks at who sleeps without being rung.
    watch_at: Option<Instant>,
    pub(super) rung: bool,
}

/// Where the connection is.
#[derive(Debug, Default)]
pub(super) enum Place {
    /// There is none: nobody waits, or the thread makes one.
    #[default]
    None,
    /// Nobody reads it, since then, because nobody sleeps.
    Free { link: Box<Link>, since: Instant },
    /// A waiter has left it to the thread, because others sleep.
    Left { link: Box<Link> },
    /// A waiter reads it.
    WithWaiter,
    /// The thread reads it.
    WithThread,
    /// It was lost, and the thread hasn't seen that yet.
    Lost { broken: Failure, was_heard: bool },
}

#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) news: Option<News>,
    /// Whether it waits for its channel to be heard, and hasn't asked since.
    pub(super) is_opening: bool,
    pub(super) bell: Arc<Condvar>,
}

impl State {
    /// The connection, for a waiter that is to read it.
    pub(super) fn take(&mut self) -> Option<Box<Link>> {
        if !matches!(self.place, Place::Free { .. }) {
            return None;
        }
        match std::mem::replace(&mut self.place, Place::WithWaiter) {
            Place::Free { link, .. } => Some(link),
            _ => None,
        }
    }

    /// Puts the connection back that a waiter has read.
    pub(super) fn put_back(&mut self, link: Box<Link>) {
        let now = Instant::now();
        self.place = if self.sleepers.is_empty() {
            Place::Free { link, since: now }
        } else {
            self.crowded_at = Some(now);
            Place::Left { link }
        };
    }

    /// Puts the connection back that the thread has read, for the waiter that sleeps alone, if there is one.
    pub(super) fn make_free(&mut self, link: Box<Link>) {
        let since = Instant::now();
        self.place = Place::Free { link, since };
        self.sleepers.iter().for_each(|bell| _ = bell.notify_one());
    }

    pub(super) fn fall_asleep(&mut self, bell: &Arc<Condvar>, rings: &Bell) {
        self.sleepers.push(bell.clone());
        self.see_crowd();
        self.ring_if_alone(rings);
    }

    pub(super) fn wake_up(&mut self, bell: &Arc<Condvar>, rings: &Bell) {
        self.see_crowd();
        let own = |one: &Arc<Condvar>| Arc::ptr_eq(one, bell);
        if let Some(at) = self.sleepers.iter().position(own) {
            self.sleepers.swap_remove(at);
        }
        self.ring_if_alone(rings);
    }

    fn see_crowd(&mut self) {
        if self.sleepers.len() > 1 {
            self.crowded_at = Some(Instant::now());
        }
    }

    fn ring_if_alone(&mut self, rings: &Bell) {
        if self.sleepers.len() == 1
            && self.watch_at.is_none()
            && matches!(self.place, Place::WithThread)
        {
            rings.ring(&mut self.rung);
        }
    }

    /// When the thread, which reads, is to look at who sleeps: where waiters come and go it isn't rung for each.
    pub(super) fn watch(&mut self, now: Instant) -> Option<Instant> {
        if self.watch_at.is_none_or(|at| at <= now) {
            let crowded_at = self.crowded_at.filter(|_| self.sleepers.len() == 1);
            self.watch_at = crowded_at.map(|at| at + ALONE);
        }
        self.watch_at
    }

    /// Whether the connection is better read by the one that sleeps, or not needed any more.
    pub(super) fn thread_is_done(&self, now: Instant) -> bool {
        let is_alone = self.crowded_at.is_none_or(|at| at + ALONE <= now);
        self.channels.is_empty() || (self.sleepers.len() == 1 && is_alone)
    }

    /// The connection is lost: until there is another, nobody hears.
    pub(super) fn lose(&mut self, broken: Failure) {
        self.closer = None;
        let was_heard = self.deafen();
        self.place = Place::Lost { broken, was_heard };
    }

    /// Says whether anything was heard before.
    pub(super) fn deafen(&mut self) -> bool {
        let mut heard = false;
        self.channels.deafen(|waiter, was_heard| {
            heard |= was_heard;
            if was_heard || waiter.is_opening {
                waiter.tell(News::Ask);
            }
        });
        heard
    }

    /// Leaves what was said with those whom it is for. Gives one that is still to be woken: that is better done when
    /// the lock is free, which a waiter needs at once.
    pub(super) fn take_in(&mut self, said: &Said) -> Option<Arc<Condvar>> {
        match said {
            Said::Message { channel, text } => return self.grant(channel, text),
            Said::Heard { channel } => {
                self.channels.heard(channel);
                // Those that entered the line before this have no inbox there.
                for waiter in self.channels.waiters(channel) {
                    waiter.tell(News::Ask);
                }
            }
            Said::Other => {}
        }
        None
    }

    fn grant(&mut self, channel: &str, message: &str) -> Option<Arc<Condvar>> {
        let (owner, token) = message.rsplit_once(' ')?;
        let token = Token::from_number(token.parse().ok()?);
        let waiter = self.channels.waiter(channel, owner)?;
        // News that are there already make it ask.
        waiter.news.get_or_insert(News::Granted(token));
        Some(waiter.bell.clone())
    }
}

impl Waiter {
    /// News that are there already make it ask.
    fn tell(&mut self, news: News) {
        self.news.get_or_insert(news);
        self.bell.notify_one();
    }
}
