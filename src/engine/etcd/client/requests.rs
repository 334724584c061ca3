//! What hosts are asked, on one connection each.

use std::sync::Arc;

use serde_json::{Value, json};

use super::answers::{KeptAlive, MemberStatus, Touched};
use super::connection::{Connection, Question};
use super::failure::{Effect, Failed, Failure};
use super::json;
use super::login::Login;
use super::proof::{Proof, Renewal, Verdict};
use super::txn::{Answer, LeaseId, Range};
use super::watch::Messages;
use crate::base::clock::{Clock, Deadline};

/// Asks hosts, and understands their answers.
#[derive(Debug)]
pub(super) struct Requests {
    pub(super) login: Login,
    pub(super) clock: Arc<dyn Clock>,
}

/// How often a lease is kept alive until that is proven. Each time counts but for the first with a member, unless the
/// leader has changed.
const ROUNDS: u32 = 4;

const UNPROVEN: &str = "its cluster changes its leader again and again, or what is between spreads requests over several \
                        members: then give the URL the members themselves";

impl Requests {
    pub(super) fn new(login: Login, clock: Arc<dyn Clock>) -> Self {
        Requests { login, clock }
    }

    /// The same for a child that was forked off.
    pub(super) fn after_fork(&self) -> Self {
        Requests::new(self.login.after_fork(), self.clock.clone())
    }

    pub(super) fn transact(
        &self,
        connection: &mut Connection,
        txn: &[u8],
        deadline: &Deadline,
    ) -> Result<Answer, Failed> {
        let answer = self.ask(connection, "/v3/kv/txn", txn, deadline)?;
        let answer = json::transaction(&answer).ok_or_else(Failed::surprised)?;
        connection.see(answer.by);
        Ok(answer)
    }

    /// Says for how many seconds the lease is.
    pub(super) fn grant(
        &self,
        connection: &mut Connection,
        (lease, may_be_there): (LeaseId, bool),
        seconds: u64,
        deadline: &Deadline,
    ) -> Result<u64, Failed> {
        let body = json!({ "ID": lease.0.to_string(), "TTL": seconds.to_string() }).to_string();
        match self.ask(connection, "/v3/lease/grant", body.as_bytes(), deadline) {
            Err(Failed {
                why: Failure::LeaseExists,
                ..
            }) if may_be_there => {
                let body = id(lease);
                let path = "/v3/lease/timetolive";
                let answer = self.ask(connection, path, body.as_bytes(), deadline)?;
                json::granted_for(&answer).ok_or_else(Failed::surprised)
            }
            answer => {
                let (granted, seconds) = json::lease(&answer?).ok_or_else(Failed::surprised)?;
                let is_it = granted == lease;
                is_it.then_some(seconds).ok_or_else(Failed::surprised)
            }
        }
    }

    pub(super) fn revoke(
        &self,
        connection: &mut Connection,
        lease: LeaseId,
        deadline: &Deadline,
    ) -> Result<(), Failed> {
        let body = id(lease);
        match self.ask(connection, "/v3/lease/revoke", body.as_bytes(), deadline) {
            Ok(_)
            | Err(Failed {
                why: Failure::LeaseGone,
                ..
            }) => Ok(()),
            Err(failed) => Err(failed),
        }
    }

    pub(super) fn keep_alive(
        &self,
        connection: &mut Connection,
        lease: LeaseId,
        look: &[u8],
        deadline: &Deadline,
    ) -> Result<KeptAlive, Failed> {
        let mut proof = Proof::after(connection.seen());
        for _ in 0..ROUNDS {
            let since = self.clock.now();
            let renewal = self.renew(connection, lease, deadline)?;
            let answer = self.transact(connection, look, deadline)?;
            let Some(read) = connection.seen() else {
                continue;
            };
            let since = match proof.judge(renewal, read) {
                Verdict::Kept => Some(since),
                Verdict::Gone => None,
                Verdict::Unproven => continue,
            };
            return Ok(KeptAlive { since, answer });
        }
        Err(Effect::Unclear.by(Failure::Unreachable(UNPROVEN.into())))
    }

    /// Asks a member to keep the lease alive that is known to be in a term, and says so again. `None`: it isn't, or says no.
    pub(super) fn touch(
        &self,
        connection: &mut Connection,
        lease: LeaseId,
        deadline: &Deadline,
    ) -> Result<Option<Touched>, Failed> {
        let (since, known) = (self.clock.now(), connection.seen());
        let renewal = self.renew(connection, lease, deadline)?;
        let by = known.filter(|_| renewal.is_there && renewal.by == known);
        Ok(by.map(|by| Touched { lease, since, by }))
    }

    fn renew(
        &self,
        connection: &mut Connection,
        lease: LeaseId,
        deadline: &Deadline,
    ) -> Result<Renewal, Failed> {
        let body = id(lease);
        let answer = match self.ask(connection, "/v3/lease/keepalive", body.as_bytes(), deadline) {
            Err(Failed {
                why: Failure::LeaseGone,
                ..
            }) => {
                return Ok(Renewal {
                    by: None,
                    is_there: false,
                });
            }
            answer => answer?,
        };
        let failed = || Failed::told(&answer).unwrap_or_else(Failed::surprised);
        json::keep_alive(&answer).ok_or_else(failed)
    }

    pub(super) fn time_to_live(
        &self,
        connection: &mut Connection,
        lease: LeaseId,
        deadline: &Deadline,
    ) -> Result<Option<u64>, Failed> {
        let body = id(lease);
        let answer = self.ask(
            connection,
            "/v3/lease/timetolive",
            body.as_bytes(),
            deadline,
        )?;
        json::time_to_live(&answer).ok_or_else(Failed::surprised)
    }

    pub(super) fn watch(
        &self,
        connection: &mut Connection,
        (watch, ranges): (&[u8], usize),
        deadline: &Deadline,
    ) -> Result<Messages, Failed> {
        let question = Question {
            path: "/v3/watch",
            body: watch,
            token: None,
            needs_leader: true,
        };
        let incoming = self.login.begin(connection, question, deadline)?;
        Messages::begin(connection, incoming, ranges)
    }

    pub(super) fn status(
        &self,
        connection: &mut Connection,
        deadline: &Deadline,
    ) -> Result<MemberStatus, Failed> {
        let question = Question {
            path: "/v3/maintenance/status",
            body: b"{}",
            token: None,
            // It is asked also whether there is one.
            needs_leader: false,
        };
        let answer = self.login.ask(connection, question, deadline)?;
        json::status(&answer).ok_or_else(Failed::surprised)
    }

    fn ask(
        &self,
        connection: &mut Connection,
        path: &str,
        body: &[u8],
        deadline: &Deadline,
    ) -> Result<Value, Failed> {
        let question = Question {
            path,
            body,
            token: None,
            needs_leader: true,
        };
        self.login.ask(connection, question, deadline)
    }
}

/// What the servers are asked for by a watch, a line for each range. One that was to begin in the past would be told of nothing for
/// up to 100 ms.
pub(super) fn watch_of(ranges: &[Range], puts: bool) -> Vec<u8> {
    let create = |range: &Range| {
        let mut fields = json::bounds(range);
        if !puts {
            fields.insert("filters".into(), json!(["NOPUT"]));
        }
        format!("{}\n", json!({ "create_request": fields }))
    };
    ranges.iter().map(create).collect::<String>().into_bytes()
}

fn id(lease: LeaseId) -> String {
    json!({ "ID": lease.0.to_string() }).to_string()
}
