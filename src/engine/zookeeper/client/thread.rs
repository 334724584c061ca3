//! The thread of a session: it reads what servers send, beats, and connects anew.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{sync::Arc, time::Duration};

use super::shared::{News, Shared, State};
use super::watch::{Event, WatchEvent};
use super::wire::{AUTH_FAILED, EVENT_XID, NO_SASL, SESSION_EXPIRED, SESSION_MOVED, event, header};
use super::{failure::Failure, jute::Decoder, servers::Connection};
use crate::base::sys::{self, time};
use crate::base::{BootInstant, Deadline, Waits};
use crate::engine::net::{LASTING, RECONNECT};

/// What the thread waits at least, before it looks again whether it can beat.
const SHORTEST: Duration = Duration::from_millis(1);

/// Starts the thread, which serves `connection` first.
pub(super) fn start(shared: &Arc<Shared>, connection: Connection) -> std::io::Result<()> {
    const STACK: usize = 512 * 1024;
    let shared = shared.clone();
    sys::spawn_with_stack("crosslock-zk", STACK, move || run(&shared, connection))
}

fn run(shared: &Shared, connection: Connection) {
    let mut connection = Some(connection);
    let mut pauses = RECONNECT.waits();
    while let Some(current) = connection.take() {
        let began = time::now();
        // A panic must not end the thread on which all callers rely.
        let served = catch_unwind(AssertUnwindSafe(|| serve(shared, current)));
        let failure =
            served.unwrap_or_else(|_| Failure::Unreachable("the reading thread panicked".into()));
        if matches!(failure, Failure::Ended) || shared.is_left() {
            break;
        }
        let connected = catch_unwind(AssertUnwindSafe(|| {
            shared.disconnected(&failure.to_string());
            log_loss(shared, &failure);
            let has_lasted = time::since(began) >= LASTING;
            if has_lasted {
                pauses = RECONNECT.waits();
            }
            reconnect(shared, &mut pauses, !has_lasted)
        }));
        connection = connected.unwrap_or_default();
    }
    let expired = !shared.is_left();
    shared.end(expired);
    if expired {
        let endpoint = &shared.servers.address.shown;
        shared.teller.log(log::Level::Warn, || {
            format!(
                "the session at {endpoint} has ended, and this process has lost its locks there"
            )
        });
    }
}

fn log_loss(shared: &Shared, failure: &Failure) {
    let servers = &shared.servers;
    shared.teller.log(log::Level::Warn, || {
        let (shown, host) = (
            &servers.address.shown,
            servers.name(servers.rotation.first()),
        );
        format!("the connection to {shown} was lost, reconnecting: {host}: {failure}")
    });
}

/// Reads the connection until it fails, or the session has ended.
fn serve(shared: &Shared, mut connection: Connection) -> Failure {
    loop {
        if let Err(failure) = read(shared, &mut connection) {
            return failure;
        }
    }
}

/// Waits for what the server sends, but not longer than until there is something else to do.
fn read(shared: &Shared, connection: &mut Connection) -> Result<(), Failure> {
    if shared.closed.is_set() {
        return Err(Failure::Ended);
    }
    let plan = tend(shared)?;
    let Connection { reader, frames, .. } = connection;
    reader.set_deadline(&Deadline::after(plan.wait.max(SHORTEST)));
    let mut frame = frames.next(reader)?;
    // Looked at behind the read: this process may have been stopped while the answer came.
    if frame.is_none() && plan.is_silent {
        let text = format!("no answer for {:?}", shared.silence());
        return Err(Failure::Unreachable(text.into()));
    }
    while let Some(received) = frame {
        deliver(shared, &received)?;
        frame = frames.take()?;
    }
    Ok(())
}

/// What the thread does next.
struct Plan {
    /// Whether it beats now.
    beats: bool,
    /// How long it may wait for what the server sends.
    wait: Duration,
    /// Whether the server is left if it has sent nothing.
    is_silent: bool,
}

/// Beats if it is time.
fn tend(shared: &Shared) -> Result<Plan, Failure> {
    let now = shared.clock.now();
    let plan_now = || plan(shared, &shared.state.lock(), now);
    let plan = plan_now()?;
    if !plan.beats {
        return Ok(plan);
    }
    shared.send_beat();
    let listener = shared.state.lock().listener.clone();
    if let Some(tell) = listener {
        tell(News::Beat);
    }
    plan_now()
}

fn plan(shared: &Shared, state: &State, now: BootInstant) -> Result<Plan, Failure> {
    let left = shared.time_left_at(now, state);
    if left.is_zero() {
        return Err(Failure::Ended);
    }
    let silent_since = state
        .pending
        .front()
        .map(|first| first.sent.max(state.heard));
    let patience = silent_since.map(|since| since.plus(shared.silence()).since(now));
    let beat_in = (!state.is_beating).then(|| state.proof.next_beat().since(now));
    Ok(Plan {
        beats: beat_in.is_some_and(|beat_in| beat_in.is_zero()),
        wait: [patience, beat_in]
            .into_iter()
            .flatten()
            .fold(left, Duration::min),
        is_silent: patience.is_some_and(|patience| patience.is_zero()),
    })
}

/// Gives what the server sent to whom it is for.
fn deliver(shared: &Shared, frame: &[u8]) -> Result<(), Failure> {
    let mut record = Decoder::new(frame);
    let header = header(&mut record)?;
    let now = shared.clock.now();
    let mut state = shared.state.lock();
    state.heard = now;
    if header.xid == EVENT_XID {
        let Some((event, path)) = event(&mut record)? else {
            return Ok(());
        };
        let watches = state.watches.take(event, &path);
        drop(state);
        let told = match event {
            Event::Deleted => WatchEvent::Deleted,
            Event::Changed(_) => WatchEvent::Changed,
        };
        watches.iter().for_each(|one| one.tell(told));
        return Ok(());
    }
    match header.error {
        SESSION_EXPIRED => Err(Failure::Ended),
        SESSION_MOVED => Err(Failure::Unreachable(
            "the session has moved to another server".into(),
        )),
        AUTH_FAILED | NO_SASL => Err(Failure::Denied("the servers refuse this login".into())),
        _ => Ok(state.answer(header, &mut record, now)?),
    }
}

/// Connects to one host after the other, the one that failed last, as long as the session may live. `None`: it has
/// ended. There is a pause behind each round of all hosts, and in front of the first if that `is_early`.
fn reconnect(shared: &Shared, pauses: &mut Waits, mut is_early: bool) -> Option<Connection> {
    let rotation = &shared.servers.rotation;
    rotation.failed(rotation.first());
    let mut turns = shared.servers.turns();
    loop {
        if is_early {
            let pause = pauses.next().unwrap_or(RECONNECT.cap);
            Deadline::after(pause).or(&shared.closed).sleep(pause);
        }
        let left = shared.time_left();
        if left.is_zero() || shared.closed.is_set() {
            return None;
        }
        let (place, share) = turns.next(left);
        let deadline = Deadline::after(share).or(&shared.closed);
        match take_up(shared, place, &deadline) {
            Ok(connection) => {
                rotation.answered(place);
                return Some(connection);
            }
            Err(Failure::Ended) => return None,
            Err(failure) => {
                let text = || format!("still no connection: {failure}");
                shared.teller.log(log::Level::Debug, text);
            }
        }
        is_early = turns.is_round_over();
    }
}

/// Takes the session up on a new connection.
fn take_up(shared: &Shared, place: usize, deadline: &Deadline) -> Result<Connection, Failure> {
    let ours = shared.state.lock().handshake;
    let clock = &*shared.clock;
    let connection = shared.servers.connect(place, ours, clock, deadline)?;
    let response = &connection.response;
    // A server that was told of other bounds meanwhile would end it earlier than this one reckons.
    if response.session != ours.session || response.timeout < ours.timeout {
        return Err(Failure::Ended);
    }
    shared.connected(&connection);
    Ok(connection)
}
