//! One connection through a proxy: a thread for the requests, one for the replies.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::frames::{Frame, Frames};
use super::proxy::{Fault, Shared};

const CHUNK: usize = 16 * 1024;

/// The two sockets of a connection, and what became of it.
#[derive(Debug)]
pub(super) struct Relay {
    client: TcpStream,
    /// `None` in a black hole, where the server isn't to see the client.
    server: Option<TcpStream>,
    closed: AtomicBool,
    /// Bytes of it were swallowed.
    torn: AtomicBool,
    doomed: Mutex<Option<Doomed>>,
}

/// The reply from which on a relay swallows everything.
#[derive(Clone, Copy, Debug)]
struct Doomed {
    index: usize,
    then_close: bool,
}

impl Relay {
    pub(super) fn meet(&self, fault: Fault) {
        match fault {
            Fault::BlackHole => {}
            Fault::Refuse => self.close(),
            _ if self.is_torn() || self.server.is_none() => self.close(),
            _ => {}
        }
    }

    /// Closes both connections; threads that read or write them return.
    pub(super) fn close(&self) {
        self.closed.store(true, SeqCst);
        for socket in [Some(&self.client), self.server.as_ref()]
            .into_iter()
            .flatten()
        {
            // Fails if the peer was faster.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(SeqCst)
    }

    pub(super) fn is_torn(&self) -> bool {
        self.torn.load(SeqCst)
    }

    fn tear(&self) {
        self.torn.store(true, SeqCst);
    }

    fn doom(&self, doomed: Doomed) {
        *self.doomed.lock().expect("no panics") = Some(doomed);
    }

    fn doomed(&self) -> Option<Doomed> {
        *self.doomed.lock().expect("no panics")
    }
}

pub(super) fn run(shared: &Shared, client: TcpStream) {
    let Some(relay) = connect(shared, client) else {
        return;
    };
    shared.register(&relay);
    thread::scope(|scope| {
        let replies = thread::Builder::new().name("proxy-relay".into());
        let body = || Way::new(shared, &relay).replies();
        replies.spawn_scoped(scope, body).expect("start a thread");
        Way::new(shared, &relay).requests();
    });
}

fn connect(shared: &Shared, client: TcpStream) -> Option<Arc<Relay>> {
    let server = match shared.fault() {
        Fault::Refuse => return None,
        Fault::BlackHole => None,
        _ => Some(TcpStream::connect_timeout(&shared.upstream(), Duration::from_secs(1)).ok()?),
    };
    for socket in [Some(&client), server.as_ref()].into_iter().flatten() {
        socket.set_nodelay(true).ok()?;
    }
    Some(Arc::new(Relay {
        client,
        server,
        closed: AtomicBool::new(false),
        torn: AtomicBool::new(false),
        doomed: Mutex::new(None),
    }))
}

/// One direction.
struct Way<'a> {
    shared: &'a Shared,
    relay: &'a Relay,
    frames: Frames,
    /// How many requests have passed, or replies.
    count: usize,
}

impl<'a> Way<'a> {
    fn new(shared: &'a Shared, relay: &'a Relay) -> Self {
        Self {
            shared,
            relay,
            frames: Frames::of(shared.protocol),
            count: 0,
        }
    }

    /// From client to server.
    fn requests(mut self) {
        // An error is an end as well: whoever is left sees the connection closed.
        let _ = each_chunk(&self.relay.client, |chunk| {
            Ok(self.look_at(chunk) && self.forward(chunk)?)
        });
        let hidden = |fault| fault == Fault::BlackHole && self.relay.server.is_some();
        self.shared.wait_while(self.relay, hidden);
        self.shared.close(self.relay);
    }

    /// From server to client.
    fn replies(mut self) {
        let Some(server) = &self.relay.server else {
            return;
        };
        let _ = each_chunk(server, |chunk| self.deliver(chunk));
        let is_kept = || self.relay.doomed().is_some_and(|reply| !reply.then_close);
        let silent = |fault| fault == Fault::BlackHole || self.relay.is_torn() && is_kept();
        self.shared.wait_while(self.relay, silent);
        self.shared.close(self.relay);
    }

    /// Counts the requests, dooms a reply and holds back what is to be late, all before the server can have answered;
    /// returns whether to go on.
    fn look_at(&mut self, chunk: &[u8]) -> bool {
        let frames = self.frames.push(chunk);
        for frame in &frames {
            self.shared.hold_back(|word| frame.contains(word));
            if self.shared.cuts_off(&frame.bytes) {
                return false;
            }
        }
        for frame in frames {
            let hit = self.shared.lose_reply_to(|word| frame.contains(word));
            if let Some(then_close) = hit {
                let index = self.count;
                self.relay.doom(Doomed { index, then_close });
            }
            self.count += 1;
            self.shared.requests.fetch_add(1, SeqCst);
        }
        true
    }

    fn forward(&self, chunk: &[u8]) -> io::Result<bool> {
        match (&self.relay.server, self.shared.fault()) {
            (None, _) | (_, Fault::BlackHole) => self.relay.tear(),
            (Some(server), _) => (&mut &*server).write_all(chunk)?,
        }
        Ok(true)
    }

    /// Passes a chunk, up to a doomed reply; returns whether to go on.
    fn deliver(&mut self, chunk: &[u8]) -> io::Result<bool> {
        let mut frames = self.frames.push(chunk);
        frames.retain(|frame| !frame.is_push());
        let first = self.count;
        self.count += frames.len();
        let Some(doomed) = self.relay.doomed() else {
            return self.send(chunk, frames.len());
        };
        let cut = start_of(doomed.index, first, &frames).unwrap_or(chunk.len());
        let before = doomed.index.saturating_sub(first).min(frames.len());
        if cut > 0 && !self.send(&chunk[..cut], before)? {
            return Ok(false);
        }
        if cut < chunk.len() {
            self.relay.tear();
        }
        if first <= doomed.index && doomed.index < self.count {
            self.shared.lost_replies.fetch_add(1, SeqCst);
            if let Some(words) = self.shared.instead() {
                (&self.relay.client).write_all(words.as_bytes())?;
            }
            return Ok(!doomed.then_close);
        }
        Ok(true)
    }

    /// Passes bytes that complete so many replies, as the fault allows; returns whether to go on.
    fn send(&self, bytes: &[u8], replies: usize) -> io::Result<bool> {
        if self.relay.is_closed() {
            return Ok(false);
        }
        if self.shared.fault() == Fault::BlackHole {
            self.relay.tear();
            let lost = &self.shared.lost_replies;
            lost.fetch_add(replies as u64, SeqCst);
        } else {
            (&self.relay.client).write_all(bytes)?;
        }
        Ok(true)
    }
}

/// Returns where the reply `index` starts in a chunk whose first reply is `first`, if it does or did before.
fn start_of(index: usize, first: usize, frames: &[Frame]) -> Option<usize> {
    match index.saturating_sub(first) {
        0 => Some(0),
        skipped => frames.get(skipped - 1).map(|frame| frame.end),
    }
}

fn each_chunk(
    mut socket: &TcpStream,
    mut handle: impl FnMut(&[u8]) -> io::Result<bool>,
) -> io::Result<()> {
    let mut chunk = [0; CHUNK];
    loop {
        let len = socket.read(&mut chunk)?;
        if len == 0 || !handle(&chunk[..len])? {
            return Ok(());
        }
    }
}
