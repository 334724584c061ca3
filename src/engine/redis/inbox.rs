//! The inbox: a thread and a connection that hear of grants, and tell the threads that wait for them.
//!
//! It is started when a locker meets its first lock that is taken, and ends with the locker. There is a channel for
//! each namespace. A waiter registers its owner before the server learns of it; a message "owner token" goes to
//! the waiter with that owner, and any other makes the thread look at which channels are wanted.
//!
//! Messages can be lost, late or sent twice: a waiter checks what it hears against what it was answered, and asks
//! again in time. Whenever the connection is lost, and when there is a new one, all waiters are told to ask.

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ::redis::Value;
use crossbeam_channel::{Receiver, Sender, bounded};
use parking_lot::{Condvar, Mutex};
use uuid::Uuid;

use super::connection::{Closer, Connection};
use super::failure::{Broken, Failure};
use super::server::Server;
use crate::backoff::Backoff;
use crate::clock::{Cancel, Deadline};
use crate::engine::{Grants, News};
use crate::fence::Token;
use crate::lease::Owner;
use crate::per_process::Fresh;

/// A connection that says nothing for as long is asked whether it is still there.
const QUIET: Duration = Duration::from_secs(30);

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
    /// Notified when a channel is heard, when that failed, and when the locker is gone.
    changed: Condvar,
    closed: Cancel,
}

#[derive(Default)]
struct State {
    channels: HashMap<Arc<str>, Channel>,
    /// By owner.
    waiting: HashMap<String, Sender<News>>,
    closer: Option<Closer>,
    /// How many connections were lost or couldn't be made.
    failures: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Channel {
    Wanted,
    Asked,
    Heard,
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
        let channel = match start {
            None => inbox.state.lock().wanted(&name)?,
            Some(deadline) => {
                let channel = inbox.want(&name, owner.process(), deadline);
                inbox.await_opening(&channel, deadline);
                channel
            }
        };
        Some(Box::new(inbox.register(owner, channel)))
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

    fn want(&self, name: &str, process: u32, deadline: &Deadline) -> Arc<str> {
        let mut state = self.state.lock();
        if let Some(wanted) = state.wanted(name) {
            return wanted;
        }
        let name: Arc<str> = name.into();
        let heard = state.heard();
        state.channels.insert(name.clone(), Channel::Wanted);
        self.changed.notify_all();
        drop(state);
        if let Some(heard) = heard {
            // The thread blocks on its connection: the server wakes it.
            let mut look = ::redis::cmd("PUBLISH");
            look.arg(&*heard).arg("look");
            let _ = self.server.call(&look, process, &deadline.within(OPENING));
        }
        name
    }

    /// Waits until a channel is heard, for a moment.
    fn await_opening(&self, channel: &str, deadline: &Deadline) {
        let until = Instant::now() + OPENING.min(deadline.remaining());
        let mut state = self.state.lock();
        let failures = state.failures;
        while !state.hears(channel) && state.failures == failures {
            if self.changed.wait_until(&mut state, until).timed_out() {
                return;
            }
        }
    }

    fn register(self: Arc<Self>, owner: &Owner, channel: Arc<str>) -> Registered {
        // One message is enough: a waiter that finds one looks for itself.
        let (tell, news) = bounded(1);
        let owner = owner.as_str().to_owned();
        self.state.lock().waiting.insert(owner.clone(), tell);
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
        let Err(broken) = self.hear();
        let heard = self.went_deaf();
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

    fn hear(&self) -> Result<std::convert::Infallible, Broken> {
        self.await_first_channel();
        let closed = Deadline::NEVER.or(&self.closed);
        let mut connection = self.server.connect(&closed)?;
        self.state.lock().closer = Some(connection.closer());
        let mut pinged = false;
        loop {
            let open = self.subscribe(&mut connection)?;
            let timeout = if open && !pinged {
                QUIET
            } else {
                self.server.io_timeout()
            };
            // A locker that is gone since has set this before it closed what it found to close.
            if self.closed.is_set() {
                return Err(Broken::Closed("its locker is gone".into()));
            }
            match connection.receive(&Deadline::after(timeout)) {
                Ok(value) => {
                    pinged = false;
                    self.understand(&value)?;
                }
                // Nothing was asked, so nothing is late; and a message that has begun is read on.
                Err(Broken::TimedOut(_)) if open && !pinged => {
                    pinged = true;
                    self.send(&mut connection, &::redis::cmd("PING"))?;
                }
                Err(broken) => return Err(broken),
            }
        }
    }

    fn await_first_channel(&self) {
        let mut state = self.state.lock();
        while state.channels.is_empty() && !self.closed.is_set() {
            self.changed.wait(&mut state);
        }
    }

    /// Subscribes to what is wanted since, and says whether all that is wanted is heard.
    fn subscribe(&self, connection: &mut Connection) -> Result<bool, Broken> {
        let mut subscribe = ::redis::cmd("SUBSCRIBE");
        let (mut some, mut open) = (false, true);
        for (name, channel) in &mut self.state.lock().channels {
            open &= *channel == Channel::Heard;
            if *channel == Channel::Wanted {
                *channel = Channel::Asked;
                subscribe.arg(&**name);
                some = true;
            }
        }
        if some {
            self.send(connection, &subscribe)?;
        }
        Ok(open)
    }

    fn send(&self, connection: &mut Connection, command: &::redis::Cmd) -> Result<(), Broken> {
        let deadline = Deadline::after(self.server.io_timeout()).or(&self.closed);
        connection.send(&command.get_packed_command(), &deadline)
    }

    fn understand(&self, value: &Value) -> Result<(), Broken> {
        let parts = match value {
            Value::Array(parts) => &parts[..],
            Value::ServerError(error) => return Err(Broken::Refused(error.clone().into())),
            _ => &[],
        };
        match (text(parts.first()), text(parts.get(1)), parts.get(2)) {
            ("message", _, payload) => self.tell(text(payload)),
            ("subscribe", channel, _) => self.heard(channel),
            _ => {}
        }
        Ok(())
    }

    fn tell(&self, message: &str) {
        let Some((owner, token)) = message.rsplit_once(' ') else {
            return;
        };
        let state = self.state.lock();
        if let (Some(waiter), Ok(token)) = (state.waiting.get(owner), token.parse()) {
            // A message that is there already makes it ask.
            let _ = waiter.try_send(News::Granted(Token::from_number(token)));
        }
    }

    fn heard(&self, name: &str) {
        let mut state = self.state.lock();
        if let Some(channel) = state.channels.get_mut(name) {
            *channel = Channel::Heard;
        }
        state.tell_all();
        self.changed.notify_all();
    }

    /// Says whether anything was heard before.
    fn went_deaf(&self) -> bool {
        let mut state = self.state.lock();
        let heard = state.heard().is_some();
        for channel in state.channels.values_mut() {
            *channel = Channel::Wanted;
        }
        state.closer = None;
        state.failures += 1;
        if heard {
            state.tell_all();
        }
        self.changed.notify_all();
        heard
    }
}

impl State {
    fn wanted(&self, name: &str) -> Option<Arc<str>> {
        let channel = self.channels.get_key_value(name);
        channel.map(|(name, _)| name.clone())
    }

    fn hears(&self, name: &str) -> bool {
        self.channels.get(name) == Some(&Channel::Heard)
    }

    /// Any that is heard.
    fn heard(&self) -> Option<Arc<str>> {
        let mut channels = self.channels.iter();
        let heard = channels.find(|(_, channel)| **channel == Channel::Heard);
        heard.map(|(name, _)| name.clone())
    }

    fn tell_all(&self) {
        for waiter in self.waiting.values() {
            let _ = waiter.try_send(News::Ask);
        }
    }
}

impl Grants for Registered {
    fn inbox(&self) -> Option<&str> {
        let hears = self.inbox.state.lock().hears(&self.channel);
        hears.then_some(&*self.channel)
    }

    /// The server doesn't count this inbox: it has another connection, or has become a replica.
    fn distrust(&self) {
        let state = self.inbox.state.lock();
        if let (Some(closer), true) = (&state.closer, state.hears(&self.channel)) {
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
        self.inbox.state.lock().waiting.remove(&self.owner);
    }
}

fn text(part: Option<&Value>) -> &str {
    match part {
        Some(Value::BulkString(bytes)) => str::from_utf8(bytes).unwrap_or_default(),
        _ => "",
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
        let registered = inbox().register(owner, "crosslock:inbox:id".into());
        registered.inbox.understand(value).ok()?;
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
