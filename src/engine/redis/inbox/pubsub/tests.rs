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
    let info = "# Server\r\nredis_version:7.0.15\r\nrun_id:0123456789abcdef\r\n";
    let denied = value("-NOPERM this user has no permissions to run the 'info' command\r\n");
    let expected = [
        Expected::ServerInfo,
        Expected::ServerInfo,
        Expected::ServerInfo,
        subscribing(2),
        Expected::Pong,
        Expected::Unsubscribed,
        subscribing(1),
    ];
    let refusal = value("-NOPERM User app has no permissions to run the 'unsubscribe' command\r\n");
    let replies = [
        (
            Value::BulkString(info.into()),
            Received::RunId("01234567".into()),
            6,
        ),
        (Value::BulkString(b"run_id:012".into()), Received::Other, 5),
        (denied, Received::Other, 4),
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
