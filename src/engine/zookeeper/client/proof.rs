//! Since when the servers are known to keep a session.
//!
//! A session is touched by each request: by the server that has the connection, and by the leader when that server next
//! answers one of the leader's own pings, with all the touches since the last one. The leader pings every half tick. An
//! answer to a request proves nothing therefore: a server that is cut off from its leader goes on answering reads.
//!
//! A *beat* is a `sync` that was answered, which takes the leader and comes to it behind the touches that were passed on
//! before. Beats are counted that are three quarters of a tick apart, from the answer to the one to the sending of the
//! next. Three in a row prove that the leader knows of the touch by the first: it was passed on meanwhile, also when the
//! leader was stopped for a while between two of them. Two would not: such a leader may answer before it pings. So what is
//! proven is older than the last answer by one and a half ticks at least. That is also by how much longer a leader that has
//! lost its followers may take itself for one than they do: each stops after the same silence, but may have begun to count
//! half a tick later, and looks once a tick.
//!
//! What a connection begins with is checked, and touched, by the leader itself. A new session is a transaction, so it
//! counts at once. To take up an old one isn't: a leader that was stopped and replaced does it, too, when it goes on, and
//! answers a `sync` as well, until it looks next. So nothing counts on that connection before a transaction, which needs a
//! majority, was carried out there: from then on taking it up counts.

use std::time::Duration;

use crate::base::clock::BootInstant;

/// Since when the servers are known to keep a session, from what was asked and answered.
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

    /// A transaction was carried out that was sent on this connection: no other leader had taken over when it took the session
    /// up.
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
mod tests {
    use super::*;
    use crate::base::random::for_any;

    const TICK: Duration = Duration::from_millis(400);

    fn at(millis: u64) -> BootInstant {
        BootInstant::START.plus(Duration::from_millis(1_000_000 + millis))
    }

    #[test]
    fn new_session_is_proven_since_it_was_asked_for() {
        assert_eq!(Proof::new(TICK, at(0), at(20)).since(), at(0));
    }

    #[test]
    fn third_beat_in_a_row_proves_the_first() {
        let mut proof = Proof::new(TICK, at(0), at(20));
        assert_eq!(proof.next_beat(), at(320));
        proof.synced(at(320), at(330));
        assert_eq!(proof.since(), at(0));
        proof.synced(at(630), at(650));
        assert_eq!(proof.since(), at(0));
        proof.synced(at(950), at(960));
        assert_eq!(proof.since(), at(320));
        proof.synced(at(1260), at(1270));
        assert_eq!(proof.since(), at(630));
    }

    #[test]
    fn beats_that_are_close_to_one_another_count_as_one() {
        let mut proof = Proof::new(TICK, at(0), at(0));
        for sent in (0..300).step_by(7) {
            proof.synced(at(sent), at(sent + 1));
        }
        assert_eq!((proof.since(), proof.next_beat()), (at(0), at(300)));
    }

    #[test]
    fn beats_of_an_earlier_connection_do_not_count() {
        let mut proof = Proof::new(TICK, at(0), at(0));
        proof.synced(at(300), at(300));
        proof.synced(at(600), at(600));
        proof.taken_up(at(610), at(620));
        proof.committed();
        assert_eq!(proof.since(), at(610));
        proof.synced(at(920), at(920));
        proof.synced(at(1220), at(1220));
        assert_eq!(proof.since(), at(610));
        proof.synced(at(1520), at(1520));
        assert_eq!(proof.since(), at(920));
    }

    #[test]
    fn nothing_counts_before_a_transaction_on_the_connection() {
        let mut proof = Proof::new(TICK, at(0), at(0));
        proof.taken_up(at(100), at(110));
        for sent in (410..4_000).step_by(300) {
            proof.synced(at(sent), at(sent));
        }
        assert_eq!(proof.since(), at(0));
        proof.committed();
        assert_eq!(proof.since(), at(100));
        proof.synced(at(4_300), at(4_300));
        assert!(proof.since() > at(3_000));
    }

    /// A server passes touches on each half tick, behind which syncs come to the leader. That is stopped at any time for any
    /// time: no touches are passed on meanwhile, and a sync that came is answered before the next are, which is as soon as it
    /// goes on. Whatever is proven the leader knew when it answered.
    #[test]
    fn what_is_proven_the_leader_knows() {
        for_any(|random| {
            let mut proof = Proof::new(TICK, at(0), at(0));
            // The last touch, and the last that was passed on.
            let (mut touched, mut known) = (at(0), at(0));
            let (mut now, mut next_pass) = (0, 200);
            for _ in 0..100 {
                let sent = now + random.u64(0..450);
                let arrives = sent + random.u64(0..20);
                let stops = now + random.u64(1..900);
                let stopped = stops..stops + random.u64(0..3_000);
                while next_pass <= arrives {
                    if stopped.contains(&next_pass) {
                        next_pass = stopped.end;
                    } else {
                        known = known.max(touched);
                        next_pass += 200;
                    }
                }
                touched = at(sent);
                now = arrives + random.u64(0..20);
                if stopped.contains(&arrives) {
                    now = stopped.end;
                    next_pass = next_pass.max(now);
                }
                proof.synced(at(sent), at(now));
                assert!(proof.since() <= known, "{:?} {:?}", proof, known);
            }
        });
    }
}
