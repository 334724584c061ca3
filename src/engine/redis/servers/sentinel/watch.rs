//! A call that has no answer yet watches for the next master.
//!
//! A master that hangs keeps its connections, so a call to it would wait until its deadline, also long after another server
//! took its place. So its deadline is over as soon as the master is known to be replaced; and after [`SLOW`] the call has
//! it looked up, again and again, each time that its I/O looks whether it was cancelled. All calls share these look-ups.
//!
//! What holds a deadline, such as an idle connection, keeps no server alive by it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Sentinels;
use super::lookup::{AFTER_FIRST, Lookup};
use crate::base::cancel::Cancel;
use crate::base::clock::Deadline;
use crate::base::sys::time;
use crate::engine::redis::server::Server;

/// A call without an answer looks for the next master after so long, and again as often.
const SLOW: Duration = Duration::from_millis(250);

impl Sentinels {
    /// The same deadline, for a call to this master: it is over when another has taken its place.
    pub(super) fn watched(&self, master: &Arc<Server>, deadline: &Deadline) -> Deadline {
        let (sentinels, master) = (self.me.clone(), Arc::downgrade(master));
        let (caller, slow) = (deadline.cancel().cloned(), time::now() + SLOW);
        deadline.clone().or(&Cancel::when(move || {
            if caller.as_ref().is_some_and(Cancel::is_set) {
                return true;
            }
            let (Some(sentinels), Some(master)) = (sentinels.upgrade(), master.upgrade()) else {
                return false;
            };
            if time::now() >= slow && !master.retired().is_set() {
                sentinels.look_beside(slow);
            }
            master.retired().is_set()
        }))
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
