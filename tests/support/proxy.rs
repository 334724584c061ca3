//! A TCP proxy between a client and a server, which breaks what passes through it.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::frames::Protocol;
use super::lanes::Lanes;
use super::relay::{self, Relay};

/// Far more than anything here takes, even on a loaded machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// What a [`Proxy`] does to the connections through it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// Passes everything.
    #[default]
    None,
    /// Closes open connections, and new ones as soon as they are accepted.
    Refuse,
    /// Accepts and reads, but forwards and answers nothing, not even that an end has closed its connection.
    BlackHole,
}

/// A proxy for one server; dropping it closes all its connections.
///
/// TCP doesn't lose bytes in the middle of a stream. So a connection of which the proxy swallowed some never passes a
/// reply again: it stays silent until the next [`Proxy::set`], which closes it.
#[derive(Debug)]
pub struct Proxy {
    addr: SocketAddr,
    pub(super) shared: Arc<Shared>,
    lanes: Arc<Lanes>,
    acceptor: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a proxy for the Redis server at `upstream`.
    pub fn start(upstream: SocketAddr) -> Self {
        Self::speaking(Protocol::Redis, upstream)
    }

    /// Starts a proxy for a server of this protocol.
    pub fn speaking(protocol: Protocol, upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("bind a free port");
        let addr = listener.local_addr().expect("ask for the port");
        let lanes = Arc::new(Lanes::new(protocol, upstream));
        let acceptor = spawn("proxy-accept", {
            let lanes = Arc::clone(&lanes);
            move || accept(&listener, &lanes)
        });
        Self {
            addr,
            shared: lanes.clients(),
            lanes,
            acceptor: Some(acceptor),
        }
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub fn url(&self) -> String {
        format!("redis://{}/", self.addr)
    }

    /// Sends new connections to another server: those already open stay where they are.
    pub fn point_to(&self, upstream: SocketAddr) {
        self.shared.point_to(upstream);
    }

    /// Does `fault` from now on, also to the connections already open.
    ///
    /// Takes back a [`Proxy::lose_next_reply`] that hasn't met its request. Connections from another address than
    /// 127.0.0.1 aren't touched.
    pub fn set(&self, fault: Fault) {
        self.shared.set(fault);
    }

    /// Swallows the reply to the next request that contains `matching`, in any case, and closes the connection then if
    /// `then_close`. The request is executed; other connections aren't touched.
    pub fn lose_next_reply(&self, matching: &str, then_close: bool) {
        let matching = matching.as_bytes().to_vec();
        assert!(!matching.is_empty(), "every request would match");
        self.shared.state().lose_next = Some((matching, then_close));
    }

    /// Like [`Proxy::lose_next_reply`], but the client gets these words, and then the connection is closed.
    pub fn replace_next_reply(&self, matching: &str, words: &'static str) {
        self.lose_next_reply(matching, true);
        self.shared.state().instead = Some(words);
    }

    /// Builds until what it builds asks through this proxy: clients begin at a random host of their URL.
    pub fn asked_first_by<T>(&self, build: impl Fn() -> T) -> T {
        loop {
            let before = self.requests();
            let built = build();
            if self.requests() > before {
                return built;
            }
        }
    }

    /// Returns how many requests clients have sent, also those that weren't forwarded.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(SeqCst)
    }

    /// Returns how many replies the server has sent that were swallowed: their requests have been executed.
    pub fn lost_replies(&self) -> u64 {
        self.shared.lost_replies.load(SeqCst)
    }

    /// Waits until bytes of an open connection were swallowed: the next [`Proxy::set`] closes it.
    #[track_caller]
    pub fn await_swallowed(&self) {
        let is_torn = || {
            self.shared
                .state()
                .open_relays()
                .any(|relay| relay.is_torn())
        };
        super::wait_until("bytes to be swallowed", PATIENCE, is_torn);
    }

    pub fn accepted(&self) -> u64 {
        self.shared.accepted.load(SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.lanes.stop();
        // Wakes the acceptor.
        let _ = TcpStream::connect_timeout(&self.addr, Duration::from_secs(1));
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

/// What the threads of a proxy share.
#[derive(Debug)]
pub(super) struct Shared {
    upstream: Arc<Mutex<SocketAddr>>,
    pub(super) protocol: Protocol,
    state: Mutex<State>,
    /// Notified when `state` has changed or a relay was closed.
    pub(super) changed: Condvar,
    pub(super) requests: AtomicU64,
    pub(super) lost_replies: AtomicU64,
    accepted: AtomicU64,
}

#[derive(Debug, Default)]
pub(super) struct State {
    fault: Fault,
    stopping: bool,
    lose_next: Option<(Vec<u8>, bool)>,
    pub(super) hold: Hold,
    /// What a client gets in place of the next reply that is lost.
    instead: Option<&'static str>,
    relays: Vec<Weak<Relay>>,
}

/// What becomes of a request that is to be late.
#[derive(Debug, Default)]
pub(super) enum Hold {
    #[default]
    Nothing,
    /// The next one that contains these bytes.
    Next(Vec<u8>),
    Held,
    /// The next one that is such, whose connection is closed.
    NextSuch(fn(&str) -> bool),
    Cut(Vec<u8>),
}

impl Shared {
    pub(super) fn upstream(&self) -> SocketAddr {
        *self.upstream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn new(protocol: Protocol, upstream: SocketAddr) -> Self {
        Self::with(Arc::new(Mutex::new(upstream)), protocol)
    }

    /// The same for others, to the same server.
    pub(super) fn raw(&self) -> Self {
        Self::with(Arc::clone(&self.upstream), Protocol::Raw)
    }

    fn with(upstream: Arc<Mutex<SocketAddr>>, protocol: Protocol) -> Self {
        Self {
            upstream,
            protocol,
            state: Mutex::default(),
            changed: Condvar::new(),
            requests: AtomicU64::new(0),
            lost_replies: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
        }
    }

    fn point_to(&self, upstream: SocketAddr) {
        *self.upstream.lock().unwrap_or_else(PoisonError::into_inner) = upstream;
    }

    fn set(&self, fault: Fault) {
        let mut state = self.state();
        state.fault = fault;
        state.lose_next = None;
        state.open_relays().for_each(|relay| relay.meet(fault));
        self.changed.notify_all();
    }

    pub(super) fn fault(&self) -> Fault {
        self.state().fault
    }

    /// Makes `relay` known to [`Proxy::set`], and subject to what was set before.
    pub(super) fn register(&self, relay: &Arc<Relay>) {
        let mut state = self.state();
        state.relays.retain(|known| known.strong_count() > 0);
        state.relays.push(Arc::downgrade(relay));
        relay.meet(state.fault);
        if state.stopping {
            relay.close();
        }
    }

    /// Closes both connections of `relay` and wakes its other thread.
    pub(super) fn close(&self, relay: &Relay) {
        relay.close();
        // Under the lock, so that no thread is between looking and waiting.
        let _state = self.state();
        self.changed.notify_all();
    }

    /// Waits until `relay` is closed or the fault isn't `such` any more.
    pub(super) fn wait_while(&self, relay: &Relay, such: impl Fn(Fault) -> bool) {
        let mut state = self.state();
        while such(state.fault) && !relay.is_closed() {
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns whether the reply to the request that `matches` is to be lost, and if so, whether to close then.
    pub(super) fn lose_reply_to(&self, matches: impl Fn(&[u8]) -> bool) -> Option<bool> {
        let mut state = self.state();
        let hit = state.lose_next.take_if(|(word, _)| matches(word));
        hit.map(|(_, then_close)| then_close)
    }

    /// Waits, if the request that `matches` is to be late, until it may pass.
    pub(super) fn hold_back(&self, matches: impl Fn(&[u8]) -> bool) {
        let mut state = self.state();
        if !matches!(&state.hold, Hold::Next(word) if matches(word)) {
            return;
        }
        state.hold = Hold::Held;
        while matches!(state.hold, Hold::Held) && !state.stopping {
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns whether this request is to be cut off, and keeps it then.
    pub(super) fn cuts_off(&self, request: &[u8]) -> bool {
        let mut state = self.state();
        let is_it =
            matches!(state.hold, Hold::NextSuch(such) if such(&String::from_utf8_lossy(request)));
        if is_it {
            state.hold = Hold::Cut(request.to_vec());
        }
        is_it
    }

    pub(super) fn instead(&self) -> Option<&'static str> {
        self.state().instead.take()
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.state().stopping
    }

    pub(super) fn stop(&self) {
        let mut state = self.state();
        state.stopping = true;
        state.open_relays().for_each(|relay| relay.close());
        self.changed.notify_all();
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn open_relays(&self) -> impl Iterator<Item = Arc<Relay>> {
        self.relays.iter().filter_map(Weak::upgrade)
    }
}

fn accept(listener: &TcpListener, lanes: &Lanes) {
    let mut threads = Vec::new();
    for client in listener.incoming().flatten() {
        if lanes.clients().is_stopping() {
            break;
        }
        // One that has gone already is nobody's, and does no harm.
        let source = client
            .peer_addr()
            .map_or(Ipv4Addr::LOCALHOST.into(), |peer| peer.ip());
        let shared = lanes.of(source);
        shared.accepted.fetch_add(1, SeqCst);
        threads.retain(|thread: &JoinHandle<()>| !thread.is_finished());
        threads.push(spawn("proxy-relay", move || relay::run(&shared, client)));
    }
    for thread in threads {
        let _ = thread.join();
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    let thread = thread::Builder::new().name(name.into());
    thread.spawn(body).expect("start a thread")
}
