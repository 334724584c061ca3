//! The inbox: a thread and a connection that hear of grants, and tell the threads that wait for them.
//!
//! It is started when a locker meets its first lock that is taken, and ends with the locker. There is a channel for
//! each namespace that has waiters, or had some a short while ago; without any there is no connection. A waiter
//! registers its owner before the server learns of it; a message "owner token" goes to the waiter with that owner, and
//! any other makes the thread look at which channels are wanted.
//!
//! Messages can be lost, late or sent twice: a waiter checks what it hears against what it was answered, and asks
//! again in time. When a channel begins to be heard, and when its connection is lost, its waiters are told to ask.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use parking_lot::{Condvar, Mutex};
use uuid::Uuid;

use self::channels::{Channels, UNUSED_FOR};
use self::link::{Link, Said};
use super::connection::Closer;
use super::failure::{Broken, Failure};
use super::server::Server;
use crate::backoff::Backoff;
use crate::clock::{Cancel, Deadline};
use crate::engine::{Grants, News};
use crate::fence::Token;
use crate::lease::Owner;
use crate::per_process::Fresh;

mod channels;
mod link;

/// How long a first waiter waits for the inbox to open, before it goes on without.
const OPENING: Duration = Duration::from_millis(100);

const PAUSES: Backoff = Backoff {
    base: Duration::from_millis(10),
    cap: Duration::from_millis(250),
    jitter: 0.5,
};

/// A connection that lasted for as long was one: the next is made at once when it ends.
const SETTLED: Duration = PAUSES.cap;

/// Where a locker may have its inbox.
pub(super) struct Letterbox {
    server: Arc<Server>,
    inbox: Mutex<Option<Arc<Inbox>>>,
}

struct Inbox {
    server: Arc<Server>,
    id: String,
    state: Mutex<State>,
    /// Notified when a channel is wanted, and when the locker is gone.
    changed: Condvar,
    closed: Cancel,
}

#[derive(Default)]
struct State {
    channels: Channels<Waiter>,
    closer: Option<Closer>,
}

#[derive(Debug)]
struct Waiter {
    tell: Sender<News>,
    /// Whether it waits for its channel to be heard, and hasn't asked since.
    is_opening: bool,
}

/// How a connection ended that worked.
enum Ended {
    /// Nobody waits any more.
    Unused,
}

/// A waiter's registration, which ends with it.
struct Registered {
    inbox: Arc<Inbox>,
    owner: String,
    channel: Arc<str>,
    news: Receiver<News>,
}

impl Letterbox {
    pub(super) fn new(server: Arc<Server>) -> Self {
        Letterbox {
            server,
            inbox: Mutex::default(),
        }
    }

    /// Registers a waiter, if its channel is wanted already. With `start` it is wanted from now on, and the waiter
    /// is registered when it is heard, or when that takes too long.
    pub(super) fn listen(
        &self,
        namespace: &str,
        owner: &Owner,
        start: Option<&Deadline>,
    ) -> Option<Box<dyn Grants>> {
        let inbox = self.inbox(start.is_some())?;
        let name = format!("{namespace}:inbox:{}", inbox.id);
        let Some(deadline) = start else {
            let known = inbox.state.lock().channels.known(&name)?;
            return Some(Box::new(inbox.register(owner, known, false)));
        };
        let registered = inbox.register(owner, name.into(), true);
        registered.await_opening(owner.process(), deadline);
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

/// A child has an inbox of its own: the thread of this one stayed with the parent, and its connection is the
/// parent's.
impl Fresh for Letterbox {
    fn fresh(&self) -> Self {
        Letterbox::new(self.server.clone())
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
        // TLS and a logger are all that needs stack here.
        const STACK: usize = 512 * 1024;
        let inbox = Arc::new(Inbox {
            server,
            id: Uuid::new_v4().simple().to_string(),
            state: Mutex::default(),
            changed: Condvar::new(),
            closed: Cancel::default(),
        });
        let theirs = inbox.clone();
        let started = thread::Builder::new()
            .name("crosslock-inbox".into())
            .stack_size(STACK)
            .spawn(move || theirs.run());
        match started {
            Ok(_) => Some(inbox),
            Err(e) => {
                log::warn!("no thread to hear of grants, so waiting is by asking: {e}");
                None
            }
        }
    }

    fn register(self: Arc<Self>, owner: &Owner, channel: Arc<str>, is_opening: bool) -> Registered {
        // One message is enough: a waiter that finds one looks for itself.
        let (tell, news) = bounded(1);
        let owner = owner.as_str().to_owned();
        let waiter = Waiter { tell, is_opening };
        let mut state = self.state.lock();
        state.channels.enter(&channel, owner.clone(), waiter);
        self.changed.notify_all();
        drop(state);
        Registered {
            inbox: self,
            owner,
            channel,
            news,
        }
    }

    fn close(&self) {
        self.closed.set();
        let state = self.state.lock();
        if let Some(closer) = &state.closer {
            closer.close();
        }
        self.changed.notify_all();
    }

    /// The thread.
    fn run(&self) {
        let mut pauses = PAUSES.waits();
        let mut warned = false;
        while !self.closed.is_set() {
            // A logger that panics must not end the thread that waiters rely on.
            let began = Instant::now();
            let heard = catch_unwind(AssertUnwindSafe(|| self.hear_until_broken(&mut warned)));
            if heard.unwrap_or(false) && began.elapsed() > SETTLED {
                pauses = PAUSES.waits();
                warned = false;
            }
            let mut state = self.state.lock();
            if !self.closed.is_set() {
                let pause = pauses.next().unwrap_or(PAUSES.cap);
                self.changed.wait_for(&mut state, pause);
            }
        }
    }

    /// Says whether anything was heard.
    fn hear_until_broken(&self, warned: &mut bool) -> bool {
        let ended = self.hear();
        let heard = self.went_deaf();
        let broken = match ended {
            Ok(Ended::Unused) => return true,
            Err(broken) => broken,
        };
        if !self.closed.is_set() {
            let level = if !*warned {
                log::Level::Warn
            } else {
                log::Level::Debug
            };
            *warned = true;
            let (place, cause) = (self.server.place(), Failure::from(broken).cause());
            log::log!(
                level,
                "no grants heard from {place}, so waiting is by asking: {cause}"
            );
        }
        heard
    }

    fn hear(&self) -> Result<Ended, Broken> {
        self.await_first_channel();
        let closed = Deadline::NEVER.or(&self.closed);
        let connection = self.server.connect(&closed)?;
        self.state.lock().closer = Some(connection.closer());
        let mut link = Link::new(connection, self.server.io_timeout());
        loop {
            let now = Instant::now();
            let (changes, next_look) = {
                let mut state = self.state.lock();
                let changes = state.channels.changes(now);
                if state.channels.is_empty() {
                    return Ok(Ended::Unused);
                }
                // A channel may be left unused at any time, and this isn't told.
                let next_look = state.channels.next_look().unwrap_or(now + UNUSED_FOR);
                (changes, next_look)
            };
            link.change(&changes, &closed)?;
            link.tend(now, &closed)?;
            // A locker that is gone since has set this before it closed what it found to close.
            if self.closed.is_set() {
                return Err(Broken::Closed("its locker is gone".into()));
            }
            if let Some(said) = link.receive(&Deadline::at(link.due().min(next_look)))? {
                self.take_in(&said);
            }
        }
    }

    fn await_first_channel(&self) {
        let mut state = self.state.lock();
        while state.channels.is_empty() && !self.closed.is_set() {
            self.changed.wait(&mut state);
        }
    }

    fn take_in(&self, said: &Said) {
        match said {
            Said::Message { channel, text } => self.state.lock().tell(channel, text),
            Said::Heard { channel } => self.state.lock().heard(channel),
            Said::Other => {}
        }
    }

    /// Says whether anything was heard before.
    fn went_deaf(&self) -> bool {
        let mut state = self.state.lock();
        state.closer = None;
        state.deafen()
    }
}

impl State {
    /// A message that isn't about a grant is there to be received: the thread looks at what is wanted then.
    fn tell(&mut self, channel: &str, message: &str) {
        let Some((owner, token)) = message.rsplit_once(' ') else {
            return;
        };
        if let (Some(waiter), Ok(token)) = (self.channels.waiter(channel, owner), token.parse()) {
            waiter.tell(News::Granted(Token::from_number(token)));
        }
    }

    /// Those that entered the line before this have no inbox there.
    fn heard(&mut self, channel: &str) {
        self.channels.heard(channel);
        for waiter in self.channels.waiters(channel) {
            waiter.tell(News::Ask);
        }
    }

    fn deafen(&mut self) -> bool {
        let heard = self.channels.any_heard().is_some();
        self.channels.deafen(|waiter, was_heard| {
            if was_heard || waiter.is_opening {
                waiter.tell(News::Ask);
            }
        });
        heard
    }
}

impl Waiter {
    /// A message that is there already makes it ask.
    fn tell(&mut self, news: News) {
        let _ = self.tell.try_send(news);
    }
}

impl Registered {
    /// Waits until the channel is heard, for a moment.
    fn await_opening(&self, process: u32, deadline: &Deadline) {
        let any_heard = {
            let state = self.inbox.state.lock();
            if state.channels.hears(&self.channel) {
                None
            } else {
                state.channels.any_heard()
            }
        };
        if let Some(heard) = any_heard {
            // The thread blocks on its connection: the server wakes it.
            let mut look = ::redis::cmd("PUBLISH");
            look.arg(&*heard).arg("look");
            let deadline = deadline.within(OPENING);
            let _ = self.inbox.server.call(&look, process, &deadline);
        }
        if !self.inbox.state.lock().channels.hears(&self.channel) {
            self.wait(OPENING.min(deadline.remaining()));
        }
        let mut state = self.inbox.state.lock();
        if let Some(waiter) = state.channels.waiter(&self.channel, &self.owner) {
            waiter.is_opening = false;
        }
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
        // A timeout past the end of the clock: the registration has the sender, so it never ends without news.
        match Instant::now().checked_add(timeout) {
            Some(until) => self.news.recv_deadline(until).ok(),
            None => self.news.recv().ok(),
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
    use crate::options::Options;
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
        registered.inbox.take_in(&link::said(value)?);
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
