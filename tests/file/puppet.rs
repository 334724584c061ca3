//! What a puppet of this suite can be told.

use std::sync::Arc;

use crosslock::{Error, Event, LockGuard, Locker, Observer};

use super::PATIENCE;
use support::puppet::{is_puppet, orders, place, say_holding};
use support::say;

/// Does something when a call begins to wait.
pub(crate) struct Waits<F>(pub(crate) F);

impl<F: Fn() + Send + Sync> Observer for Waits<F> {
    fn event(&self, event: &Event<'_>) {
        if let Event::Waiting { .. } = event {
            (self.0)();
        }
    }
}

#[test]
fn child_obeys() {
    if !is_puppet() {
        return;
    }
    let (url, ttl) = place();
    let lock = Locker::builder(&url).ttl(ttl).label("a puppet");
    let lock = lock.observer(Arc::new(Waits(|| say("waits"))));
    let lock = lock.build().unwrap();
    let mut guard: Option<LockGuard> = None;
    for order in orders() {
        let (verb, name) = order.split_once(' ').unwrap_or((&order, ""));
        match verb {
            "lock" => {
                let taken = guard.insert(lock.lock(name).unwrap());
                say_holding(taken.fencing_token(), taken.was_abandoned());
            }
            "lost" => {
                let lost = guard.as_ref().unwrap().lost().recv_timeout(PATIENCE);
                say(&format!("lost {:?}", lost.unwrap().reason));
            }
            "unlock" => match guard.take().unwrap().unlock() {
                Ok(()) => say("unlocked"),
                Err(Error::Lost { reason, .. }) => say(&format!("unlocked {reason:?}")),
                Err(e) => panic!("{e}"),
            },
            "break" => {
                let broken = lock.break_lock(name).map(|holders| holders.len());
                say(&format!("broke {broken:?}"));
            }
            verb => panic!("{verb:?}"),
        }
    }
}
