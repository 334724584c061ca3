//! How leases are kept alive, and what is told of them: by the leader alone, which other members ask.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use crosslock_world::service::{Host, Io};
use serde_json::{Map, Value, json};

use super::Etcd;
use super::http::{self, Refusal};
use super::store::{header, put_number};
use super::waiting::Stage;

/// What a lease is asked for.
enum Told {
    Alive(Duration),
    Gone,
    /// It can't be told yet.
    Nothing,
}

/// How long it waits for a leader to ask for a lease.
const LEADER_WITHIN: Duration = Duration::from_secs(1);

impl Etcd {
    /// The member that is asked for a lease; `None`: there is none now.
    fn lessor(&self, at: Host) -> Option<Host> {
        let leader = self.members[at].leader?;
        let leads = self.members[leader].lessor.is_some() && self.reaches(at, leader);
        leads.then_some(leader)
    }

    /// Asks for a lease whom a member takes for the leader. One whose time is over is answered for when it has ended.
    fn told(&self, at: Host, id: i64) -> (Host, Told) {
        let Some(leader) = self.lessor(at) else {
            return (at, Told::Nothing);
        };
        let lessor = self.members[leader].lessor.as_ref();
        let told = match lessor.and_then(|lessor| lessor.get(&id)) {
            None => Told::Gone,
            Some(end) if *end <= self.now => Told::Nothing,
            Some(end) => Told::Alive(*end - self.now),
        };
        (leader, told)
    }

    /// Waits for a leader, but not for long.
    fn lessor_again(&mut self, io: &mut Io<'_>, number: u64, stage: Stage) -> Result<(), Refusal> {
        let waiting = &self.waiting[&number];
        let is_long = io.now >= waiting.since + LEADER_WITHIN;
        if self.members[waiting.at].leader.is_none() && is_long {
            return Err(Refusal::no_leader());
        }
        self.again(number, stage);
        Ok(())
    }

    pub(super) fn keep_alive(&mut self, io: &mut Io<'_>, number: u64, id: i64) {
        let (at, to) = (self.waiting[&number].at, self.waiting[&number].to);
        let ttl = match self.told(at, id) {
            (_, Told::Nothing) => {
                if let Err(why) = self.lessor_again(io, number, Stage::KeepAlive(id)) {
                    self.finish(io, number, Err(why));
                }
                return;
            }
            (_, Told::Gone) => 0,
            (leader, Told::Alive(_)) => {
                let member = &mut self.members[leader];
                let time = member.ttl_of(id).unwrap_or_default();
                if let Some(lessor) = &mut member.lessor {
                    lessor.insert(id, io.now + time);
                }
                time.as_secs()
            }
        };
        let waiting = self.waiting.remove(&number);
        let mut result = Map::new();
        // From before the lease was kept alive, as etcd says it.
        result.insert(
            "header".into(),
            waiting.map_or(Value::Null, |waiting| waiting.header),
        );
        result.insert("ID".into(), id.to_string().into());
        put_number(&mut result, "TTL", ttl);
        let mut bytes = http::stream();
        bytes.extend(http::message(&result.into()));
        bytes.extend(http::end(None));
        self.send(io, to, bytes);
        self.serve(io, to);
    }

    pub(super) fn time_to_live(&mut self, io: &mut Io<'_>, number: u64, id: i64, keys: bool) {
        let at = self.waiting[&number].at;
        let answer = match self.told(at, id) {
            (_, Told::Nothing) => {
                match self.lessor_again(io, number, Stage::TimeToLive(id, keys)) {
                    Ok(()) => return,
                    Err(why) => Err(why),
                }
            }
            (_, Told::Gone) => {
                let header = header(self.members[at].state.revision);
                Ok(json!({ "header": header, "ID": id.to_string(), "TTL": "-1" }))
            }
            (leader, Told::Alive(left)) => Ok(self.lease(leader, id, left, keys)),
        };
        self.finish(io, number, answer);
    }

    fn lease(&self, leader: Host, id: i64, left: Duration, with_keys: bool) -> Value {
        let state = &self.members[leader].state;
        let mut answer = Map::new();
        answer.insert("header".into(), header(state.revision));
        answer.insert("ID".into(), id.to_string().into());
        put_number(&mut answer, "TTL", left.as_secs());
        if let Some(lease) = state.leases.get(&id) {
            put_number(&mut answer, "grantedTTL", lease.ttl);
            let keys: Vec<_> = lease.keys.iter().map(|key| BASE64.encode(key)).collect();
            if with_keys && !keys.is_empty() {
                answer.insert("keys".into(), keys.into());
            }
        }
        answer.into()
    }

    pub(super) fn leases(&self, at: Host) -> Value {
        let state = &self.members[at].state;
        let leases: Vec<_> = state
            .leases
            .keys()
            .map(|id| json!({ "ID": id.to_string() }))
            .collect();
        let mut answer = json!({ "header": header(state.revision) });
        if !leases.is_empty() {
            answer["leases"] = leases.into();
        }
        answer
    }
}
