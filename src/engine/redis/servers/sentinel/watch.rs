//! How a call without an answer hears of the next master.

use std::sync::Arc;
use std::time::Instant;

use super::Sentinels;
use super::lookup::{AFTER_FIRST, Lookup};
use crate::base::clock::Deadline;
use crate::base::sys::time;
use crate::engine::redis::server::Server;
use crate::engine::redis::servers::watch::{SLOW, watched};

impl Sentinels {
    /// The same deadline, for a call to this master: it is over when another has taken its place.
    pub(super) fn watched(&self, master: &Arc<Server>, deadline: &Deadline) -> Deadline {
        watched(
            self.me.clone(),
            master,
            deadline,
            |sentinels, master, since| {
                sentinels.look_beside(since);
                master.retired().is_set()
            },
        )
    }

    /// Begins a look-up, if there is none from `since` or later that is as good, and takes over what it has found.
    fn look_beside(&self, since: Instant) {
        let last = self.state.lock().lookup.clone();
        let is_recent =
            |lookup: &Arc<Lookup>| lookup.began >= since && time::since(lookup.began) < SLOW;
        let lookup = last.filter(is_recent);
        let lookup = lookup.unwrap_or_else(|| self.join_or_start());
        if !lookup.is_undecided() {
            // Without an answer nothing is known, as before.
            let _ = self.believe(&lookup, &lookup.wait(AFTER_FIRST, &Deadline::NEVER));
        }
    }
}
