//! Users who may not hear of grants: they are served all the same, only later.

use std::thread;

use crosslock::Locker;

use super::rights::{OURS, denials, server_with, url_of, user};
use super::*;
use support::wait_until;

#[test]
fn waiter_that_may_not_hear_is_served_by_its_heartbeats() {
    const KEYS: &str = "~{crosslock:* resetchannels";
    // Without the command, without any channel, with the channels of others.
    let server = server_with(&[
        user("no-subscribe", OURS, Some("subscribe")),
        user("no-channel", KEYS, None),
        user("others-channel", &format!("{KEYS} &other:inbox:*"), None),
    ]);
    let app = open(&server.url());
    for name in ["no-subscribe", "no-channel", "others-channel"] {
        // Its heartbeats come every second.
        let waiting = Locker::builder(&url_of(&server, name)).ttl(millis(3_000));
        let waiting = waiting.build().expect("open");
        let guard = held(&app);
        thread::scope(|scope| {
            let waiter = scope.spawn(|| waiting.lock(NAME).unwrap());
            wait_for_line(&server, 1);
            wait_until("it may not hear", PATIENCE, || !denials(&server).is_empty());
            guard.unlock().unwrap();
            assert!(server.get(LOCK).is_some(), "it is the waiter's now");
            waiter.join().unwrap().unlock().unwrap();
        });
        assert_released(&server);
    }
}
