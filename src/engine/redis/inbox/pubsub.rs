//! The connection of an inbox: what it was told, what it still has to answer, and whether it is alive.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use ::redis::{Cmd, Value};

use super::channels::Changes;
use crate::base::clock::Deadline;
use crate::engine::redis::connection::Connection;
use crate::engine::redis::failure::Failure;

/// A connection that says nothing for as long is asked whether it is still there.
const QUIET: Duration = Duration::from_secs(30);

/// The connection of an inbox. After any error it must be dropped.
#[derive(Debug)]
pub(super) struct Link {
    connection: Connection,
    /// What isn't answered yet, in the order in which it was asked.
    owed: VecDeque<Owed>,
    /// When it last said something, or was asked something after it owed nothing.
    since: Instant,
    /// How long an answer may take.
    io_timeout: Duration,
}

/// Answers that are to come: for each channel one, or an error for all of them.
#[derive(Debug)]
enum Owed {
    Subscribed(usize),
    Unsubscribed(usize),
    Pong,
}

/// What the server said.
#[derive(Debug, PartialEq)]
pub(super) enum Said {
    Message { channel: String, text: String },
    Heard { channel: String },
    Other,
}

impl Link {
    pub(super) fn new(connection: Connection, io_timeout: Duration) -> Self {
        Link {
            connection,
            owed: VecDeque::new(),
            since: Instant::now(),
            io_timeout,
        }
    }

    /// Tells the server which channels are listened to, by `deadline`.
    pub(super) fn change(&mut self, changes: &Changes, deadline: &Deadline) -> Result<(), Failure> {
        let (ended, begun) = (&changes.unsubscribe, &changes.subscribe);
        if !ended.is_empty() {
            let mut unsubscribe = ::redis::cmd("UNSUBSCRIBE");
            ended.iter().for_each(|name| _ = unsubscribe.arg(&**name));
            self.send(&unsubscribe, Owed::Unsubscribed(ended.len()), deadline)?;
        }
        if !begun.is_empty() {
            let mut subscribe = ::redis::cmd("SUBSCRIBE");
            begun.iter().for_each(|name| _ = subscribe.arg(&**name));
            self.send(&subscribe, Owed::Subscribed(begun.len()), deadline)?;
        }
        Ok(())
    }

    /// When it is to be tended, if it says nothing until then.
    pub(super) fn due(&self) -> Instant {
        let budget = if self.owed.is_empty() {
            QUIET
        } else {
            self.io_timeout
        };
        self.since + budget
    }

    /// To be called when all that has come was received: asks one that was quiet for long whether it is still there,
    /// and finds that one is silent which ought to answer.
    pub(super) fn tend(&mut self, now: Instant, deadline: &Deadline) -> Result<(), Failure> {
        if now < self.due() {
            return Ok(());
        }
        if !self.owed.is_empty() {
            return Err(Failure::TimedOut("no answer in time".into()));
        }
        self.send(&::redis::cmd("PING"), Owed::Pong, deadline)
    }

    fn send(&mut self, command: &Cmd, owed: Owed, deadline: &Deadline) -> Result<(), Failure> {
        let deadline = deadline.within(self.io_timeout);
        self.connection
            .send(&command.get_packed_command(), &deadline)?;
        if self.owed.is_empty() {
            self.since = Instant::now();
        }
        self.owed.push_back(owed);
        Ok(())
    }

    /// Gives the next that it has said; `None` when there is nothing more, or only a part. The first call after a
    /// while is `new`.
    pub(super) fn receive(&mut self, new: bool) -> Result<Option<Said>, Failure> {
        match self.connection.receive(new)? {
            Some(value) => {
                self.since = Instant::now();
                understand(&value, &mut self.owed).map(Some)
            }
            None => Ok(None),
        }
    }

    /// Readable when it says more.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }
}

fn understand(value: &Value, owed: &mut VecDeque<Owed>) -> Result<Said, Failure> {
    let parts = match value {
        Value::Array(parts) => &parts[..],
        Value::ServerError(error) => {
            return match owed.pop_front() {
                // A list of rights from before there was this command: the channel stays as long as the connection.
                Some(Owed::Unsubscribed(_)) => Ok(Said::Other),
                _ => Err(error.clone().into()),
            };
        }
        _ => &[],
    };
    let channel = || text(parts.get(1)).to_owned();
    Ok(match text(parts.first()) {
        "message" => Said::Message {
            channel: channel(),
            text: text(parts.get(2)).to_owned(),
        },
        "subscribe" => {
            settle(owed);
            Said::Heard { channel: channel() }
        }
        // Without a channel a connection answers PING in another way.
        _ => {
            settle(owed);
            Said::Other
        }
    })
}

/// One answer more has come to what was asked first.
fn settle(owed: &mut VecDeque<Owed>) {
    if let Some(Owed::Subscribed(left) | Owed::Unsubscribed(left)) = owed.front_mut() {
        *left = left.saturating_sub(1);
        if *left > 0 {
            return;
        }
    }
    owed.pop_front();
}

fn text(part: Option<&Value>) -> &str {
    match part {
        Some(Value::BulkString(bytes)) => str::from_utf8(bytes).unwrap_or_default(),
        _ => "",
    }
}

#[cfg(test)]
pub(super) fn said(value: &Value) -> Option<Said> {
    understand(value, &mut VecDeque::new()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(line: &str) -> Value {
        ::redis::parse_redis_value(line.as_bytes()).unwrap()
    }

    fn confirmation(verb: &str) -> Value {
        let length = verb.len();
        value(&format!("*3\r\n${length}\r\n{verb}\r\n$1\r\na\r\n:1\r\n"))
    }

    #[test]
    fn answers_belong_to_questions_in_their_order() {
        let mut owed = VecDeque::from([
            Owed::Subscribed(2),
            Owed::Pong,
            Owed::Unsubscribed(1),
            Owed::Subscribed(1),
        ]);
        let refusal =
            value("-NOPERM User app has no permissions to run the 'unsubscribe' command\r\n");
        let heard = || Said::Heard {
            channel: "a".into(),
        };
        for (answer, said, left) in [
            (confirmation("subscribe"), heard(), 4),
            (
                confirmation("message"),
                Said::Message {
                    channel: "a".into(),
                    text: String::new(),
                },
                4,
            ),
            (confirmation("subscribe"), heard(), 3),
            (value("+PONG\r\n"), Said::Other, 2),
            (refusal.clone(), Said::Other, 1),
        ] {
            assert_eq!(understand(&answer, &mut owed).unwrap(), said);
            assert_eq!(owed.len(), left, "after {answer:?}");
        }
        assert!(matches!(
            understand(&refusal, &mut owed),
            Err(Failure::Denied(_))
        ));
    }
}
