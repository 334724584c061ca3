//! The inbox: a connection on which a locker hears of grants, and what its waiters and one thread do with it.
//!
//! It begins when a locker meets its first lock that is taken, and ends with the locker. There is a channel for each
//! namespace that has waiters, or had some a short while ago; without any there is no connection. A waiter registers
//! its owner before the server learns of it, and a message "owner token" is for the waiter with that owner.
//!
//! Messages can be lost, late or sent twice: a waiter checks what it hears against what it was answered, and asks
//! again in time. When a channel begins to be heard, and when its connection is lost, its waiters are told to ask.
//!
//! # Who reads
//!
//! A waiter that waits alone reads the connection itself, so that a grant wakes one thread and not two. Where several
//! wait, and come and go, the thread reads for all, so that the reading isn't passed from one to the next. One reads at
//! a time. The connection is at one [`Place`](state::Place), and belongs to whoever took it from there:
//!
//! | place | who has it | left when |
//! |---|---|---|
//! | `None` | nobody: no channel is wanted, or the thread connects | the thread has connected: `WithThread` |
//! | `Free` | nobody, and nobody sleeps | a waiter comes: `WithWaiter`; none does for 1 s: `WithThread`; no channel is left: `None` |
//! | `WithWaiter` | the waiter that reads | its own news, or its timeout: `Free`, or `Left` if others sleep; an error: `Lost` |
//! | `Left` | nobody: the thread is woken for it | `WithThread` |
//! | `WithThread` | the thread | one waiter sleeps, and no two did for 20 ms, or no channel is left: `Free`; an error: `Lost` |
//! | `Lost` | nobody | the thread has seen why: `None`, and it connects anew |
//!
//! What can happen meanwhile:
//!
//! - *A grant for the reader*: it puts the connection back and returns. *A grant for another waiter*: the reader leaves
//!   it with that one, and wakes it. What was sent, and not read when a reader leaves, stays in the connection for
//!   the next reader: a grant of a waiter that is about to wait is read by itself, or by who reads then.
//! - *A waiter comes*: it takes the connection if it is `Free`, and sleeps otherwise. If it is the only one and the
//!   thread reads, it rings the [`Bell`], and the thread puts the connection back for it.
//! - *The reader leaves, and others sleep*: it wakes the thread. So while somebody sleeps the connection is read, or the
//!   thread is on its way to it; or the one that sleeps was woken for it, and where that one leaves instead, nobody sleeps.
//! - *A new channel is wanted*: whoever reads is rung, and subscribes. Who reads also unsubscribes, and asks a silent
//!   server whether it is there.
//! - *The connection is lost*, which its reader finds: under one lock all channels become unheard, and their waiters
//!   are told to ask; the thread is woken to connect anew. *A waiter distrusts it*: it is shut down, which the reader
//!   finds, or the next.
//! - *Nobody waits*: the connection is free, and the thread reads it after a while, so that its end is found. A waiter
//!   that comes before looks whether it is at its end, before it relies on it.
//! - *The locker is gone*: then nobody waits. The connection is shut down, and the thread ends.
//! - *A fork*: the child has an inbox of its own, and touches nothing of this one.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use uuid::Uuid;

use self::reading::Reader;
use self::state::{Place, State, Waiter};
use self::waker::Bell;
use super::server::Server;
use crate::base::clock::{Cancel, Deadline};
use crate::base::owner::Owner;
use crate::engine::redis::{Grants, News};

mod channels;
mod pubsub;
mod reading;
mod state;
mod thread;
mod waker;

/// How long a first waiter waits for its channel to be heard, before it goes on without.
const OPENING: Duration = Duration::from_millis(100);

/// Where a locker may have its inbox.
pub(super) struct Letterbox {
    server: Arc<Server>,
    inbox: Mutex<Option<Arc<Inbox>>>,
}

struct Inbox {
    server: Arc<Server>,
    id: String,
    state: Mutex<State>,
    /// Wakes the thread, when it doesn't read.
    changed: Condvar,
    /// Wakes who reads.
    bell: Bell,
    closed: Cancel,
}

/// A waiter's registration, which ends with it.
struct Registered {
    inbox: Arc<Inbox>,
    owner: String,
    channel: Arc<str>,
    /// Wakes it when it sleeps.
    bell: Arc<Condvar>,
}

impl Letterbox {
    pub(super) fn new(server: Arc<Server>) -> Self {
        Letterbox {
            server,
            inbox: Mutex::default(),
        }
    }

    /// Registers a waiter, if its channel is wanted already. With `start` it is wanted from now on, and given a moment
    /// to be heard.
    pub(super) fn listen(
        &self,
        namespace: &str,
        owner: &Owner,
        start: Option<&Deadline>,
    ) -> Option<Box<dyn Grants>> {
        let inbox = self.inbox(start.is_some())?;
        let name = format!("{namespace}:inbox:{}", inbox.id);
        let known = inbox.state.lock().channels.known(&name);
        let registered = match (known, start) {
            (Some(known), _) => inbox.register(owner, known, start.is_some()),
            (None, Some(_)) => inbox.register(owner, name.into(), true),
            (None, None) => return None,
        };
        registered.look();
        if let Some(deadline) = start {
            registered.await_opening(deadline);
        }
        Some(Box::new(registered))
    }

    fn inbox(&self, start: bool) -> Option<Arc<Inbox>> {
        let mut inbox = self.inbox.lock();
        if inbox.is_none() && start {
            *inbox = Inbox::start(self.server.clone());
        }
        inbox.clone()
    }
}

impl Drop for Letterbox {
    fn drop(&mut self) {
        if let Some(inbox) = self.inbox.get_mut() {
            inbox.close();
        }
    }
}

impl Inbox {
    fn start(server: Arc<Server>) -> Option<Arc<Self>> {
        let started = Bell::new().and_then(|bell| {
            let inbox = Arc::new(Inbox {
                server,
                id: Uuid::new_v4().simple().to_string(),
                state: Mutex::default(),
                changed: Condvar::new(),
                bell,
                closed: Cancel::default(),
            });
            inbox.start_thread().map(|()| inbox)
        });
        started
            .inspect_err(|e| {
                log::warn!("no thread to hear of grants, so waiting is by asking: {e}");
            })
            .ok()
    }

    fn register(self: Arc<Self>, owner: &Owner, channel: Arc<str>, is_opening: bool) -> Registered {
        let bell = Arc::new(Condvar::new());
        let waiter = Waiter {
            news: None,
            is_opening,
            bell: bell.clone(),
        };
        let owner = owner.as_str().to_owned();
        let mut state = self.state.lock();
        let is_first = state.channels.is_empty();
        state.channels.enter(&channel, owner.clone(), waiter);
        if is_first {
            self.changed.notify_one();
        }
        drop(state);
        Registered {
            inbox: self,
            owner,
            channel,
            bell,
        }
    }

    fn close(&self) {
        self.closed.set();
        let state = self.state.lock();
        if let Some(closer) = &state.closer {
            closer.close();
        }
        self.changed.notify_one();
    }
}

impl Registered {
    /// Finds a connection that came to its end while nobody read it.
    fn look(&self) {
        let link = self.inbox.state.lock().take();
        if let Some(link) = link {
            let now = Instant::now();
            drop(self.inbox.read(link, Reader::Waiter(self, Some(now))));
        }
    }

    /// Waits until the channel is heard, for a moment.
    fn await_opening(&self, deadline: &Deadline) {
        if self.inbox().is_none() {
            self.wait(OPENING.min(deadline.remaining()));
        }
        let mut state = self.inbox.state.lock();
        if let Some(waiter) = state.channels.waiter(&self.channel, &self.owner) {
            // Whatever it heard, it asks now.
            (waiter.is_opening, waiter.news) = (false, None);
        }
    }

    fn news<'a>(&self, state: &'a mut State) -> Option<&'a mut Option<News>> {
        let waiter = state.channels.waiter(&self.channel, &self.owner)?;
        Some(&mut waiter.news)
    }

    fn has_news(&self, state: &mut State) -> bool {
        self.news(state).is_some_and(|news| news.is_some())
    }

    fn take_news(&self, state: &mut State) -> Option<News> {
        self.news(state)?.take()
    }

    /// Sleeps until there are news, or it is to read, or it is time.
    fn sleep(&self, state: &mut MutexGuard<'_, State>, until: Option<Instant>) {
        let rings = &self.inbox.bell;
        state.fall_asleep(&self.bell, rings);
        let is_read = matches!(state.place, Place::WithWaiter | Place::WithThread);
        if is_read && !state.channels.hears(&self.channel) {
            rings.ring(&mut state.rung);
        }
        match until {
            Some(until) => _ = self.bell.wait_until(state, until),
            None => self.bell.wait(state),
        }
        state.wake_up(&self.bell, rings);
    }
}

impl Grants for Registered {
    fn inbox(&self) -> Option<&str> {
        let hears = self.inbox.state.lock().channels.hears(&self.channel);
        hears.then_some(&*self.channel)
    }

    /// The server doesn't count this inbox: it has another connection, or has become a replica.
    fn distrust(&self) {
        let state = self.inbox.state.lock();
        if let (Some(closer), true) = (&state.closer, state.channels.hears(&self.channel)) {
            closer.close();
        }
    }

    fn wait(&self, timeout: Duration) -> Option<News> {
        // A timeout past the end of the clock is none.
        let until = Instant::now().checked_add(timeout);
        let mut state = self.inbox.state.lock();
        loop {
            let news = self.take_news(&mut state);
            if news.is_some() || until.is_some_and(|until| until <= Instant::now()) {
                return news;
            }
            state = match state.take() {
                Some(link) => {
                    drop(state);
                    self.inbox.read(link, Reader::Waiter(self, until))
                }
                None => {
                    self.sleep(&mut state, until);
                    state
                }
            };
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut state = self.inbox.state.lock();
        state
            .channels
            .leave(&self.channel, &self.owner, Instant::now());
    }
}

impl fmt::Debug for Letterbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Letterbox").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::options::Options;
    use crate::base::token::Token;
    use ::redis::Value;
    use proptest::prelude::*;

    /// An inbox without its thread, which never connects.
    fn inbox() -> Arc<Inbox> {
        let address = super::super::address::parse("redis://127.0.0.1:1/").unwrap();
        Arc::new(Inbox {
            server: Arc::new(Server::new(address, &Options::default()).unwrap()),
            id: "id".into(),
            state: Mutex::default(),
            changed: Condvar::new(),
            bell: Bell::new().unwrap(),
            closed: Cancel::default(),
        })
    }

    fn message(payload: &[u8]) -> Value {
        let parts = [b"message", &b"crosslock:inbox:id"[..], payload];
        Value::Array(parts.map(|part| Value::BulkString(part.to_vec())).into())
    }

    /// What a waiter hears of that.
    fn heard(owner: &Owner, value: &Value) -> Option<News> {
        let registered = inbox().register(owner, "crosslock:inbox:id".into(), false);
        registered.inbox.state.lock().take_in(&pubsub::said(value)?);
        registered.wait(Duration::ZERO)
    }

    #[test]
    fn grant_reaches_its_owner_only() {
        let (one, other) = (Owner::new(), Owner::new());
        let grant = message(format!("{} 7", one.as_str()).as_bytes());
        let token = Token::from_number(7);
        assert_eq!(heard(&one, &grant), Some(News::Granted(token)));
        assert_eq!(heard(&other, &grant), None);
    }

    proptest! {
        #[test]
        fn nothing_but_the_owner_and_a_number_is_a_grant(
            before in "\\PC{0,4}", after in "[ +-]{0,2}[0-9]{0,22}\\PC{0,3}",
        ) {
            let owner = Owner::new();
            let payload = format!("{before}{}{after}", owner.as_str());
            let told = heard(&owner, &message(payload.as_bytes()));
            let number = after.strip_prefix(' ').and_then(|rest| rest.parse::<u64>().ok());
            let granted = number.filter(|_| before.is_empty());
            prop_assert_eq!(told, granted.map(|number| News::Granted(Token::from_number(number))));
        }

        #[test]
        fn any_bytes_are_understood_or_left(payload: Vec<u8>, whole: Vec<u8>) {
            let owner = Owner::new();
            prop_assert_eq!(heard(&owner, &message(&payload)), None);
            for value in ::redis::parse_redis_value(&whole).into_iter() {
                prop_assert_eq!(heard(&owner, &value), None);
            }
        }
    }
}
