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
//! When the name comes to another server, because its slot has moved or a replica was promoted, the owner goes on asking, and
//! so keeps its place there if that came along. It subscribes at the server that answers, and asks again as soon as it hears.

use std::sync::Arc;
use std::time::Duration;

use super::commands::Commands;
use super::inbox::{Inbox, Notification, OpenInbox, Subscription};
use super::server::Server;
use crate::base::clock::valid_until;
use crate::base::clock::{BootInstant, Clock, Deadline};
use crate::base::token::Token;
use crate::base::value::Stored;
use crate::engine::heartbeat::{Acquired, Heartbeat, IfTaken, Taken};
use crate::engine::{Answer, Grant, Pace, Request, Unanswered, Wait};

pub(super) struct RedisWait {
    commands: Arc<Commands>,
    inbox: Arc<Inbox>,
    clock: Arc<dyn Clock>,
    clock_skew: Duration,
    /// The server that answered last.
    server: Option<Arc<Server>>,
    subscribed: Subscribed,
    heartbeat: Heartbeat,
    /// The last answer that the lock was taken.
    seen: Option<Seen>,
    /// Whether the owner is in the queue, as far as that answer said.
    is_queued: bool,
    /// Whether the last question has no answer.
    is_unanswered: bool,
    /// Whether the owner has leases of other names, which are renewed when it asks: that mustn't be rare, however long the queue
    /// is.
    has_others: bool,
}

/// A question that was begun.
struct Asking {
    /// Within which time the next comes, if the owner is to enter the queue.
    within: Option<Duration>,
    inbox: Option<OpenInbox>,
    began: BootInstant,
}

impl Asking {
    /// Whether the owner is in the queue afterwards, if the lock is taken.
    fn enters(&self) -> bool {
        self.within.is_some()
    }

    fn if_taken(&self) -> IfTaken<'_> {
        match self.within {
            Some(heartbeat_within) => IfTaken::Wait {
                heartbeat_within,
                inbox: self.inbox.as_ref().map(OpenInbox::listening),
            },
            None => IfTaken::Leave,
        }
    }
}

/// Whether grants are heard of.
enum Subscribed {
    /// The owner hasn't tried to subscribe yet.
    NotYet,
    /// It tried, and hears of nothing for now.
    Failed,
    /// The server refused: the name is on its way, or another server has taken that one's place. It tries again after a pause.
    Refused,
    Yes(Subscription),
}

/// When the lock was last found taken: what is granted later comes after this.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// When the question was sent.
    asked: BootInstant,
    /// The tokens granted later are above it.
    counter: u64,
}

impl Wait for RedisWait {
    fn ask(
        &mut self,
        request: Request<'_>,
        mut pace: Option<&mut Pace<'_>>,
        deadline: &Deadline,
    ) -> Result<Answer, Unanswered> {
        let asking = self.begin(request, pace.as_deref_mut());
        let answer = self.commands.acquire(request, asking.if_taken(), deadline);
        Ok(match self.answered(&asking, answer, pace)? {
            Acquired::Granted { token, value } => granted(token, value, asking.began),
            Acquired::Broken => Answer::Broken,
            Acquired::Taken(taken) => Answer::Taken {
                is_queued: asking.enters(),
                holder: taken.holder,
            },
        })
    }

    fn wait(&mut self, request: Request<'_>, pace: &mut Pace<'_>) -> Option<Grant> {
        if self.seen.is_some() && self.has_to_subscribe(pace) {
            self.subscribe(request, Some(pace.until));
            return None;
        }
        let is_notified = self.is_notified();
        let pause = self.heartbeat.pause(request.ttl, pace, is_notified);
        let Subscribed::Yes(subscription) = &self.subscribed else {
            pace.until.sleep(pause);
            if matches!(self.subscribed, Subscribed::Refused) {
                self.subscribed = Subscribed::NotYet;
            }
            return None;
        };
        match subscription.wait(pause, pace.until)? {
            Notification::Granted(token) => self.granted(request, token),
            Notification::AskAgain => None,
        }
    }
}

impl RedisWait {
    pub(super) fn new(
        commands: Arc<Commands>,
        inbox: Arc<Inbox>,
        clock: Arc<dyn Clock>,
        clock_skew: Duration,
        has_others: bool,
    ) -> Self {
        RedisWait {
            commands,
            inbox,
            clock,
            clock_skew,
            server: None,
            subscribed: Subscribed::NotYet,
            heartbeat: Heartbeat::default(),
            seen: None,
            is_queued: false,
            is_unanswered: false,
            has_others,
        }
    }

    /// Begins a question, which is to be sent at once.
    fn begin(&mut self, request: Request<'_>, pace: Option<&mut Pace<'_>>) -> Asking {
        self.subscribe(request, None);
        let inbox = self.inbox();
        let is_notified = inbox.is_some() && !self.is_unanswered;
        // Not before grants can be heard of.
        let enters = pace.filter(|pace| self.is_queued || !self.has_to_subscribe(pace));
        let within = enters.map(|pace| self.heartbeat.announce(request.ttl, pace, is_notified));
        Asking {
            within,
            inbox,
            // Read before sending: the server's lease starts no earlier than this.
            began: self.clock.now(),
        }
    }

    /// Ends a question.
    fn answered(
        &mut self,
        asking: &Asking,
        answer: Result<(Acquired, Arc<Server>), Unanswered>,
        pace: Option<&mut Pace<'_>>,
    ) -> Result<Acquired, Unanswered> {
        if !asking.enters() {
            self.heartbeat.announce_nothing();
        }
        self.is_unanswered = answer.is_err();
        let (mut answer, server) = answer?;
        if let Acquired::Taken(taken) = &mut answer {
            if self.has_others {
                taken.queue_length = 0;
            }
            self.taken(asking.began, taken, asking.enters(), &server);
            self.follow(server);
            if let Some(pace) = pace {
                self.heartbeat.answered(taken, pace);
            }
        }
        Ok(answer)
    }

    /// Subscribes, if this process has its inbox already; with a deadline it is opened if need be.
    fn subscribe(&mut self, request: Request<'_>, open_by: Option<&Deadline>) {
        match &self.subscribed {
            Subscribed::Yes(subscription) if !subscription.is_over() => return,
            // This one ends before the next begins.
            Subscribed::Yes(_) => self.subscribed = Subscribed::NotYet,
            Subscribed::NotYet | Subscribed::Failed | Subscribed::Refused => {}
        }
        // Of several names, those that are asked for together have one server.
        let Some(key) = request.claim.keys().first() else {
            return;
        };
        let known = self.server.as_ref().filter(|one| !one.retired().is_set());
        let server = known.cloned();
        let Some(server) = server.or_else(|| self.commands.server_of(key)) else {
            return;
        };
        let subscription = self.inbox.subscribe(&server, key, request.owner, open_by);
        self.subscribed = match subscription {
            Some(one) if open_by.is_some() && one.is_over() => Subscribed::Refused,
            Some(one) => Subscribed::Yes(one),
            None if open_by.is_none() => return,
            None if server.retired().is_set() => Subscribed::Refused,
            None => Subscribed::Failed,
        };
    }

    /// Whether the queue isn't to be entered yet. A caller that counts attempts asks often enough without.
    fn has_to_subscribe(&self, pace: &Pace<'_>) -> bool {
        matches!(self.subscribed, Subscribed::NotYet) && !pace.counted
    }

    /// Where grants are to be sent, while they are heard of.
    fn inbox(&self) -> Option<OpenInbox> {
        match &self.subscribed {
            Subscribed::Yes(subscription) => subscription.inbox(),
            Subscribed::NotYet | Subscribed::Failed | Subscribed::Refused => None,
        }
    }

    fn is_notified(&self) -> bool {
        match &self.subscribed {
            Subscribed::Yes(subscription) => !self.is_unanswered && subscription.is_confirmed(),
            Subscribed::NotYet | Subscribed::Failed | Subscribed::Refused => false,
        }
    }

    fn taken(&mut self, asked: BootInstant, taken: &Taken, is_queued: bool, server: &Arc<Server>) {
        if let Subscribed::Yes(subscription) = &self.subscribed
            && is_queued
            && self.is_queued
            && !taken.was_queued
            && subscription.is_at(server)
        {
            // It was passed over: its inbox isn't heard.
            subscription.distrust();
        }
        self.is_queued = is_queued;
        self.seen = Some(Seen {
            asked,
            counter: taken.counter,
        });
    }

    /// Grants are heard of at the server that has the name: if that is another one now, the owner subscribes anew.
    fn follow(&mut self, server: Arc<Server>) {
        if let Subscribed::Yes(subscription) = &self.subscribed
            && !subscription.is_at(&server)
        {
            self.subscribed = Subscribed::NotYet;
        }
        self.server = Some(server);
    }

    /// The lease of a grant that was heard of: it began after the last answer, so it lasts for a ttl from that
    /// question at least. A grant that is from before, or was long on the way, is left to the next question, which
    /// finds whether it is still there.
    fn granted(&self, request: Request<'_>, token: Token) -> Option<Grant> {
        let [key] = request.claim.keys() else {
            // The next question brings the others.
            return None;
        };
        if request.claim.valued || self.commands.asks_replicas() {
            // So does it bring the value, or wait for the replicas.
            return None;
        }
        if self.commands.is_on_its_way(key) {
            // Another server may have the lock: the next question finds out.
            return None;
        }
        let seen = self.seen?;
        let valid_for =
            valid_until(seen.asked, request.ttl, self.clock_skew).since(self.clock.now());
        let is_fresh = valid_for >= request.ttl / 2;
        (token.number > seen.counter && is_fresh).then_some(Grant {
            token,
            value: None,
            since: seen.asked,
        })
    }
}

fn granted(token: Token, value: Option<Stored>, since: BootInstant) -> Answer {
    Answer::Granted(Grant {
        token,
        value,
        since,
    })
}
