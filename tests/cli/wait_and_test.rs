//! `wait` and `test`.

use support::RedisServer;

use crate::holders::{end, holder};
use crate::tool::{Place, pause};

#[test]
fn test_says_whether_a_lock_is_free_and_wait_until_it_is() {
    let server = RedisServer::start();
    for place in [Place::with_files(), Place::with_locks_at(&server.url())] {
        place.tool("test a").ends(0);
        place.tool("wait a").ends(0);
        let holder = holder(&place, "a", "end");
        place.tool("test a").ends(1);
        place.tool("wait a -w 100ms").ends(75);
        let mut waits = place.tool("wait a").start();
        pause(300);
        assert!(!waits.is_over());
        end(&place, "end");
        holder.ends(0);
        waits.ends(0);
        // It took nothing.
        place.tool("test a").ends(0);
    }
}
