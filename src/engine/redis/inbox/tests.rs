//! What listeners are told, by replies that are read from bytes.

use std::time::Duration;

use ::redis::Value;

use super::pubsub::Received;
use super::*;
use crate::base::random::for_any;
use crate::base::token::Token;
use crate::engine::redis::server_of;

const CHANNEL: &str = "crosslock:inbox:id";

fn listener(receiver: Receiver) -> Arc<Listener> {
    listener_at("redis://127.0.0.1:1/", receiver)
}

fn listener_at(url: &str, receiver: Receiver) -> Arc<Listener> {
    Arc::new(Listener::new(server_of(url), receiver).unwrap())
}

fn deliver(listener: &Listener, received: &Received) {
    listener.state.lock().deliver(received);
}

/// One that waits on a channel.
fn waiter(listener: &Arc<Listener>, channel: &str, hears: Hears) -> Subscription {
    Subscription::new(
        listener.clone(),
        (&Owner::new(), Arc::default()),
        channel.into(),
        hears,
    )
}

/// What an owner is notified of after that message. The inbox has no thread, and never connects.
fn notified(owner: &Owner, value: &Value) -> Option<Notification> {
    let listener = listener(Receiver::default());
    let subscription = Subscription::new(
        listener.clone(),
        (owner, Arc::default()),
        CHANNEL.into(),
        Hears::Nothing,
    );
    let received = pubsub::received(value)?;
    deliver(&listener, &received);
    subscription.wait(Duration::ZERO, &Deadline::NEVER)
}

fn message(payload: &[u8]) -> Value {
    message_on(CHANNEL, payload)
}

fn message_on(channel: &str, payload: &[u8]) -> Value {
    let parts = [b"message", channel.as_bytes(), payload];
    Value::Array(parts.map(|part| Value::BulkString(part.to_vec())).into())
}

#[test]
fn nothing_but_the_owner_and_a_number_is_a_grant() {
    for_any(|random| {
        let before = random.one_of(&["", "", "x", " ", "é"]);
        let space = random.one_of(&["", " ", "  ", "+", " -"]);
        let digits = random.text_of("0123456789", 0..=22);
        let more = random.one_of(&["", "", "x", " ", "é"]);
        let after = format!("{space}{digits}{more}");
        let owner = Owner::new();
        let payload = format!("{before}{}{after}", owner.as_str());
        let grant = message(payload.as_bytes());
        assert_eq!(notified(&Owner::new(), &grant), None, "it is another's");
        let told = notified(&owner, &grant);
        let number = after
            .strip_prefix(' ')
            .and_then(|rest| rest.parse::<u64>().ok());
        let granted = number.filter(|_| before.is_empty());
        let granted = granted.map(|number| Notification::Granted(Token::from_number(number)));
        assert_eq!(told, granted);
    });
}

/// A waiter that hears on a sharded channel.
fn hearing_in_slot(hears: Hears) -> (Arc<Listener>, Subscription) {
    let listener = listener_at("redis+cluster://127.0.0.1:1/", Receiver::default());
    let one = waiter(&listener, SHARDED, hears);
    let mut state = listener.state.lock();
    assert_eq!(state.changes(false).subscribe.len(), 1);
    drop(state);
    (listener, one)
}

const SHARDED: &str = "crosslock:inbox:id:{a}";

fn told(one: &Subscription) -> Option<Notification> {
    one.wait(Duration::ZERO, &Deadline::NEVER)
}

#[test]
fn waiter_that_opens_the_inbox_is_told_that_the_server_refuses() {
    for (hears, is_opening) in [(Hears::Opening, true), (Hears::Nothing, false)] {
        let (listener, one) = hearing_in_slot(hears);
        let refused = Received::Refused {
            channels: vec![SHARDED.into()],
        };
        deliver(&listener, &refused);
        assert!(one.is_over());
        assert_eq!(told(&one).is_some(), is_opening);
    }
}

#[test]
fn any_bytes_are_understood_or_left() {
    for_any(|random| {
        let [payload, whole] = [(); 2].map(|()| random.list(0..=100, |random| random.u8(..)));
        let owner = Owner::new();
        assert_eq!(notified(&owner, &message(&payload)), None);
        for value in ::redis::parse_redis_value(&whole).into_iter() {
            assert_eq!(notified(&owner, &value), None);
        }
    });
}
