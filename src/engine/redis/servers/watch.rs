//! A call that has no answer yet watches for another server that takes the place of its own.
//!
//! A server that hangs keeps its connections, so a call to it would wait until its deadline, also long after another took its
//! place. So its deadline is over as soon as that is known; and after [`SLOW`] the call has its server looked up, again and
//! again, each time that its I/O looks whether it was cancelled. All calls share these look-ups.
//!
//! What holds a deadline, such as an idle connection, keeps no server alive by it.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::base::cancel::Cancel;
use crate::base::clock::Deadline;
use crate::base::sys::time;
use crate::engine::redis::server::Server;

/// A call without an answer has its server looked up after so long, and again as often.
pub(super) const SLOW: Duration = Duration::from_millis(250);

/// The same deadline, for a call to this server: it is over when another has taken its place. `is_replaced` begins a look-up,
/// unless one has begun since that instant, and within `SLOW`.
pub(super) fn watched<S: Send + Sync + 'static>(
    servers: Weak<S>,
    server: &Arc<Server>,
    deadline: &Deadline,
    is_replaced: impl Fn(&Arc<S>, &Arc<Server>, Instant) -> bool + Send + Sync + 'static,
) -> Deadline {
    let server = Arc::downgrade(server);
    let (caller, slow) = (deadline.cancel().cloned(), time::now() + SLOW);
    deadline.clone().or(&Cancel::when(move || {
        if caller.as_ref().is_some_and(Cancel::is_set) {
            return true;
        }
        let (Some(servers), Some(server)) = (servers.upgrade(), server.upgrade()) else {
            return false;
        };
        if server.retired().is_set() {
            return true;
        }
        time::now() >= slow && is_replaced(&servers, &server, slow)
    }))
}
