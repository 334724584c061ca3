//! How one owner waits for a lock on Redis.
//!
//! The owner asks by a script, which puts it into the lock's queue when the lock is taken. It then hears of its grant
//! in the inbox of its process, or finds it by the next heartbeat. It subscribes to the inbox before it enters a queue,
//! so that no grant is sent to nobody.
//!
//! | it has asked | and then | it is in the queue |
//! |---|---|---|
//! | nothing | asks; with a subscription, or if its caller counts attempts, so that it enters the queue | no |
//! | without entering | subscribes, and asks at once: the lock may have been released meanwhile | no |
//! | and entered | waits for a grant, or for its next heartbeat | yes, as far as the last answer said |
//! | without an answer | waits for a grant, or for its caller's next pause to end | perhaps, or it has the lock |
//!
//! When the name comes to another server, because its slot has moved or a replica was promoted, the owner goes on
//! asking, and so keeps its place there if that came along. It subscribes at the server that answers, and asks again as
//! soon as it hears.

use std::{sync::Arc, time::Duration};

use super::inbox::{Inbox, Notification, OpenInbox, Subscription};
use super::{bell::Bell, lock_scripts::LockScripts, server::Server};
use crate::base::{BootInstant, Clock, Deadline, Token, clock::valid_until};
use crate::engine::heartbeat::{Acquired, Heartbeat, IfTaken, Taken};
use crate::engine::{Answer, Failed, Grant, Pace, Request, Wait};

/// What all waits of an engine share.
#[derive(Clone, Debug)]
pub(super) struct WaitDeps {
    pub(super) scripts: Arc<LockScripts>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) clock_skew: Duration,
    /// Wakes the one thread that waits.
    pub(super) bell: Arc<Bell>,
}

impl WaitDeps {
    pub(super) fn new(
        scripts: Arc<LockScripts>,
        clock_skew: Duration,
        clock: Arc<dyn Clock>,
    ) -> Self {
        WaitDeps {
            scripts,
            inbox: Arc::new(Inbox::new()),
            clock,
            clock_skew,
            bell: Arc::default(),
        }
    }

    /// The same for another thread.
    pub(super) fn anew(&self) -> Self {
        WaitDeps {
            bell: Arc::default(),
            ..self.clone()
        }
    }
}

pub(super) struct RedisWait {
    deps: WaitDeps,
    /// The server that answered last.
    server: Option<Arc<Server>>,
    subscribed: Subscribed,
    heartbeat: Heartbeat,
    /// The last answer that the lock was taken.
    seen: Option<Seen>,
    /// Whether the last question has no answer.
    is_unanswered: bool,
    /// Whether the owner has leases of other names. It renews them when it asks, so it asks often, however long the
    /// queue is.
    has_others: bool,
}

/// Whether the owner hears of grants.
enum Subscribed {
    /// The owner hasn't tried to subscribe yet.
    NotYet,
    /// It tried in vain, and tries again after a pause. The name is on its way to another server, its server was
    /// replaced, or there is no thread or file descriptor for an inbox.
    Failed,
    Yes(Subscription),
}

/// When the lock was last found taken: what is granted later comes after this.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// When the question was sent.
    asked: BootInstant,
    /// The tokens granted later are above it.
    counter: u64,
    /// Whether the owner is in the queue since then.
    is_queued: bool,
}

impl Wait for RedisWait {
    fn ask(
        &mut self,
        request: Request<'_>,
        mut pace: Option<&mut Pace<'_>>,
        deadline: &Deadline,
    ) -> Result<Answer, Failed> {
        let inbox = self.inbox(request);
        let if_taken = self.if_taken(request, pace.as_deref_mut(), inbox.as_ref());
        // Read before sending: the server's lease starts no earlier than this.
        let asked = self.deps.clock.now();
        let answer = self.deps.scripts.acquire(request, if_taken, deadline);
        self.is_unanswered = answer.is_err();
        let (answer, server) = answer?;
        Ok(match answer {
            Acquired::Granted { token, value } => Answer::Granted(Grant {
                token,
                value,
                since: asked,
            }),
            Acquired::Broken => Answer::Broken,
            Acquired::Taken(mut taken) => {
                let is_queued = matches!(if_taken, IfTaken::Wait { .. });
                let seen = Seen {
                    asked,
                    counter: taken.counter,
                    is_queued,
                };
                self.taken(seen, &mut taken, server);
                if let Some(pace) = pace {
                    self.heartbeat.answered(&taken, pace);
                }
                let holder = taken.holder;
                Answer::Taken { is_queued, holder }
            }
        })
    }

    fn wait(&mut self, request: Request<'_>, pace: &mut Pace<'_>) -> Option<Grant> {
        let pause = self.pause(request, pace)?;
        let Subscribed::Yes(subscription) = &self.subscribed else {
            pace.until.sleep(pause);
            return None;
        };
        match subscription.wait(pause, pace.until)? {
            Notification::Granted(token) => self.granted(request, token),
            Notification::AskAgain => None,
        }
    }
}

impl RedisWait {
    pub(super) fn new(deps: WaitDeps, has_others: bool) -> Self {
        RedisWait {
            deps,
            server: None,
            subscribed: Subscribed::NotYet,
            heartbeat: Heartbeat::default(),
            seen: None,
            is_unanswered: false,
            has_others,
        }
    }

    /// Where the owner hears of grants, if it does.
    fn inbox(&mut self, request: Request<'_>) -> Option<OpenInbox> {
        self.subscribe(request, None);
        self.subscription().and_then(Subscription::inbox)
    }

    /// For how long to wait now; `None` where the owner has just subscribed, and asks at once. If it couldn't, it tries
    /// again after the pause.
    pub(super) fn pause(&mut self, request: Request<'_>, pace: &mut Pace<'_>) -> Option<Duration> {
        if self.seen.is_some() && self.has_to_subscribe(pace) {
            self.subscribe(request, Some(pace.until));
            return None;
        }
        let subscription = self.subscription();
        let is_notified = subscription.is_some_and(Subscription::is_confirmed);
        let is_notified = is_notified && !self.is_unanswered;
        if matches!(self.subscribed, Subscribed::Failed) {
            self.subscribed = Subscribed::NotYet;
        }
        Some(self.heartbeat.pause(request.ttl, pace, is_notified))
    }

    /// What there is to hear now.
    pub(super) fn heard(&self) -> Option<Notification> {
        self.subscription().and_then(Subscription::heard)
    }

    /// Whether what one hears may be for the other: of one owner's waits.
    pub(super) fn hears_with(&self, other: &RedisWait) -> bool {
        match (self.subscription(), other.subscription()) {
            (Some(one), Some(other)) => one.hears_with(other),
            _ => false,
        }
    }

    /// The owner enters the queue if it waits, but not before grants can be heard of.
    fn if_taken<'a>(
        &mut self,
        request: Request<'_>,
        pace: Option<&mut Pace<'_>>,
        inbox: Option<&'a OpenInbox>,
    ) -> IfTaken<'a> {
        let is_notified = inbox.is_some() && !self.is_unanswered;
        match pace {
            Some(pace) if self.is_queued() || !self.has_to_subscribe(pace) => IfTaken::Wait {
                heartbeat_within: self.heartbeat.announce(request.ttl, pace, is_notified),
                inbox: inbox.map(OpenInbox::listening),
            },
            _ => {
                self.heartbeat.announce_nothing();
                IfTaken::Leave
            }
        }
    }

    /// Subscribes if this process has the inbox already. With a deadline, the inbox is opened if need be.
    fn subscribe(&mut self, request: Request<'_>, open_by: Option<&Deadline>) {
        if let Some(subscription) = self.subscription() {
            if !subscription.is_over() {
                return;
            }
            // This one ends before the next begins.
            self.subscribed = Subscribed::NotYet;
        }
        // Of several names, those that are asked for together have one server.
        let Some(key) = request.claim.keys().first() else {
            return;
        };
        let known = self.server.as_ref().filter(|one| !one.retired().is_set());
        let server = known.cloned();
        let Some(server) = server.or_else(|| self.deps.scripts.server_of(key)) else {
            return;
        };
        let subscription =
            self.deps
                .inbox
                .subscribe(&server, key, (request.owner, &self.deps.bell), open_by);
        self.subscribed = match subscription {
            Some(one) if open_by.is_none() || !one.is_over() => Subscribed::Yes(one),
            _ if open_by.is_none() => return,
            _ => Subscribed::Failed,
        };
    }

    fn subscription(&self) -> Option<&Subscription> {
        match &self.subscribed {
            Subscribed::Yes(subscription) => Some(subscription),
            Subscribed::NotYet | Subscribed::Failed => None,
        }
    }

    /// Whether the owner is in the queue, as far as the last answer said.
    fn is_queued(&self) -> bool {
        self.seen.is_some_and(|seen| seen.is_queued)
    }

    /// Whether the owner has to subscribe before it enters the queue. A caller that counts attempts asks often enough
    /// without an inbox.
    fn has_to_subscribe(&self, pace: &Pace<'_>) -> bool {
        matches!(self.subscribed, Subscribed::NotYet) && !pace.counted
    }

    /// The server that has the name tells of grants. If that is another server now, the owner subscribes anew.
    fn taken(&mut self, seen: Seen, taken: &mut Taken, server: Arc<Server>) {
        if self.has_others {
            taken.queue_length = 0;
        }
        if let Some(subscription) = self.subscription() {
            if !subscription.is_at(&server) {
                self.subscribed = Subscribed::NotYet;
            } else if seen.is_queued && self.is_queued() && !taken.was_queued {
                // It was passed over: its inbox isn't heard.
                subscription.distrust();
            }
        }
        (self.seen, self.server) = (Some(seen), Some(server));
    }

    /// The lease of a grant that came by a message. It began after the last answer, so it lasts for at least a ttl from
    /// the question before that. If the grant is older than that answer, or was long on its way, the owner asks: the
    /// server knows whether the lease is still there.
    fn granted(&self, request: Request<'_>, token: Token) -> Option<Grant> {
        let [key] = request.claim.keys() else {
            // The next question brings the others.
            return None;
        };
        // It brings the value, too, or waits for the replicas, or finds that another server may have the lock.
        let asks_replicas = self.deps.scripts.asks_replicas();
        if request.claim.has_value || asks_replicas || self.deps.scripts.is_on_its_way(key) {
            return None;
        }
        let seen = self.seen?;
        let valid_for =
            valid_until(seen.asked, request.ttl, self.deps.clock_skew).since(self.deps.clock.now());
        let is_fresh = valid_for >= request.ttl / 2;
        (token.number > seen.counter && is_fresh).then_some(Grant {
            token,
            value: None,
            since: seen.asked,
        })
    }
}
