//! A session, as its callers and its thread share it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use std::{collections::VecDeque, time::Duration};

use super::failure::{Code, Failure};
use super::jute::{Decoder, Malformed};
use super::ops::{Refused, Reply};
use super::pending::{Item, Pending, Purpose};
use super::proof::Proof;
use super::servers::{Connection, Servers};
use super::watch::{WatchEvent, Watches};
use super::wire::{Handshake, Header, number};
use crate::base::sys::sync::{Condvar, Mutex, MutexGuard};
use crate::base::timed_mutex::{TimedGuard, TimedMutex};
use crate::base::{BootInstant, Cancel, Clock, Deadline, sys::time};
use crate::engine::net::{CANCEL_LATENESS, socket::Closer, stream::WriteHalf};
use crate::engine::{Failed, zookeeper::teller::Teller};

/// A session, as its callers and its thread share it. A lock that stands below another is never held when that is
/// taken.
pub(super) struct Shared {
    pub(super) servers: Servers,
    pub(super) timeout: Duration,
    pub(super) tick: Duration,
    pub(super) clock: Arc<dyn Clock>,
    /// Nobody has the session any more, or it was closed.
    pub(super) closed: Cancel,
    /// It is being closed: the server hangs up, and nothing is made anew.
    pub(super) is_closing: AtomicBool,
    /// Who holds it sends. What is sent is enlisted as pending under it, so that the order is the same. `None`
    /// without a connection.
    writer: TimedMutex<Option<WriteHalf>>,
    pub(super) state: Mutex<State>,
    /// The session's thread doesn't log by itself.
    pub(super) teller: Teller,
    /// The phase has changed.
    changed: Condvar,
}

impl Shared {
    /// A session that was made by this connection.
    pub(super) fn new(
        servers: Servers,
        connection: &Connection,
        (timeout, tick): (Duration, Duration),
        clock: Arc<dyn Clock>,
    ) -> Self {
        let proof = Proof::new(tick, connection.sent, connection.answered);
        let phase = Phase::Connected(connection.reader.closer());
        Shared {
            servers,
            timeout,
            tick,
            clock,
            closed: Cancel::default(),
            is_closing: AtomicBool::new(false),
            writer: TimedMutex::from(Some(connection.reader.writer())),
            state: Mutex::new(State::new(
                connection.response,
                phase,
                proof,
                connection.answered,
            )),
            teller: Teller::default(),
            changed: Condvar::new(),
        }
    }

    /// Whether nobody has the session any more, or it is being closed.
    pub(super) fn is_left(&self) -> bool {
        self.is_closing.load(Ordering::Relaxed) || self.closed.is_set()
    }

    /// A server that was silent for as long, and has something to answer, is left. Then there is time for another one.
    pub(super) fn silence(&self) -> Duration {
        self.timeout / 4
    }

    /// Sends all in one write, as soon as there is a connection.
    pub(super) fn send(
        &self,
        items: Vec<Item>,
        deadline: &Deadline,
    ) -> Result<(), Failed<Failure>> {
        loop {
            let writer = self.lock_writer(deadline).map_err(Failed::unsent)?;
            let state = self.state.lock();
            let why = match &state.phase {
                Phase::Ended { .. } => return Err(Failed::unsent(Failure::Ended)),
                Phase::Connected(_) => return self.write(writer, state, items, deadline),
                Phase::Disconnected(why) => why.clone(),
            };
            // The thread needs it to connect.
            drop(writer);
            if deadline.is_over() {
                return Err(Failed::unsent(Failure::Unreachable(why.into())));
            }
            drop(self.changed.wait_for(state, slice(deadline)));
        }
    }

    /// Sends a beat, unless others are sending.
    pub(super) fn send_beat(&self) {
        let Some(writer) = self.writer.try_lock_until(time::now()) else {
            return;
        };
        let state = self.state.lock();
        if matches!(state.phase, Phase::Connected(_)) {
            // A failure closes the connection, whose reader finds that.
            let _ = self.write(writer, state, vec![Item::beat()], &Deadline::NEVER);
        }
    }

    fn lock_writer(
        &self,
        deadline: &Deadline,
    ) -> Result<TimedGuard<'_, Option<WriteHalf>>, Failure> {
        if let Some(writer) = self.writer.try_lock_until(time::now()) {
            return Ok(writer);
        }
        while !deadline.is_over() {
            if let Some(writer) = self.writer.try_lock_until(time::now() + slice(deadline)) {
                return Ok(writer);
            }
        }
        Err(Failure::TimedOut)
    }

    fn write(
        &self,
        mut writer: TimedGuard<'_, Option<WriteHalf>>,
        mut state: MutexGuard<'_, State>,
        items: Vec<Item>,
        deadline: &Deadline,
    ) -> Result<(), Failed<Failure>> {
        let bytes = state.enlist(items, self.clock.now());
        drop(state);
        let Some(half) = writer.as_mut() else {
            return Ok(());
        };
        half.set_deadline(&deadline.within(self.silence()));
        half.write_all(&bytes).map_err(|e| {
            // A part may have been sent, and what is sent next would be its rest.
            half.closer().close();
            Failed::sent(e.into())
        })
    }

    /// Serves from now on by a new connection, on which the session was taken up.
    pub(super) fn connected(&self, connection: &Connection) {
        // A caller that sends on the old connection soon fails: it is closed.
        let Ok(mut writer) = self.lock_writer(&Deadline::NEVER) else {
            return;
        };
        *writer = Some(connection.reader.writer());
        let mut state = self.state.lock();
        let Connection { sent, answered, .. } = *connection;
        state.proof.taken_up(sent, answered);
        state.heard = answered;
        if !matches!(state.phase, Phase::Disconnected(_)) {
            return;
        }
        state.phase = Phase::Connected(connection.reader.closer());
        self.changed.notify_all();
        // Nothing counts before it. A failure closes the connection, whose reader finds that.
        let first = Item::confirmation(self.servers.root().to_owned());
        let _ = self.write(writer, state, vec![first], &Deadline::NEVER);
    }

    /// The connection is lost: what is pending has no answer, and nobody is told of events.
    pub(super) fn disconnected(&self, why: &str) {
        self.leave(Phase::Disconnected(why.to_owned()), || {
            Failure::Unreachable(why.to_owned().into())
        });
    }

    /// The session has ended.
    pub(super) fn end(&self, expired: bool) {
        self.closed.set();
        let listener = self.leave(Phase::Ended { expired }, || Failure::Ended);
        if let Some(tell) = listener.filter(|_| expired) {
            tell(News::Expired);
        }
    }

    /// Changes to a phase without a connection. Returns the listener that is to be told of the end.
    fn leave(&self, phase: Phase, failure: impl Fn() -> Failure) -> Option<Listener> {
        let mut state = self.state.lock();
        match &state.phase {
            Phase::Ended { .. } => return None,
            Phase::Connected(closer) => closer.close(),
            Phase::Disconnected(_) => {}
        }
        let ends = matches!(phase, Phase::Ended { .. });
        state.phase = phase;
        state.is_beating = false;
        let pending = std::mem::take(&mut state.pending);
        let watches = state.watches.take_all();
        let listener = state.listener.take_if(|_| ends);
        self.changed.notify_all();
        drop(state);
        pending.iter().for_each(|one| one.fail(failure()));
        watches
            .iter()
            .for_each(|one| one.tell(WatchEvent::ConnectionLost));
        listener
    }

    /// What is left of the session by our clock, from what is proven.
    pub(super) fn time_left(&self) -> Duration {
        self.time_left_at(self.clock.now(), &self.state.lock())
    }

    pub(super) fn time_left_at(&self, now: BootInstant, state: &State) -> Duration {
        state.proof.since().plus(self.timeout).since(now)
    }
}

/// How long to sleep before looking at a deadline again: a cancel wakes nobody here.
fn slice(deadline: &Deadline) -> Duration {
    let most = match deadline.cancel() {
        Some(_) => CANCEL_LATENESS,
        None => Duration::from_secs(1),
    };
    deadline.remaining().min(most)
}

/// What is guarded by one lock.
pub(super) struct State {
    pub(super) phase: Phase,
    /// With what the next connection begins.
    pub(super) handshake: Handshake,
    last_xid: i32,
    /// What was sent on this connection and isn't answered, in the order of the answers.
    pub(super) pending: VecDeque<Pending>,
    /// Whether a beat is among these.
    pub(super) is_beating: bool,
    /// When something came from the server last.
    pub(super) heard: BootInstant,
    pub(super) watches: Watches,
    pub(super) proof: Proof,
    /// Called without any lock.
    pub(super) listener: Option<Listener>,
}

pub(super) type Listener = Arc<dyn Fn(News) + Send + Sync>;

/// What the thread of a session tells.
#[derive(Clone, Copy, Debug)]
pub(crate) enum News {
    /// About once a tick, while there is a connection.
    Beat,
    /// Once: the session has ended, and wasn't closed.
    Expired,
}

/// The table in the module's comment says how it changes.
#[derive(Debug)]
pub(super) enum Phase {
    Connected(Closer),
    /// Why, for those who wait for a connection.
    Disconnected(String),
    Ended {
        expired: bool,
    },
}

impl State {
    /// Of a session that is new.
    pub(super) fn new(
        handshake: Handshake,
        phase: Phase,
        proof: Proof,
        heard: BootInstant,
    ) -> Self {
        State {
            phase,
            handshake,
            last_xid: 0,
            pending: VecDeque::new(),
            is_beating: false,
            heard,
            watches: Watches::default(),
            proof,
            listener: None,
        }
    }

    /// Numbers what is sent next, and returns its bytes. Whoever sends them holds the lock of the connection's
    /// writer, so that they are sent in this order.
    pub(super) fn enlist(&mut self, items: Vec<Item>, sent: BootInstant) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(items.iter().map(|item| item.frame.len()).sum());
        for Item { mut frame, request } in items {
            self.last_xid = self.last_xid.checked_add(1).unwrap_or(1);
            let xid = self.last_xid;
            number(&mut frame, xid);
            bytes.extend(frame);
            self.is_beating |= matches!(request.purpose, Purpose::Beat);
            self.pending.push_back(Pending { xid, sent, request });
        }
        bytes
    }

    /// Takes an answer, which is to the first of what is pending. After an error that stays pending.
    pub(super) fn answer(
        &mut self,
        header: Header,
        record: &mut Decoder<'_>,
        now: BootInstant,
    ) -> Result<(), Malformed> {
        const TO_NOTHING: Malformed = Malformed("an answer without a request");
        let first = self.pending.front().filter(|first| first.xid == header.xid);
        let first = first.ok_or(TO_NOTHING)?;
        self.handshake.last_zxid = self.handshake.last_zxid.max(header.zxid);
        let answer = match header.error {
            0 => Ok(first.request.expected.decode(record, header.zxid)?),
            error => Err(Code(error)),
        };
        let Pending { sent, request, .. } = self.pending.pop_front().ok_or(TO_NOTHING)?;
        if answer.is_ok() && request.is_sync {
            self.proof.synced(sent, now);
        }
        let is_absent = matches!(answer, Err(Code::NO_NODE)) && request.watches_absent;
        if let Some((path, watched, listening)) = request.watch
            && (answer.is_ok() || is_absent)
        {
            self.watches.add(path, watched, listening);
        }
        match request.purpose {
            Purpose::Beat => self.is_beating = false,
            Purpose::Confirmation => {
                if answer.is_ok_and(|reply| is_confirmed(&reply)) {
                    self.proof.committed();
                }
            }
            Purpose::Call(slot) => slot.answer(answer),
        }
        Ok(())
    }
}

/// Whether a transaction was carried out. One that is refused is a transaction, too, but for that of a session that
/// has ended.
fn is_confirmed(reply: &Reply) -> bool {
    match reply {
        Reply::Multi { done: Ok(_), .. } => true,
        Reply::Multi {
            done: Err(Refused { code, .. }),
            ..
        } => matches!(*code, Code::NO_NODE | Code::NO_AUTH),
        _ => false,
    }
}
