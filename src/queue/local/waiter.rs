//! A thread in the queue: how it waits, and how it leaves.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::{Label, Left, LookAgain, Message, Turn, Waiter};

/// The turn, and what is offered with it.
type Offered<K, W> = (Turn<K, W>, W);

impl<K: Label, W: Default> Waiter<K, W> {
    /// What has this thread look again; `None` when somebody has that already.
    pub(crate) fn look_again(&mut self) -> Option<LookAgain<K, W>> {
        Some(LookAgain {
            tell: self.tell.take()?,
            told: AtomicBool::new(false),
        })
    }

    /// Waits for the turn, until `deadline` at most, or until it is to look again.
    pub(crate) fn wait(mut self, deadline: Option<Instant>) -> Result<(Turn<K, W>, W), Self> {
        loop {
            let message = match deadline {
                Some(deadline) => self.given.recv_deadline(deadline).ok(),
                // The queue keeps the sender until it has sent the turn.
                None => self.given.recv().ok(),
            };
            match message {
                Some(Message::Turn(turn, handoff)) => {
                    self.left = true;
                    return Ok((turn, handoff));
                }
                Some(Message::Offer) => {
                    if let Some(offered) = self.take_offered() {
                        return Ok(offered);
                    }
                }
                Some(Message::LookAgain) | None => return Err(self),
            }
        }
    }

    /// Leaves the queue, unless the turn was given before, or is offered.
    pub(crate) fn leave(mut self) -> Left<K, W> {
        let (taken, offered) = self.take_out();
        if let Some((turn, handoff)) = offered {
            return Left::Given(turn, handoff);
        }
        while let Ok(message) = self.given.try_recv() {
            if let Message::Turn(turn, handoff) = message {
                return Left::Given(turn, handoff);
            }
        }
        Left::Gone { taken }
    }

    /// Looks at what it was told of, and leaves with it if nobody came first.
    fn take_offered(&mut self) -> Option<Offered<K, W>> {
        let mut locked = self.queues.lock();
        let queue = locked.of.get_mut(&self.key)?;
        queue.has_looked(self.number);
        // If this thread isn't in the queue any more, the turn was sent to it, and so isn't offered.
        let offered = queue.offered.take()?;
        queue.remove(self.number);
        drop(locked);
        self.left = true;
        Some((self.new_turn(), offered))
    }

    /// Whether the lock is known to be taken; and what is offered, which nobody else may have been told of.
    fn take_out(&mut self) -> (bool, Option<Offered<K, W>>) {
        self.left = true;
        let mut locked = self.queues.lock();
        let Some(queue) = locked.of.get_mut(&self.key) else {
            return (false, None);
        };
        queue.has_looked(self.number);
        queue.remove(self.number);
        let (taken, offered) = (queue.taken, queue.offered.take());
        drop(locked);
        (taken, offered.map(|handoff| (self.new_turn(), handoff)))
    }

    fn new_turn(&self) -> Turn<K, W> {
        Turn::new(self.queues.clone(), self.key.clone())
    }
}

impl<K: Label, W: Default> Drop for Waiter<K, W> {
    fn drop(&mut self) {
        if self.left {
            return;
        }
        let (_, offered) = self.take_out();
        if let Some((turn, handoff)) = offered {
            let _ = turn.pass(handoff);
        }
    }
}
