//! The connection of an inbox: what the server was asked, what it still has to answer, and whether it is alive.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::redis::Cmd;

use super::replies::{Expected, Received, interpret};
use crate::base::clock::Deadline;
use crate::base::sys::time;
use crate::engine::net::limits::PUBSUB_SILENCE;
use crate::engine::redis::channel_names::broken_channel_beside;
use crate::engine::redis::connection::Connection;
use crate::engine::redis::failure::Failure;
use crate::engine::redis::settings::{Kind, Settings};

/// What to send to the server, in this order.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Changes {
    pub(super) unsubscribe: Vec<Arc<str>>,
    pub(super) subscribe: Vec<Arc<str>>,
}

/// The connection of an inbox. After any error it must be dropped.
#[derive(Debug)]
pub(super) struct PubSub {
    connection: Connection,
    asked: Asked,
    /// How long a reply may take.
    io_timeout: Duration,
}

impl PubSub {
    pub(super) fn new(connection: Connection, settings: &Settings) -> Self {
        let mut asked = Asked::nothing(settings.kind == Kind::Cluster);
        // Where another server may follow, it says who it is.
        if settings.kind != Kind::Single {
            let mut info = ::redis::cmd("INFO");
            asked.add(info.arg("server"), Expected::ServerInfo);
        }
        PubSub {
            connection,
            asked,
            io_timeout: settings.io_timeout,
        }
    }

    /// Sends the changes, by `deadline`. Their confirmations come later. Sends PING to a server that was silent for long, and
    /// fails if a reply is overdue. To be called when all that has arrived was received. Returns whether anything was sent.
    pub(super) fn send(&mut self, changes: &Changes, deadline: &Deadline) -> Result<bool, Failure> {
        if self.next_check() <= time::now() {
            if !self.asked.expected.is_empty() {
                return Err(Failure::TimedOut("no answer in time".into()));
            }
            self.asked.add(&::redis::cmd("PING"), Expected::Pong);
        }
        self.asked.add_changes(changes);
        let packed = std::mem::take(&mut self.asked.packed);
        if packed.is_empty() {
            return Ok(false);
        }
        // What is answered comes among the messages.
        let deadline = deadline.within(self.io_timeout);
        self.connection.send(&packed, 0, &deadline)?;
        Ok(true)
    }

    /// When [`send`](Self::send) is due, if the server sends nothing until then.
    pub(super) fn next_check(&self) -> Instant {
        let patience = if self.asked.expected.is_empty() {
            PUBSUB_SILENCE
        } else {
            self.io_timeout
        };
        self.asked.since + patience
    }

    /// Returns the next thing that the server has sent; `None` when no whole one has arrived. It looks at the socket
    /// again after a read that took all only with `look_again`.
    pub(super) fn receive(&mut self, look_again: bool) -> Result<Option<Received>, Failure> {
        match self.connection.receive(look_again)? {
            Some(value) => {
                self.asked.since = time::now();
                interpret(&value, &mut self.asked.expected).map(Some)
            }
            None => Ok(None),
        }
    }

    /// Readable when the server has sent more.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }
}

/// What the server was asked, or will be with the next write.
#[derive(Debug)]
struct Asked {
    /// What isn't sent yet.
    packed: Vec<u8>,
    /// Replies that are still to come, in the order of the commands.
    expected: VecDeque<Expected>,
    /// When the server last sent anything, or was asked while no reply was expected.
    since: Instant,
    /// Whether channels are sharded: one command for those of each slot.
    are_sharded: bool,
}

impl Asked {
    fn nothing(are_sharded: bool) -> Self {
        Asked {
            packed: Vec::new(),
            expected: VecDeque::new(),
            since: time::now(),
            are_sharded,
        }
    }

    fn add(&mut self, command: &Cmd, expected: Expected) {
        if self.expected.is_empty() {
            self.since = time::now();
        }
        command.write_packed_command(&mut self.packed);
        self.expected.push_back(expected);
    }

    /// A server refuses one command for sharded channels of several slots, so there is one for each. Behind UNSUBSCRIBE
    /// comes PING, because a server sends the same unasked when a slot leaves it, and an error besides if it has left.
    fn add_changes(&mut self, changes: &Changes) {
        let (prefix, together) = if self.are_sharded {
            ("S", 1)
        } else {
            ("", usize::MAX)
        };
        let with_broken =
            |verb: &str, channels: &[Arc<str>]| with_broken(&[prefix, verb].concat(), channels);
        for channels in changes.unsubscribe.chunks(together) {
            with_broken("UNSUBSCRIBE", channels).write_packed_command(&mut self.packed);
        }
        if !changes.unsubscribe.is_empty() {
            self.add(&::redis::cmd("PING"), Expected::Unsubscribed);
        }
        for channels in changes.subscribe.chunks(together) {
            let expected = Expected::Subscribed {
                channels: channels.to_vec(),
                left: 2 * channels.len(),
            };
            self.add(&with_broken("SUBSCRIBE", channels), expected);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_sent(changes: &Changes, are_sharded: bool, all: &[&str], answered: usize) {
        let mut asked = Asked::nothing(are_sharded);
        asked.add_changes(changes);
        let mut expected = Vec::new();
        for words in all {
            let mut words = words.split(' ');
            let mut command = ::redis::cmd(words.next().unwrap());
            words.for_each(|word| _ = command.arg(word));
            command.write_packed_command(&mut expected);
        }
        assert_eq!(asked.packed, expected);
        assert_eq!(asked.expected.len(), answered);
    }

    #[test]
    fn channels_are_subscribed_together_with_those_of_broken_leases() {
        let changes = Changes {
            unsubscribe: vec!["a:inbox:1".into()],
            subscribe: vec![":inbox:1".into(), "a.b:inbox:2".into()],
        };
        let all = [
            "UNSUBSCRIBE a:inbox:broken a:inbox:1",
            "PING",
            "SUBSCRIBE :inbox:broken :inbox:1 a.b:inbox:broken a.b:inbox:2",
        ];
        assert_sent(&changes, false, &all, 2);
        assert_sent(&Changes::default(), false, &[], 0);
    }

    #[test]
    fn sharded_channels_are_subscribed_slot_by_slot() {
        let (one, two): (Arc<str>, Arc<str>) = ("a:inbox:1:{x}".into(), "a:inbox:1:{y}".into());
        let changes = Changes {
            unsubscribe: vec![one.clone(), two.clone()],
            subscribe: vec![two, one],
        };
        let all = [
            "SUNSUBSCRIBE a:inbox:broken:{x} a:inbox:1:{x}",
            "SUNSUBSCRIBE a:inbox:broken:{y} a:inbox:1:{y}",
            "PING",
            "SSUBSCRIBE a:inbox:broken:{y} a:inbox:1:{y}",
            "SSUBSCRIBE a:inbox:broken:{x} a:inbox:1:{x}",
        ];
        assert_sent(&changes, true, &all, 3);
    }
}
