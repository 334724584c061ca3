//! What this bench asks ZooKeeper by itself.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use support::RawSession;

const PERSISTENT: i32 = 0;
const EPHEMERAL_SEQUENTIAL: i32 = 3;

const PARENT: &str = "/crosslock-bare";

/// A session of its own, which sends no pings: the bench uses it all the time.
pub(crate) struct Bare {
    session: RawSession,
    node: String,
}

impl Bare {
    pub(crate) fn to(member: SocketAddr) -> Self {
        let mut session = RawSession::open(member, Duration::from_secs(10));
        // Another run may have made it.
        let _ = session.create(PARENT, "", PERSISTENT);
        let node = String::new();
        Bare { session, node }
    }

    /// `create`, and then `getChildren`.
    pub(crate) fn lock(&mut self) {
        let owner = "0b1e6a0e-8d6f-4a63-9a39-3c4c2d1f5e6a/some-host/12345/12346";
        let path = format!("{PARENT}/x-0b1e6a0e-8d6f-4a63-9a39-3c4c2d1f5e6a-");
        let made = self.session.create(&path, owner, EPHEMERAL_SEQUENTIAL);
        self.node = made.expect("a node");
        let children = self.session.children(PARENT).expect("a node");
        assert_eq!(children.len(), 1);
    }

    /// `delete`.
    pub(crate) fn unlock(&mut self) {
        self.session.delete(&self.node).expect("the own node");
    }
}

/// How many packets members have been sent.
pub(crate) fn requests(members: &[SocketAddr]) -> usize {
    members.iter().map(|member| requests_of(*member)).sum()
}

fn requests_of(member: SocketAddr) -> usize {
    let mut stream = TcpStream::connect(member).expect("a member of ZooKeeper");
    stream.write_all(b"srvr").expect("a member");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("its state");
    let received = text
        .lines()
        .find_map(|line| line.strip_prefix("Received: "));
    received.expect("a count").parse().expect("a count")
}
