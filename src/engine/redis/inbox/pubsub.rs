//! The connection of an inbox: what the server was asked, what it still has to answer, what it sends unasked, and
//! whether it is alive.

use std::time::{Duration, Instant};
use std::{borrow::Cow, collections::VecDeque, sync::Arc};

use ::redis::{Cmd, ServerError, Value};

use crate::base::sys::{net::Socket, time};
use crate::base::{Deadline, Token};
use crate::engine::net::PUBSUB_SILENCE;
use crate::engine::redis::keys::{broken_channel_beside, is_of_broken, is_of_value};
use crate::engine::redis::settings::{Kind, Settings};
use crate::engine::redis::{connection::Connection, failure::Failure, reply::text_of};

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

    /// Sends the changes, by `deadline`. Their confirmations come later. Sends PING to a server that was silent for
    /// long, and fails if a reply is overdue. To be called when all that has arrived was received. Returns whether
    /// anything was sent.
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
    pub(super) fn socket(&self) -> &Socket {
        self.connection.socket()
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
        let command = |verb: &str, channels: &[Arc<str>]| {
            let mut command = ::redis::cmd(&[prefix, verb].concat());
            command.arg(with_broken(channels));
            command
        };
        for channels in changes.unsubscribe.chunks(together) {
            command("UNSUBSCRIBE", channels).write_packed_command(&mut self.packed);
        }
        if !changes.unsubscribe.is_empty() {
            self.add(&::redis::cmd("PING"), Expected::Unsubscribed);
        }
        // A user that may not hear of values may hear of grants.
        let apart = |one: &Arc<str>, other: &Arc<str>| !is_of_value(one) && !is_of_value(other);
        let alike = changes.subscribe.chunk_by(apart);
        for channels in alike.flat_map(|alike| alike.chunks(together)) {
            let expected = Expected::Subscribed {
                channels: channels.to_vec(),
                left: with_broken(channels).len(),
            };
            self.add(&command("SUBSCRIBE", channels), expected);
        }
    }
}

/// Channels, and those beside the ones of inboxes on which broken leases are told: first these, so that they are heard
/// as soon as the others are confirmed.
fn with_broken(channels: &[Arc<str>]) -> Vec<Cow<'_, str>> {
    let with_broken = channels.iter().flat_map(|channel| {
        let broken = (!is_of_value(channel)).then(|| broken_channel_beside(channel).into());
        broken.into_iter().chain([Cow::from(&**channel)])
    });
    with_broken.collect()
}

/// The replies to one command.
#[derive(Debug)]
pub(super) enum Expected {
    /// What INFO tells of the server, or an error.
    ServerInfo,
    /// So many are left, or an error for all the channels.
    Subscribed {
        channels: Vec<Arc<str>>,
        left: usize,
    },
    /// All until the answer to the PING that was sent behind UNSUBSCRIBE: a confirmation for each channel, or an error.
    /// Of a slot that has moved there are an error and, for each channel, what was sent unasked.
    Unsubscribed,
    Pong,
}

/// What the server sent.
#[derive(Debug, PartialEq)]
pub(super) enum Received {
    /// How the server is told from others: the start of its run id.
    RunId(Arc<str>),
    /// An owner was granted the lock that it waits for.
    Granted {
        channel: String,
        owner: String,
        token: Token,
    },
    /// The lease of an owner was broken; its token is below this number.
    Broken {
        owner: String,
        below: u64,
    },
    /// A value was changed.
    Stored {
        channel: String,
    },
    Subscribed {
        channel: String,
    },
    /// The slot of the channels isn't at the server, or isn't served; or the user may not hear of that value.
    Refused {
        channels: Vec<Arc<str>>,
    },
    /// The channel is no more, unasked if it was wanted: its slot has left the server.
    Ended {
        channel: String,
    },
    Other,
}

pub(super) fn interpret(
    value: &Value,
    expected: &mut VecDeque<Expected>,
) -> Result<Received, Failure> {
    let parts = match value {
        Value::Array(parts) => &parts[..],
        Value::ServerError(error) => return refused(error, expected),
        Value::BulkString(_) if matches!(expected.front(), Some(Expected::ServerInfo)) => {
            expected.pop_front();
            return Ok(run_id(text(Some(value))));
        }
        _ => &[],
    };
    let channel = || text(parts.get(1)).to_owned();
    Ok(match text(parts.first()) {
        "message" | "smessage" => message(channel(), text(parts.get(2))),
        "subscribe" | "ssubscribe" => {
            count_reply(expected);
            Received::Subscribed { channel: channel() }
        }
        "sunsubscribe" => Received::Ended { channel: channel() },
        "unsubscribe" => Received::Other,
        // PONG, whose form depends on whether there are channels.
        _ => {
            count_reply(expected);
            Received::Other
        }
    })
}

/// Who was granted a lock, or whose lease was broken, with the number behind the owner.
fn message(channel: String, text: &str) -> Received {
    if is_of_value(&channel) {
        return Received::Stored { channel };
    }
    let parts = text.rsplit_once(' ');
    let parts = parts.and_then(|(owner, number)| Some((owner.to_owned(), number.parse().ok()?)));
    match parts {
        Some((owner, below)) if is_of_broken(&channel) => Received::Broken { owner, below },
        Some((owner, number)) => Received::Granted {
            channel,
            owner,
            token: Token::from_number(number),
        },
        None => Received::Other,
    }
}

fn refused(error: &ServerError, expected: &mut VecDeque<Expected>) -> Result<Received, Failure> {
    use Failure::{ClusterDown, Denied, Redirected, TryAgain};
    match (expected.pop_front(), Failure::from(error.clone())) {
        (
            Some(Expected::Subscribed { channels, .. }),
            Redirected(_) | TryAgain(_) | ClusterDown(_),
        ) => Ok(Received::Refused { channels }),
        (Some(Expected::Subscribed { channels, .. }), Denied(_))
            if channels.iter().all(|one| is_of_value(one)) =>
        {
            Ok(Received::Refused { channels })
        }
        // An access list that lacks UNSUBSCRIBE: the channel stays as long as the connection. Or the slot has moved.
        // The answer to PING is still to come.
        (Some(Expected::Unsubscribed), _) => {
            expected.push_front(Expected::Unsubscribed);
            Ok(Received::Other)
        }
        (Some(Expected::ServerInfo), _) => Ok(Received::Other),
        (_, failure) => Err(failure),
    }
}

/// One more reply to the first command has arrived.
fn count_reply(expected: &mut VecDeque<Expected>) {
    if let Some(Expected::Subscribed { left, .. }) = expected.front_mut() {
        *left = left.saturating_sub(1);
        if *left > 0 {
            return;
        }
    }
    expected.pop_front();
}

/// As scripts compare it: see `lua/lib/constants.lua`.
fn run_id(info: &str) -> Received {
    let behind = info.split_once("run_id:").map(|(_, behind)| behind);
    match behind.and_then(|behind| behind.get(..8)) {
        Some(id) => Received::RunId(id.into()),
        None => Received::Other,
    }
}

fn text(part: Option<&Value>) -> &str {
    part.and_then(text_of).unwrap_or_default()
}

#[cfg(test)]
pub(super) fn received(value: &Value) -> Option<Received> {
    interpret(value, &mut VecDeque::new()).ok()
}

#[cfg(test)]
mod tests;
