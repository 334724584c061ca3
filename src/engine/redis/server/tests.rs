//! How many late questions a server has, and for how long.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use super::*;
use crate::engine::net::IDLE;
use crate::engine::redis::server_of;

/// PING that may have to go out where another command did.
struct Ordered(SameConnection<'static>);

impl Command for Ordered {
    fn packed(&self) -> Vec<u8> {
        ::redis::cmd("PING").packed()
    }

    fn same_connection(&self) -> SameConnection<'_> {
        self.0
    }
}

#[test]
fn no_more_than_some_questions_are_late_and_none_for_long() {
    // Its kernel takes connections and commands, and nobody answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = server_of(&format!("redis://{}/", silent.local_addr().unwrap()));
    for owner in 0..40 {
        let question = Ordered(SameConnection::Asks(owner.to_string().leak()));
        let soon = Deadline::after(Duration::from_millis(10));
        let failed = server.call(&question, Manner::Plain, &soon);
        assert!(failed.unwrap_err().sent);
    }
    assert_eq!(server.late.len(), MOST);
    let takes = |same, at| server.late.take(same, at).is_some();
    let now = Instant::now();
    assert!(!takes(SameConnection::Asks("7"), now));
    assert!(takes(SameConnection::TakesBack("39"), now + IDLE / 2));
    assert_eq!(server.late.len(), MOST - 1);
    assert!(!takes(SameConnection::TakesBack("38"), now + 2 * IDLE));
    assert_eq!(server.late.len(), 0);
}
