//! Since when the servers are known to keep a session.

use std::time::Duration;

use crate::base::BootInstant;

/// Since when the servers are known to keep a session, from what was asked and answered.
///
/// A session is touched by each request: by the server that has the connection, and by the leader when that server next
/// answers one of the leader's own pings, with all the touches since the last one. The leader pings every half tick. An
/// answer to a request proves nothing therefore: a server that is cut off from its leader goes on answering reads.
///
/// A *beat* is a `sync` that was answered, which takes the leader and comes to it behind the touches that were passed
/// on before. Beats are counted that are three quarters of a tick apart, from the answer to the one to the sending of
/// the next. Three in a row prove that the leader knows of the touch by the first: it was passed on meanwhile, also
/// when the leader was stopped for a while between two of them. Two would not: such a leader may answer before it
/// pings. So what is proven is older than the last answer by one and a half ticks at least. That is also by how much
/// longer a leader that has lost its followers may take itself for one than they do: each stops after the same
/// silence, but may have begun to count half a tick later, and looks once a tick.
///
/// What a connection begins with is checked, and touched, by the leader itself. A new session is a transaction, so it
/// counts at once. To take up an old one isn't: a leader that was stopped and replaced does it, too, when it goes on,
/// and answers a `sync` as well, until it looks next. So nothing counts on that connection before a transaction,
/// which needs a majority, was carried out there: from then on taking it up counts.
#[derive(Clone, Debug)]
pub(super) struct Proof {
    since: BootInstant,
    /// When the session was taken up on this connection, if no transaction was carried out there yet.
    unconfirmed: Option<BootInstant>,
    /// From the answer to a beat to the sending of the next.
    apart: Duration,
    /// The beat before the last, and the last, on this connection.
    last: [Option<Beat>; 2],
}

#[derive(Clone, Copy, Debug)]
struct Beat {
    sent: BootInstant,
    answered: BootInstant,
}

impl Proof {
    /// Of a session that was made by a request that was sent then.
    pub(super) fn new(tick: Duration, sent: BootInstant, answered: BootInstant) -> Self {
        Proof {
            since: sent,
            unconfirmed: None,
            apart: tick * 3 / 4,
            last: [None, Some(Beat { sent, answered })],
        }
    }

    pub(super) fn since(&self) -> BootInstant {
        self.since
    }

    /// A connection took the session up.
    pub(super) fn taken_up(&mut self, sent: BootInstant, answered: BootInstant) {
        self.unconfirmed = Some(sent);
        self.last = [None, Some(Beat { sent, answered })];
    }

    /// A transaction was carried out that was sent on this connection: no other leader had taken over when it took
    /// the session up.
    pub(super) fn committed(&mut self) {
        if let Some(taken_up) = self.unconfirmed.take() {
            self.since = self.since.max(taken_up);
        }
    }

    /// A `sync` was answered.
    pub(super) fn synced(&mut self, sent: BootInstant, answered: BootInstant) {
        if sent < self.next_beat() {
            return;
        }
        let [first, second] = self.last;
        if let Some(first) = first
            && self.unconfirmed.is_none()
        {
            self.since = self.since.max(first.sent);
        }
        self.last = [second, Some(Beat { sent, answered })];
    }

    /// A beat that is sent earlier isn't counted.
    pub(super) fn next_beat(&self) -> BootInstant {
        let last = self.last[1].map_or(BootInstant::START, |last| last.answered);
        last.plus(self.apart)
    }
}

#[cfg(test)]
mod tests;
