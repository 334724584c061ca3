//! What listeners are told, by replies that are read from bytes.

use std::time::{Duration, Instant};

use ::redis::Value;

use super::pubsub::Received;
use super::state::Progress;
use super::*;
use crate::base::error::LostReason;
use crate::base::fork::Process;
use crate::base::random::for_any;
use crate::base::token::Token;
use crate::engine::redis::server_of;

const CHANNEL: &str = "crosslock:inbox:id";
const BROKEN: &str = "crosslock:inbox:broken";

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

#[derive(Default)]
struct Told(Mutex<Vec<(String, u64, LostReason)>>);

impl Revocations for Told {
    fn revoked(&self, owner: &str, below: u64, reason: LostReason) {
        self.0.lock().push((owner.to_owned(), below, reason));
    }
}

#[test]
fn owner_whose_lease_was_broken_is_told_and_no_other_message() {
    let told = Arc::new(Told::default());
    let receiver = Receiver::default();
    let weak: Weak<dyn Revocations> = Arc::downgrade(&(told.clone() as Arc<dyn Revocations>));
    receiver.set(weak).unwrap();
    let listener = listener(receiver);
    let owner = Owner::of(Process::current(), Some("a 0 b"));
    for (channel, text, is_told) in [
        (BROKEN, format!("{} 12", owner.as_str()), true),
        (BROKEN, owner.as_str().to_owned(), false),
        (CHANNEL, format!("{} 0", owner.as_str()), false),
    ] {
        let received = pubsub::received(&message_on(channel, text.as_bytes()));
        if let Some(Received::Broken { owner, below }) = received {
            listener.tell_broken(&owner, below);
        }
        let expected = is_told.then_some((owner.as_str().to_owned(), 12, LostReason::Broken));
        assert_eq!(told.0.lock().drain(..).next(), expected);
    }
    drop(told);
    listener.tell_broken(owner.as_str(), 12);
}

#[test]
fn grant_that_was_broken_before_it_was_seen_is_none() {
    let owner = Owner::new();
    let listener = listener(Receiver::default());
    let subscription = Subscription::new(
        listener.clone(),
        (&owner, Arc::default()),
        CHANNEL.into(),
        Hears::Nothing,
    );
    let name = || owner.as_str().to_owned();
    let broken = |below| Received::Broken {
        owner: name(),
        below,
    };
    deliver(&listener, &broken(13));
    assert_eq!(
        subscription.wait(Duration::ZERO, &Deadline::NEVER),
        None,
        "it had nothing"
    );
    let token = Token::from_number(7);
    let grant = Received::Granted {
        channel: CHANNEL.to_owned(),
        owner: name(),
        token,
    };
    let granted = Notification::Granted(token);
    for (below, expected) in [(5, granted), (13, Notification::AskAgain)] {
        deliver(&listener, &grant);
        deliver(&listener, &broken(below));
        let told = subscription.wait(Duration::ZERO, &Deadline::NEVER);
        assert_eq!(told, Some(expected), "of those below {below}");
    }
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
fn waiter_says_at_which_server_it_hears() {
    let (listener, one) = hearing_in_slot(Hears::Nothing);
    let channel = SHARDED.to_owned();
    assert!(one.inbox().is_none());
    deliver(&listener, &Received::Subscribed { channel });
    let server = |one: &Subscription| one.inbox().unwrap().listening().server.map(str::to_owned);
    assert_eq!(server(&one).as_deref(), Some(""), "INFO was denied");
    let id = Received::RunId("01234567".into());
    deliver(&listener, &id);
    assert_eq!(server(&one).as_deref(), Some("01234567"));
    let single = self::listener(Receiver::default());
    let one = waiter(&single, CHANNEL, Hears::Nothing);
    let channel = CHANNEL.to_owned();
    single.state.lock().changes(false);
    deliver(&single, &Received::Subscribed { channel });
    assert_eq!(server(&one), None);
}

#[test]
fn waiter_whose_slot_leaves_the_server_is_told_and_its_subscription_is_over() {
    let (listener, one) = hearing_in_slot(Hears::Nothing);
    let channel = || SHARDED.to_owned();
    let ended = Received::Ended { channel: channel() };
    deliver(&listener, &ended);
    assert!(!one.is_over(), "that answered an earlier SUNSUBSCRIBE");
    deliver(&listener, &Received::Subscribed { channel: channel() });
    assert_eq!(told(&one), Some(Notification::AskAgain));
    assert!(one.is_confirmed());
    let broken = Received::Ended {
        channel: "crosslock:inbox:broken:{a}".to_owned(),
    };
    deliver(&listener, &broken);
    assert_eq!(told(&one), None);
    deliver(&listener, &ended);
    assert_eq!(told(&one), Some(Notification::AskAgain));
    assert!(one.is_over() && one.inbox().is_none());
    // The slot came back: another waiter wants the channel.
    let other = waiter(&listener, SHARDED, Hears::Opening);
    assert!(!other.is_over() && !other.is_confirmed());
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

#[test]
fn waiter_is_told_of_a_server_that_was_replaced() {
    // It takes the connection, and says nothing.
    let peer = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis+cluster://{}/", peer.local_addr().unwrap());
    for _ in 0..5 {
        let server = server_of(&url);
        let listener = Listener::start(server.clone(), Receiver::default()).unwrap();
        let one = waiter(&listener, SHARDED, Hears::Nothing);
        wait_until("the channel to be requested", || {
            listener.state.lock().progress(SHARDED) == Progress::Requested
        });
        let channel = SHARDED.to_owned();
        let mut state = listener.state.lock();
        state.deliver(&Received::Subscribed { channel });
        drop(state);
        assert_eq!(told(&one), Some(Notification::AskAgain));
        server.retire();
        wait_until("the end of its thread", || {
            Arc::strong_count(&listener) == 2
        });
        assert_eq!(told(&one), Some(Notification::AskAgain));
        assert!(one.is_over() && !one.is_confirmed());
    }
}

#[track_caller]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
