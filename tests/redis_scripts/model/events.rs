//! What nobody asked for.

use super::world::World;
use super::{INBOXES, Lock, Model, Step};

pub(super) const FOREIGN_TTL: i64 = 1_000_000;
pub(super) const FOREIGN: &str = "foreign";

impl Model {
    pub(super) fn suffer(&mut self, event: Step, world: &mut World) {
        let [lock, fence, queue, waiters, crowd, holders, value] = world.bench.keys();
        match event {
            Step::LoseLock => {
                world.bench.delete(&lock);
                self.lose_lock();
            }
            Step::ForeignLock { expires } => {
                let ttl = FOREIGN_TTL.to_string();
                let words = ["SET", &lock, FOREIGN, "NX", "PX", &ttl];
                let words = if expires { &words[..] } else { &words[..4] };
                world.bench.query::<()>(words);
                if self.lock.is_none() {
                    self.lock = Some(Lock::Foreign);
                    self.lasts = if expires { FOREIGN_TTL } else { -1 };
                }
            }
            Step::LoseCounter => {
                // Leases that end by themselves take longer than tokens are skipped, unlike here.
                world.bench.wait_for_clock(self.largest + 16);
                world.bench.delete(&fence);
                self.counter = None;
                self.abandoned = false;
            }
            Step::LoseQueue => {
                world.bench.delete(&queue);
                self.torn |= !self.queue.is_empty();
                self.queue.clear();
            }
            Step::LoseCrowd => {
                world.bench.delete(&crowd);
                self.torn |= !self.crowd.is_empty();
                self.crowd.clear();
            }
            Step::LoseWaiters => {
                world.bench.delete(&waiters);
                self.torn |= !self.waiters.is_empty();
                self.waiters.clear();
            }
            Step::LoseShares => {
                world.bench.delete(&holders);
                self.leases.clear();
            }
            Step::LoseValue => {
                world.bench.delete(&value);
                self.value = None;
            }
            Step::Close(inbox) => {
                world.ears.close(INBOXES[inbox]);
                self.open[inbox] = false;
            }
            Step::Open(inbox) => {
                world.ears.open(INBOXES[inbox]);
                self.open[inbox] = true;
            }
            call => panic!("{call:?}"),
        }
    }

    pub(super) fn lose_lock(&mut self) {
        if let Some(Lock::Owner(_)) = self.lock {
            // A server without the counter can't know.
            self.abandoned = self.counter.is_some();
            self.is_shared_since = false;
        }
        self.lock = None;
    }
}
