//! When a waiter asks again, in an engine whose queue drops waiters that don't: Redis.
//!
//! A question announces when the next one comes, at the latest. A waiter that hears of grants asks seldom, to keep its
//! place and to find what it missed; one that doesn't asks as often as its caller's options say.

use std::time::Duration;

use super::Pace;
use crate::base::{Stored, Token, backoff::shortened, limits::HEARTBEAT_LATENESS};

/// Where many wait in one queue, each sends its heartbeats so much more seldom for every other: together they send
/// about a thousand a second, however many they are.
const HEARTBEAT_SHARE: Duration = Duration::from_millis(1);

/// When one waiter asks again.
#[derive(Debug, Default)]
pub(super) struct Heartbeat {
    /// How long the queue was when the lock was last found taken.
    queue_length: u64,
    /// The pause that the last question announced.
    announced: Option<Pause>,
    /// The pause that its answer allows.
    allowed: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
struct Pause {
    duration: Duration,
    /// Whether it is long, because the waiter hears of grants.
    is_notified: bool,
}

impl Heartbeat {
    /// Chooses the pause that follows a question, and gives the time within which the next question comes.
    pub(super) fn announce(
        &mut self,
        ttl: Duration,
        pace: &mut Pace<'_>,
        is_notified: bool,
    ) -> Duration {
        let pause = self.choose(ttl, pace, is_notified);
        (self.announced, self.allowed) = (Some(pause), None);
        // A pause that begins late, or lasts longer than it should, is still within half of it.
        pause.duration + pause.duration / 2 + HEARTBEAT_LATENESS
    }

    /// A question that announced nothing, because its owner doesn't wait yet.
    pub(super) fn announce_nothing(&mut self) {
        (self.announced, self.allowed) = (None, None);
    }

    /// The lock was found taken.
    pub(super) fn answered(&mut self, taken: &Taken, pace: &mut Pace<'_>) {
        self.queue_length = taken.queue_length;
        let left = taken.remaining.unwrap_or(Duration::MAX);
        self.allowed = Some(if taken.is_handed_on {
            // The first waiter that asks then finds the lease over, for all of them.
            left.saturating_add(
                self.share_of_queue()
                    .mul_f64(crate::base::sys::random_fraction()),
            )
        } else {
            left.min(pace.next_pause())
        });
    }

    /// For how long to wait now.
    pub(super) fn pause(
        &mut self,
        ttl: Duration,
        pace: &mut Pace<'_>,
        is_notified: bool,
    ) -> Duration {
        // A question without an answer may not have arrived: what the one before announced is partly over.
        let is_still_right = |pause: &Pause| is_notified || !pause.is_notified;
        let announced = self.announced.take().filter(is_still_right);
        let pause = announced.unwrap_or_else(|| self.choose(ttl, pace, is_notified));
        let allowed = self.allowed.take().unwrap_or(Duration::MAX);
        pause.duration.min(allowed).min(pace.until.remaining())
    }

    fn choose(&self, ttl: Duration, pace: &mut Pace<'_>, is_notified: bool) -> Pause {
        const JITTER: f64 = 0.3;
        let longest = (ttl / 3).max(self.share_of_queue());
        let is_notified = is_notified && !pace.counted;
        let duration = if is_notified {
            shortened(longest, JITTER)
        } else {
            pace.next_pause().min(longest)
        };
        Pause {
            duration,
            is_notified,
        }
    }

    /// How often a waiter of this queue may ask, so that all of them together don't ask too much.
    fn share_of_queue(&self) -> Duration {
        let others = self.queue_length.saturating_sub(1);
        HEARTBEAT_SHARE.saturating_mul(others.try_into().unwrap_or(u32::MAX))
    }
}

/// What such an engine does when the lock is taken.
#[derive(Clone, Copy, Debug)]
pub(crate) enum IfTaken<'a> {
    /// The owner doesn't wait, and leaves the queue if it is in it.
    Leave,
    /// The owner enters the queue, or keeps its place.
    Wait {
        /// It asks again within this time, or is dropped from the queue.
        heartbeat_within: Duration,
        /// Where it hears that the lock was granted; `None` when it can't hear now.
        inbox: Option<Listening<'a>>,
    },
}

/// Where a waiter listens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listening<'a> {
    pub(crate) channel: &'a str,
    /// The server to which it is connected for that, empty if it isn't known; `None` where it is always the same.
    pub(crate) server: Option<&'a str>,
}

/// What such an engine answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Acquired {
    Granted {
        token: Token,
        /// What the lock protects, if that was asked for.
        value: Option<Stored>,
    },
    Taken(Taken),
    /// The owner's lease was broken.
    Broken,
}

/// How the lock stood when it was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// For so much longer if it isn't renewed; `None` when nobody can tell.
    pub(crate) remaining: Option<Duration>,
    /// Tokens that are granted after this answer are above this number.
    pub(crate) counter: u64,
    /// Whether the owner was in the queue before.
    pub(crate) was_queued: bool,
    /// Whether its holder will hand it on: it is no program that knows nothing of the queue.
    pub(crate) is_handed_on: bool,
    /// How long the queue is that the owner is in; 0 when it is in none.
    pub(crate) queue_length: u64,
    /// One of its holders: `<host>/<pid>/<thread>`. For the log.
    pub(crate) holder: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::Deadline;
    use crate::base::options::Options;

    const TTL: Duration = Duration::from_secs(30);

    fn taken() -> Taken {
        Taken {
            remaining: None,
            counter: 0,
            was_queued: true,
            is_handed_on: true,
            queue_length: 1,
            holder: None,
        }
    }

    #[test]
    fn question_after_one_without_an_answer_comes_within_what_was_announced_before() {
        for _ in 0..100 {
            let (mut heartbeat, mut backoff) =
                (Heartbeat::default(), Options::default().backoff.waits());
            let mut pace = Pace {
                backoff: &mut backoff,
                counted: false,
                until: &Deadline::NEVER,
            };
            let within = heartbeat.announce(TTL, &mut pace, true);
            heartbeat.answered(&taken(), &mut pace);
            let mut waited = heartbeat.pause(TTL, &mut pace, true);
            assert!(waited > TTL / 5, "it is notified");
            // These don't reach the server.
            for _ in 0..3 {
                heartbeat.announce(TTL, &mut pace, true);
                waited += heartbeat.pause(TTL, &mut pace, false);
            }
            assert!(waited < within, "{waited:?}, announced {within:?}");
        }
    }
}
