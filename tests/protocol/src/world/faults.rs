//! What may go wrong, so many times.

use super::{Action, Body, Phase, World};
use crate::judge::Lost;
use crate::server::{Ear, Key};
use crate::setup::Setup;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    // A packet: an index into what is on its way
    LoseRequest,
    /// It arrives at any time.
    SlowRequest,
    /// It arrives twice: now, and at any time.
    RepeatRequest,
    LoseReply,
    SlowReply,
    LoseGrant,
    SlowGrant,
    // A client
    /// It stands still, for as long as it likes.
    Stop,
    /// It dies, and its connections with it.
    Crash,
    /// Its host dies: the server doesn't know.
    CrashHost,
    /// The connection on which it hears is gone.
    CloseInbox,
    /// The same, and neither side knows.
    HalfOpenInbox,
    // The server
    /// It restarts, and knows all that it knew.
    Restart,
    /// It restarts, and knows nothing.
    Forget,
    /// It is replaced by a replica that lags.
    FailOver,
    // One name
    DeleteLock,
    DeleteCounter,
    DeleteQueue,
    DeleteReaders,
    DeleteWaiters,
    DeleteShares,
}

const DELETIONS: [(Fault, Key); 6] = [
    (Fault::DeleteLock, Key::Lock),
    (Fault::DeleteCounter, Key::Counter),
    (Fault::DeleteQueue, Key::Queue),
    (Fault::DeleteReaders, Key::Readers),
    (Fault::DeleteWaiters, Key::Waiters),
    (Fault::DeleteShares, Key::Shares),
];

impl World {
    pub(super) fn fault_actions(&self, setup: &Setup, actions: &mut Vec<Action>) {
        let mut may = |fault: Fault, at: usize| {
            if setup.may(fault) {
                actions.push(Action::Fault(fault, at));
            }
        };
        self.packet_faults(&mut may);
        self.client_faults(&mut may);
        may(Fault::Restart, 0);
        may(Fault::Forget, 0);
        if self.replica.is_some() {
            may(Fault::FailOver, 0);
        }
        for (fault, key) in DELETIONS {
            for (at, name) in self.names.iter().enumerate() {
                if name.has_key(key) {
                    may(fault, at);
                }
            }
        }
    }

    fn packet_faults(&self, may: &mut impl FnMut(Fault, usize)) {
        for (at, packet) in self.wire.iter().enumerate() {
            let (lose, slow) = match packet.body {
                Body::Request(_) => (Fault::LoseRequest, Fault::SlowRequest),
                Body::Reply(_) => (Fault::LoseReply, Fault::SlowReply),
                Body::Grant(_) => (Fault::LoseGrant, Fault::SlowGrant),
                Body::Revoked(_) => continue,
            };
            if packet.slow {
                continue;
            }
            may(lose, at);
            may(slow, at);
            if let Body::Request(_) = packet.body {
                may(Fault::RepeatRequest, at);
            }
        }
    }

    fn client_faults(&self, may: &mut impl FnMut(Fault, usize)) {
        for (at, client) in self.clients.iter().enumerate() {
            if client.is_dead() || client.phase == Phase::Idle {
                continue;
            }
            may(Fault::Crash, at);
            may(Fault::CrashHost, at);
            if !client.stopped {
                may(Fault::Stop, at);
            }
            if self.ears[at] == Ear::Hears {
                may(Fault::CloseInbox, at);
                may(Fault::HalfOpenInbox, at);
            }
        }
    }

    pub(super) fn suffer(&mut self, setup: &Setup, fault: Fault, at: usize) {
        self.faults -= 1;
        self.judge.begin_fault();
        match fault {
            Fault::LoseRequest | Fault::LoseReply | Fault::LoseGrant => {
                self.wire.remove(at);
            }
            Fault::SlowRequest | Fault::SlowReply | Fault::SlowGrant => {
                self.wire[at].slow = true;
                self.wire.sort_unstable();
            }
            Fault::RepeatRequest => self.deliver(setup, at, true),
            Fault::Stop => self.clients[at].stopped = true,
            Fault::Crash => self.crash(setup, at, Ear::Gone),
            Fault::CrashHost => self.crash(setup, at, Ear::HalfOpen),
            Fault::CloseInbox => self.close_inbox(setup, at),
            Fault::HalfOpenInbox => self.deafen(at, Ear::HalfOpen),
            Fault::Restart => self.restart(setup),
            Fault::Forget => {
                self.restart(setup);
                self.judge_forgetting(setup, 0..self.names.len(), Lost::ALL);
                self.names
                    .iter_mut()
                    .for_each(|name| *name = Default::default());
            }
            Fault::FailOver => {
                self.restart(setup);
                self.judge_forgetting(setup, 0..self.names.len(), Lost::ALL);
                if let Some(replica) = self.replica.take() {
                    self.judge_revival(&replica);
                    self.names = *replica;
                }
            }
            deletion => {
                let key = DELETIONS.iter().find(|(fault, _)| *fault == deletion);
                self.delete(setup, at, key.map_or(Key::Lock, |(_, key)| *key));
            }
        }
    }

    fn delete(&mut self, setup: &Setup, at: usize, key: Key) {
        let lost = Lost {
            lease: matches!(key, Key::Lock | Key::Shares),
            counter: key == Key::Counter,
            line: matches!(key, Key::Queue | Key::Readers | Key::Waiters),
        };
        self.judge_forgetting(setup, at..at + 1, lost);
        self.names[at].delete(key);
        if lost.counter {
            self.pass();
        }
    }

    fn crash(&mut self, setup: &Setup, at: usize, ear: Ear) {
        self.close(setup, at);
        self.deafen(at, ear);
        self.wire
            .retain(|packet| usize::from(packet.client) != at || is_request(&packet.body));
        let client = &mut self.clients[at];
        (client.phase, client.stopped) = (Phase::Dead, false);
        (client.seen, client.news) = (None, None);
    }

    /// Its waiter is told to ask.
    fn close_inbox(&mut self, setup: &Setup, at: usize) {
        self.deafen(at, Ear::Gone);
        if !self.clients[at].is_dead() {
            self.clients[at].news = Some(super::News::Ask);
            self.look_at_news(setup, at);
        }
    }

    /// All connections are closed, with what was on them.
    fn restart(&mut self, setup: &Setup) {
        self.wire
            .retain(|packet| packet.slow && is_request(&packet.body));
        for packet in &mut self.wire {
            packet.orphan = true;
        }
        for at in 0..self.clients.len() {
            self.close_inbox(setup, at);
        }
        self.pass();
    }
}

fn is_request(body: &Body) -> bool {
    matches!(body, Body::Request(_))
}
