use super::*;

fn waiter() -> Waiter {
    Waiter {
        hears: Hears::Nothing,
        bell: Arc::default(),
        subscriptions: 1,
    }
}

fn subscribed(channel: &str) -> Received {
    let channel = channel.to_owned();
    Received::Subscribed { channel }
}

#[test]
fn channels_that_were_used_once_take_no_room() {
    let mut state = State::default();
    for namespace in 0..50_000 {
        let name: Arc<str> = namespace.to_string().into();
        state.add_waiter(&name, String::new(), waiter());
        let changes = state.changes(namespace % 100 == 0);
        for name in &changes.subscribe {
            state.deliver(&subscribed(name));
        }
        state.remove_waiter(&name, "");
    }
    assert!(state.channels.len() <= 200, "{}", state.channels.len());
    let unused: Vec<_> = (0..2).map(|_| state.changes(true).unsubscribe).collect();
    assert!(!unused.concat().is_empty() && state.is_empty());
    let room = state.channels.capacity() + state.wanted.capacity();
    assert!(room < 500, "{room}");
}
