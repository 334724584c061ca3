//! What this bench asks ZooKeeper by itself.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::time::Duration;

use support::RawSession;

use super::shared::Lock;

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
}

impl Lock for Bare {
    /// `create`, and then `getChildren`.
    fn lock(&mut self) -> Option<u64> {
        let owner = "0b1e6a0e-8d6f-4a63-9a39-3c4c2d1f5e6a/some-host/12345/12346";
        let path = format!("{PARENT}/x-0b1e6a0e-8d6f-4a63-9a39-3c4c2d1f5e6a-");
        let made = self.session.create(&path, owner, EPHEMERAL_SEQUENTIAL);
        self.node = made.expect("a node");
        let children = self.session.children(PARENT).expect("a node");
        assert_eq!(children.len(), 1);
        Some(0)
    }

    /// `delete`.
    fn unlock(&mut self) -> Cow<'static, str> {
        self.session.delete(&self.node).expect("the own node");
        "done".into()
    }
}
