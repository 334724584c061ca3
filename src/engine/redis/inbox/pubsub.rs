//! The connection of an inbox: what the server was asked, what it still has to answer, and whether it is alive.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::redis::{Cmd, Value};

use super::channels::Changes;
use crate::base::clock::Deadline;
use crate::engine::net::limits::PUBSUB_SILENCE;
use crate::engine::redis::channel_names::{broken_channel_beside, is_of_broken};
use crate::engine::redis::connection::Connection;
use crate::engine::redis::failure::Failure;

/// The connection of an inbox. After any error it must be dropped.
#[derive(Debug)]
pub(super) struct PubSub {
    connection: Connection,
    /// Replies that are still to come, in the order of the commands.
    expected: VecDeque<Expected>,
    /// When the server last sent anything, or was sent a command while no reply was expected.
    since: Instant,
    /// How long a reply may take.
    io_timeout: Duration,
}

/// The replies to one command: one for each channel, or an error for all of them.
#[derive(Debug)]
enum Expected {
    Subscribed(usize),
    Unsubscribed(usize),
    Pong,
}

/// What the server sent.
#[derive(Debug, PartialEq)]
pub(super) enum Received {
    Message { channel: String, text: String },
    Subscribed { channel: String },
    Other,
}

impl PubSub {
    pub(super) fn new(connection: Connection, io_timeout: Duration) -> Self {
        PubSub {
            connection,
            expected: VecDeque::new(),
            since: Instant::now(),
            io_timeout,
        }
    }

    /// Sends the changes, by `deadline`. Their confirmations come later.
    pub(super) fn send_changes(
        &mut self,
        changes: &Changes,
        deadline: &Deadline,
    ) -> Result<(), Failure> {
        let Changes {
            unsubscribe,
            subscribe,
        } = changes;
        if !unsubscribe.is_empty() {
            let expected = Expected::Unsubscribed(2 * unsubscribe.len());
            self.send(&with_broken("UNSUBSCRIBE", unsubscribe), expected, deadline)?;
        }
        if !subscribe.is_empty() {
            let expected = Expected::Subscribed(2 * subscribe.len());
            self.send(&with_broken("SUBSCRIBE", subscribe), expected, deadline)?;
        }
        Ok(())
    }

    /// When [`check_alive`](Self::check_alive) is due, if the server sends nothing until then.
    pub(super) fn next_check(&self) -> Instant {
        let patience = if self.expected.is_empty() {
            PUBSUB_SILENCE
        } else {
            self.io_timeout
        };
        self.since + patience
    }

    /// Sends PING to a server that was silent for long, and fails if a reply is overdue. To be called when all that
    /// has arrived was received.
    pub(super) fn check_alive(&mut self, now: Instant, deadline: &Deadline) -> Result<(), Failure> {
        if now < self.next_check() {
            return Ok(());
        }
        if !self.expected.is_empty() {
            return Err(Failure::TimedOut("no answer in time".into()));
        }
        self.send(&::redis::cmd("PING"), Expected::Pong, deadline)
    }

    fn send(
        &mut self,
        command: &Cmd,
        expected: Expected,
        deadline: &Deadline,
    ) -> Result<(), Failure> {
        let deadline = deadline.within(self.io_timeout);
        self.connection
            .send(&command.get_packed_command(), &deadline)?;
        if self.expected.is_empty() {
            self.since = Instant::now();
        }
        self.expected.push_back(expected);
        Ok(())
    }

    /// Returns the next thing that the server has sent; `None` when no whole one has arrived. It looks at the socket
    /// again after a read that took all only with `look_again`.
    pub(super) fn receive(&mut self, look_again: bool) -> Result<Option<Received>, Failure> {
        match self.connection.receive(look_again)? {
            Some(value) => {
                self.since = Instant::now();
                interpret(&value, &mut self.expected).map(Some)
            }
            None => Ok(None),
        }
    }

    /// Readable when the server has sent more.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }
}

/// A command for channels, and for those beside them on which broken leases are told: first these, so that they are heard
/// as soon as the others are confirmed.
fn with_broken(verb: &str, channels: &[Arc<str>]) -> Cmd {
    let mut command = ::redis::cmd(verb);
    for channel in channels {
        command.arg(broken_channel_beside(channel)).arg(&**channel);
    }
    command
}

impl Received {
    /// The owner whose lease was broken, if it says that, and what the lease's token is below.
    pub(super) fn broken_lease(&self) -> Option<(&str, u64)> {
        match self {
            Received::Message { channel, text } if is_of_broken(channel) => {
                let (owner, below) = text.rsplit_once(' ')?;
                Some((owner, below.parse().ok()?))
            }
            _ => None,
        }
    }
}

fn interpret(value: &Value, expected: &mut VecDeque<Expected>) -> Result<Received, Failure> {
    let parts = match value {
        Value::Array(parts) => &parts[..],
        Value::ServerError(error) => {
            return match expected.pop_front() {
                // An access list that lacks UNSUBSCRIBE: the channel stays as long as the connection.
                Some(Expected::Unsubscribed(_)) => Ok(Received::Other),
                _ => Err(error.clone().into()),
            };
        }
        _ => &[],
    };
    let channel = || text(parts.get(1)).to_owned();
    Ok(match text(parts.first()) {
        "message" => Received::Message {
            channel: channel(),
            text: text(parts.get(2)).to_owned(),
        },
        "subscribe" => {
            count_reply(expected);
            Received::Subscribed { channel: channel() }
        }
        // The confirmation of UNSUBSCRIBE, or PONG, whose form depends on whether there are channels.
        _ => {
            count_reply(expected);
            Received::Other
        }
    })
}

/// One more reply to the first command has arrived.
fn count_reply(expected: &mut VecDeque<Expected>) {
    if let Some(Expected::Subscribed(left) | Expected::Unsubscribed(left)) = expected.front_mut() {
        *left = left.saturating_sub(1);
        if *left > 0 {
            return;
        }
    }
    expected.pop_front();
}

fn text(part: Option<&Value>) -> &str {
    match part {
        Some(Value::BulkString(bytes)) => str::from_utf8(bytes).unwrap_or_default(),
        _ => "",
    }
}

#[cfg(test)]
pub(super) fn received(value: &Value) -> Option<Received> {
    interpret(value, &mut VecDeque::new()).ok()
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
    fn channels_are_subscribed_together_with_those_of_broken_leases() {
        let command = with_broken("SUBSCRIBE", &[":inbox:1".into(), "a.b:inbox:2".into()]);
        let words = [
            "SUBSCRIBE",
            ":inbox:broken",
            ":inbox:1",
            "a.b:inbox:broken",
            "a.b:inbox:2",
        ];
        let mut expected = ::redis::cmd(words[0]);
        expected.arg(&words[1..]);
        assert_eq!(command.get_packed_command(), expected.get_packed_command());
    }

    #[test]
    fn replies_belong_to_commands_in_their_order() {
        let mut expected = VecDeque::from([
            Expected::Subscribed(2),
            Expected::Pong,
            Expected::Unsubscribed(1),
            Expected::Subscribed(1),
        ]);
        let refusal =
            value("-NOPERM User app has no permissions to run the 'unsubscribe' command\r\n");
        let subscribed = || Received::Subscribed {
            channel: "a".into(),
        };
        for (reply, received, left) in [
            (confirmation("subscribe"), subscribed(), 4),
            (
                confirmation("message"),
                Received::Message {
                    channel: "a".into(),
                    text: String::new(),
                },
                4,
            ),
            (confirmation("subscribe"), subscribed(), 3),
            (value("+PONG\r\n"), Received::Other, 2),
            (refusal.clone(), Received::Other, 1),
        ] {
            assert_eq!(interpret(&reply, &mut expected).unwrap(), received);
            assert_eq!(expected.len(), left, "after {reply:?}");
        }
        assert!(matches!(
            interpret(&refusal, &mut expected),
            Err(Failure::Denied(_))
        ));
    }
}
