//! The guard of a lock, which hands its lease over to the next thread when it ends.

use std::sync::{self, Arc, PoisonError};
use std::thread::panicking;

use crate::asker::Right;
use crate::process::{HandsOver, Process, Word};
use crate::sync::step;
use crate::world::{Lease, Seen, World};

/// The lock is held.
pub(crate) struct Guard {
    process: Arc<Process>,
    owner: u64,
    held: Arc<Held>,
}

struct Held(sync::Mutex<State>);

struct State {
    lease: Option<Lease>,
    right: Option<Right>,
    lost: bool,
}

impl Guard {
    pub(crate) fn new(process: &Arc<Process>, lease: Lease, right: Option<Right>) -> Self {
        process.world.book().come_in(&lease);
        let owner = lease.owner;
        let state = State {
            lease: Some(lease),
            right,
            lost: false,
        };
        Guard {
            process: process.clone(),
            owner,
            held: Arc::new(Held(sync::Mutex::new(state))),
        }
    }

    /// Time passes.
    pub(crate) fn hold(&self) {
        step();
    }

    /// What a renewer does that finds the lease gone, in a thread of its own.
    pub(crate) fn loss(&self) -> impl FnOnce() + Send + 'static {
        let (world, owner, held) = (self.process.world.clone(), self.owner, self.held.clone());
        move || {
            world.expire(owner);
            held.lose(&world);
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if panicking() {
            return;
        }
        let world = &self.process.world;
        let (lease, right, lost) = self.held.end();
        world.book().go_out(self.owner);
        let Err((mut lease, right)) = hand_over(&self.process, lease, right) else {
            return;
        };
        if lost {
            lease.spend();
        } else {
            world.release(lease);
        }
        drop(right);
    }
}

fn hand_over(
    process: &Process,
    lease: Lease,
    right: Option<Right>,
) -> Result<(), (Lease, Option<Right>)> {
    let Some(right) = right else {
        return Err((lease, None));
    };
    let hands_over = process.hands_over.next();
    if hands_over == HandsOver::No || !lease.is_valid() || !right.has_successor() {
        return Err((lease, Some(right)));
    }
    let word = Word::Have(lease);
    let given = match hands_over {
        HandsOver::ToAny => right.offer(word),
        _ => right.pass(word),
    };
    match given {
        Err((right, Word::Have(lease))) => Err((lease, Some(right))),
        Err(_) => panic!("the word comes back as it was given"),
        Ok(()) => Ok(()),
    }
}

impl Held {
    fn state(&self) -> sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) -> (Lease, Option<Right>, bool) {
        let mut state = self.state();
        let lease = state.lease.take().expect("it ends once");
        (lease, state.right.take(), state.lost)
    }

    fn lose(&self, world: &World) {
        step();
        let right = {
            let mut state = self.state();
            if state.lease.is_none() {
                return;
            }
            state.lost = true;
            state.right.take()
        };
        if right.as_ref().is_some_and(Right::has_successor) {
            world.book().see(Seen::LostWhileOthersWait);
        }
        drop(right);
    }
}
