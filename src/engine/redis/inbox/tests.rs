//! What listeners are told, by replies that are read from bytes.

use std::time::Duration;

use ::redis::Value;

use super::*;
use crate::base::random::for_any;
use crate::base::token::Token;
use crate::engine::redis::server_of;

const CHANNEL: &str = "crosslock:inbox:id";

/// What an owner is notified of after that message. The inbox has no thread, and never connects.
fn notified(owner: &Owner, value: &Value) -> Option<Notification> {
    let server = server_of("redis://127.0.0.1:1/");
    let listener = Arc::new(Listener::new(server, Receiver::default()).unwrap());
    let subscription = Subscription::new(
        listener.clone(),
        (owner, Arc::default()),
        CHANNEL.into(),
        Hears::Nothing,
    );
    let received = pubsub::received(value)?;
    listener.state.lock().deliver(&received);
    subscription.wait(Duration::ZERO, &Deadline::NEVER)
}

fn message(payload: &[u8]) -> Value {
    let parts = [b"message", CHANNEL.as_bytes(), payload];
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
