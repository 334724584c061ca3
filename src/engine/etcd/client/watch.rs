//! A watch of keys, on a connection of its own.

use std::sync::Arc;

use serde_json::{Value, json};

use super::answers::{Event, Told, told};
use super::connection::{Connection, Incoming};
use super::failure::{Effect, Failed, Failure};
use super::hosts::{Hosts, Used};
use super::login::Exchange;
use super::txn::Range;
use crate::base::clock::Deadline;

/// A watch of keys. Dropped, it ends at the servers, too.
#[derive(Debug)]
pub(crate) struct Watch {
    messages: Messages,
    used: Used,
    hosts: Arc<Hosts>,
}

impl Watch {
    pub(super) fn new(messages: Messages, used: Used, hosts: Arc<Hosts>) -> Self {
        Watch {
            messages,
            used,
            hosts,
        }
    }

    /// It tells of all that comes after that revision, and of nothing before.
    pub(crate) fn begins_after(&self) -> u64 {
        self.messages.begins_after
    }

    /// Blocks until there are events, or until then: then there are none. After a failure it tells of nothing any more. A host that
    /// hangs tells of nothing either: so it fails also where another host is asked first by now.
    pub(crate) fn next(&mut self, until: &Deadline) -> Result<Vec<Event>, Failure> {
        if self.hosts.rotation.first() != self.used.host {
            let cause = "another host answers in place of that of a watch";
            return Err(Failure::Unreachable(cause.into()));
        }
        self.used.connection.wait_until(until);
        loop {
            match self.messages.next(&mut self.used.connection) {
                Ok(Told::Events(events)) if !events.is_empty() => return Ok(events),
                Ok(Told::Begun(_) | Told::Events(_)) => {}
                Ok(Told::Ended(reason)) => return Err(Failed::ended(&reason).why),
                Err(failed) if failed.why.is_timeout() => return Ok(Vec::new()),
                Err(failed) => {
                    self.hosts.rotation.failed(self.used.host);
                    return Err(failed.why);
                }
            }
        }
    }
}

/// The messages of a watch: a line each, in a body that doesn't end by itself.
#[derive(Debug)]
pub(super) struct Messages {
    incoming: Incoming,
    /// This revision.
    begins_after: u64,
    /// What has come, and wasn't told yet.
    text: Vec<u8>,
    /// There is no line's end before.
    looked_at: usize,
}

impl Messages {
    /// Asks, and waits until the watch of each range has begun. What is told before the last has is told by none: the
    /// watch begins after it.
    pub(super) fn begin(
        host: &mut Exchange<'_>,
        ranges: &[Range],
        puts: bool,
    ) -> Result<Self, Failed> {
        let incoming = host.begin("/v3/watch", &request(ranges, puts))?;
        let mut messages = Messages {
            incoming,
            begins_after: 0,
            text: Vec::new(),
            looked_at: 0,
        };
        let mut begun = 0;
        while begun < ranges.len() {
            let after = match messages.next(host.connection)? {
                Told::Begun(revision) => {
                    begun += 1;
                    revision
                }
                Told::Events(events) => events.iter().map(|one| one.revision).max().unwrap_or(0),
                Told::Ended(reason) => return Err(Failed::ended(&reason)),
            };
            messages.begins_after = messages.begins_after.max(after);
        }
        Ok(messages)
    }

    fn next(&mut self, connection: &mut Connection) -> Result<Told, Failed> {
        loop {
            if let Some(line) = self.line() {
                let message: Value =
                    serde_json::from_slice(&line).map_err(|_| Failed::surprised())?;
                return match told(&message) {
                    Some(told) => Ok(told),
                    None => Err(Failed::not_understood(&message)),
                };
            }
            let before = self.text.len();
            connection.receive(&mut self.incoming, &mut self.text)?;
            if self.text.len() == before {
                let cause = "it has ended a watch";
                return Err(Effect::Unclear.by(Failure::Unreachable(cause.into())));
            }
        }
    }

    fn line(&mut self) -> Option<Vec<u8>> {
        let mut unseen = self.text[self.looked_at..].iter();
        let Some(at) = unseen.position(|byte| *byte == b'\n') else {
            self.looked_at = self.text.len();
            return None;
        };
        let rest = self.text.split_off(self.looked_at + at + 1);
        self.looked_at = 0;
        Some(std::mem::replace(&mut self.text, rest))
    }
}

/// What the servers are asked for, a line for each range. A watch that was to begin in the past would be told of nothing for up to
/// 100 ms.
fn request(ranges: &[Range], puts: bool) -> Vec<u8> {
    let create = |range: &Range| {
        let mut fields = range.bounds();
        if !puts {
            fields.insert("filters".into(), json!(["NOPUT"]));
        }
        format!("{}\n", json!({ "create_request": fields }))
    };
    ranges.iter().map(create).collect::<String>().into_bytes()
}
