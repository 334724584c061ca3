//! A stored value that a thread waits for: what all primitives have in common that wait for more than a lock.
//!
//! Whoever waits begins to watch, and looks then: so a change before the watch is seen, and one after it is heard of.

use std::time::Duration;

use crate::acquire::Calls;
use crate::base::{Deadline, Error, Key, Result, Stored, sys::time};
use crate::engine::{Engine, Watch};

/// A value that one thread watches, within one call.
pub(super) struct Watched<'a> {
    calls: Calls<'a>,
    key: &'a Key,
    watch: Box<dyn Watch>,
    /// Whether a change was seen that the watch may still tell of.
    is_ahead: bool,
    /// Whether a wait has ended with a change.
    has_told: bool,
}

/// After so long without a word the value is looked at: a message may be lost, as that of a process which is killed
/// between its change and its message.
pub(super) const LOOK: Duration = Duration::from_secs(30);

impl<'a> Watched<'a> {
    pub(super) fn new(calls: Calls<'a>, key: &'a Key) -> Result<Self> {
        let watch = calls.core.engine.watch(key)?;
        Ok(Watched {
            calls,
            key,
            watch,
            is_ahead: false,
            has_told: false,
        })
    }

    /// Blocks until the value is another than that, as it was last seen, or may be; until the deadline at most. Who has
    /// stored it itself may be told of just that, and looks.
    pub(super) fn await_other(
        &mut self,
        seen: Option<&[u8]>,
        is_own: bool,
        until: &Deadline,
    ) -> Result<()> {
        let until = until.clone().or(self.calls.ended_by);
        // A removal needs no lock. A lease that was passed on within the process may have been granted before the
        // removal that has ended the last wait, and still show the removed value.
        let mut may_be_old = std::mem::replace(&mut self.has_told, true);
        while !until.is_over() {
            let is_told = !std::mem::take(&mut may_be_old) && self.changed(&until)?;
            let is_old = is_told && std::mem::take(&mut self.is_ahead);
            if is_told && !is_own && !is_old {
                break;
            }
            if self.load(&until)?.as_deref() != seen {
                self.is_ahead = true;
                break;
            }
        }
        self.check(&until)
    }

    /// Blocks until `look` finds something in the value, which it may do once more at the deadline. What it finds isn't
    /// lost: the servers that must confirm a value have it.
    pub(super) fn find<T>(
        &mut self,
        until: &Deadline,
        mut look: impl FnMut(Stored) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let until = until.clone().or(self.calls.ended_by);
        loop {
            let mut found = look(self.load(&until)?)?;
            if found.is_some()
                && let Some(stored) = self.confirm(&until)?
            {
                found = look(stored)?;
            }
            if found.is_some() || until.is_over() {
                self.check(&until)?;
                return Ok(found);
            }
            self.changed(&until)?;
        }
    }

    fn check(&self, until: &Deadline) -> Result<()> {
        match until.is_cancelled() {
            true => Err(Error::cancelled(self.key.name())),
            false => Ok(()),
        }
    }

    fn changed(&mut self, until: &Deadline) -> Result<bool> {
        let watch = &mut self.watch;
        let changed = || watch.changed(&until.within(LOOK));
        match self.calls.through_outage(until, changed) {
            // The time was over before the watch had begun.
            Err(Error::Unavailable { .. }) if until.is_over() => Ok(false),
            answer => answer,
        }
    }

    fn load(&self, until: &Deadline) -> Result<Stored> {
        let load = |engine: &dyn Engine, by: &Deadline| engine.load(self.key, by);
        self.calls
            .through_outage(until, || self.calls.ask(self.key.name(), load))
    }

    fn confirm(&self, until: &Deadline) -> Result<Option<Stored>> {
        let calls = self.calls;
        calls.through_outage(until, || calls.confirm(self.key))
    }
}

impl Calls<'_> {
    /// Reads a value again that isn't to change any more: see [`Engine::confirm`].
    pub(super) fn confirm(self, key: &Key) -> Result<Option<Stored>> {
        self.ask(key.name(), |engine: &dyn Engine, by: &Deadline| {
            engine.confirm(key, by)
        })
    }

    /// Asks again for what is harmless to repeat, for as long as an outage may last, or until then.
    fn through_outage<T>(self, until: &Deadline, mut ask: impl FnMut() -> Result<T>) -> Result<T> {
        let options = &self.core.options;
        let (mut pauses, began) = (options.backoff.waits(), time::now());
        loop {
            match ask() {
                Err(e @ Error::Unavailable { .. })
                    if !until.is_over() && time::since(began) < options.outage_timeout =>
                {
                    log::debug!("can't wait for a change, asking again: {e}");
                    until.sleep(pauses.next().unwrap_or_default());
                }
                answer => return answer,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::base::{Cancel, Claim, Options, clock::BootClock};
    use crate::core::Core;
    use crate::engine::{Change, Outcome, Request, Wait};

    /// An engine without a value, whose watch of it doesn't begin in time.
    #[derive(Debug)]
    struct Slow;

    impl Engine for Slow {
        fn endpoint(&self) -> &str {
            "a slow one"
        }

        fn new_wait(&self) -> Box<dyn Wait> {
            unreachable!("nobody locks")
        }

        fn change(&self, _: Request<'_>, _: Change<'_>, _: &Deadline) -> Result<Outcome> {
            unreachable!("nobody locks")
        }

        fn load(&self, _: &Key, _: &Deadline) -> Result<Stored> {
            Ok(None)
        }

        fn watch(&self, _: &Key) -> Result<Box<dyn Watch>> {
            Ok(Box::new(Slow))
        }
    }

    impl Watch for Slow {
        fn changed(&mut self, until: &Deadline) -> Result<bool> {
            until.sleep(Duration::MAX);
            Err(Error::unavailable(None, "a slow one", "no answer in time"))
        }
    }

    #[test]
    fn wait_whose_time_ends_while_the_watch_begins_is_over_without_an_error() {
        let core = Core::new(Arc::new(Slow), Options::default(), Arc::new(BootClock));
        let calls = Calls {
            core: &Arc::new(core),
            ended_by: &Cancel::default(),
        };
        let claim = Claim::exclusive("test", "a");
        let mut watched = Watched::new(calls, &claim.key).unwrap();
        let soon = Deadline::after(Duration::from_millis(5));
        watched.await_other(None, false, &soon).unwrap();
        assert_eq!(watched.find(&soon, |_| Ok(None::<()>)).unwrap(), None);
    }
}
