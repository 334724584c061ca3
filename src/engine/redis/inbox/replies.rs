//! What comes on the connection of an inbox: replies to its commands, and what the server sends unasked.

use std::collections::VecDeque;
use std::sync::Arc;

use ::redis::{ServerError, Value};

use crate::base::token::Token;
use crate::engine::redis::channel_names::is_of_broken;
use crate::engine::redis::failure::Failure;

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
    /// All until the answer to the PING that was sent behind UNSUBSCRIBE: a confirmation for each channel, or an error. Of a
    /// slot that has moved there are an error and, for each channel, what was sent unasked.
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
    Subscribed {
        channel: String,
    },
    /// The slot of the channels isn't at the server, or isn't served.
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
    use Failure::{ClusterDown, Elsewhere, Moving};
    match (expected.pop_front(), Failure::from(error.clone())) {
        (
            Some(Expected::Subscribed { channels, .. }),
            Elsewhere(_) | Moving(_) | ClusterDown(_),
        ) => Ok(Received::Refused { channels }),
        // An access list that lacks UNSUBSCRIBE: the channel stays as long as the connection. Or the slot has moved. The
        // answer to PING is still to come.
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

    fn subscribed() -> Received {
        Received::Subscribed {
            channel: "a".into(),
        }
    }

    fn ended() -> Received {
        Received::Ended {
            channel: "a".into(),
        }
    }

    /// Each reply, what it says, and how many commands still have replies to come.
    #[track_caller]
    fn assert_understood(
        expected: impl Into<VecDeque<Expected>>,
        replies: impl IntoIterator<Item = (Value, Received, usize)>,
    ) -> VecDeque<Expected> {
        let mut expected = expected.into();
        for (reply, received, left) in replies {
            assert_eq!(interpret(&reply, &mut expected).unwrap(), received);
            assert_eq!(expected.len(), left, "after {reply:?}");
        }
        expected
    }

    #[test]
    fn replies_belong_to_commands_in_their_order() {
        let expected = [
            subscribing(2),
            Expected::Pong,
            Expected::Unsubscribed,
            subscribing(1),
        ];
        let refusal =
            value("-NOPERM User app has no permissions to run the 'unsubscribe' command\r\n");
        let replies = [
            (confirmation("subscribe"), subscribed(), 4),
            (confirmation("message"), Received::Other, 4),
            (confirmation("subscribe"), subscribed(), 3),
            (value("+PONG\r\n"), Received::Other, 2),
            (confirmation("unsubscribe"), Received::Other, 2),
            (refusal.clone(), Received::Other, 2),
            (value("+PONG\r\n"), Received::Other, 1),
        ];
        let mut expected = assert_understood(expected, replies);
        assert!(matches!(
            interpret(&refusal, &mut expected),
            Err(Failure::Denied(_))
        ));
    }

    fn subscribing(left: usize) -> Expected {
        let channels = vec!["a".into()];
        Expected::Subscribed { channels, left }
    }

    #[test]
    fn channel_whose_slot_is_elsewhere_is_refused_and_the_connection_lives() {
        let refused = || Received::Refused {
            channels: vec!["a".into()],
        };
        let expected = [(); 4].map(|()| subscribing(2));
        let replies = [
            (value("-MOVED 1 127.0.0.1:7001\r\n"), refused(), 3),
            (value("-CLUSTERDOWN Hash slot not served\r\n"), refused(), 2),
            (confirmation("ssubscribe"), subscribed(), 2),
            (confirmation("smessage"), Received::Other, 2),
            (confirmation("ssubscribe"), subscribed(), 1),
            // Of a channel that was subscribed before.
            (confirmation("sunsubscribe"), ended(), 1),
        ];
        let mut expected = assert_understood(expected, replies);
        let refusal = value("-NOPERM this user has no permissions\r\n");
        assert!(matches!(
            interpret(&refusal, &mut expected),
            Err(Failure::Denied(_))
        ));
    }

    #[test]
    fn what_follows_sunsubscribe_is_no_reply_to_the_next_command() {
        let moved = || value("-MOVED 1 127.0.0.1:7001\r\n");
        for replies in [
            vec![confirmation("sunsubscribe"); 2],
            // The slot has moved: unasked, and then the reply.
            vec![
                confirmation("sunsubscribe"),
                confirmation("sunsubscribe"),
                moved(),
            ],
            vec![moved()],
        ] {
            let expected = [Expected::Unsubscribed, subscribing(2)];
            let said = |reply: Value| {
                let said = match reply {
                    Value::ServerError(_) => Received::Other,
                    _ => ended(),
                };
                (reply, said, 2)
            };
            let pong = value("*2\r\n$4\r\npong\r\n$0\r\n\r\n");
            let replies = replies.into_iter().map(said);
            let replies = replies.chain([(pong, Received::Other, 1)]);
            let refused = Received::Refused {
                channels: vec!["a".into()],
            };
            assert_understood(expected, replies.chain([(moved(), refused, 0)]));
        }
    }

    #[test]
    fn server_says_who_it_is_or_may_not() {
        let info = "# Server\r\nredis_version:7.0.15\r\nrun_id:0123456789abcdef\r\n";
        let info = Value::BulkString(info.into());
        let denied = value("-NOPERM this user has no permissions to run the 'info' command\r\n");
        let strange = Value::BulkString(b"run_id:012".into());
        for (reply, said) in [
            (info, Received::RunId("01234567".into())),
            (denied, Received::Other),
            (strange, Received::Other),
        ] {
            let expected = [Expected::ServerInfo, subscribing(1)];
            let replies = [
                (reply, said, 1),
                (confirmation("subscribe"), subscribed(), 0),
            ];
            assert_understood(expected, replies);
        }
    }
}
