//! The threads of this process that want one name: one of them has the turn, the others wait here.
//!
//! The turn is the right to ask the engine for a name, and to hold it. [`Turn`] is owned by one thread or guard at a
//! time. Its owner may pass it to the next thread in the queue, with a hand-off (the type `W`), or offer both to
//! whichever thread comes first. When it is dropped it goes to the next thread with the default hand-off; without one,
//! the queue of that name is gone. So no thread waits for a turn that nobody has.
//!
//! A turn is sent to a thread while the queue is locked, and only to one that is in the queue. A thread that ends its
//! wait takes itself out under the same lock; if it isn't in the queue any more, the turn was sent to it.
//!
//! What is offered lies in the queue. A thread that enters takes it at once, although others wait: it runs already, and
//! they would have to be woken. The first that waits is told of the offer, and keeps its place if it comes too late.
//! Always: *if something is offered, a thread waits that was told of an offer and hasn't looked since.* So who ends its
//! wait takes what is offered, under the same lock: it may be the one that was told.
//!
//! Besides these, a thread is sent one message at most, by whoever has its [`LookAgain`]: to look whether it still
//! wants to wait. It says nothing about the turn, so it may come at any time, and late.

use std::collections::{VecDeque, hash_map::Entry};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fmt, hash::Hash, sync::Arc, time::Instant};

use super::sync::{HashMap, Mutex, Receiver, Sender, bounded};

/// The queues of all names in which this process has an interest at the moment.
pub(crate) struct LocalQueues<K: Label, W: Default>(Arc<Mutex<Queues<K, W>>>);

/// The name of a queue.
pub(crate) trait Label: Clone + Eq + Hash {}

impl<K: Clone + Eq + Hash> Label for K {}

struct Queues<K: Label, W: Default> {
    of: HashMap<K, Queue<K, W>>,
    /// The number of the next thread to wait.
    next: u64,
}

/// The queue of a name whose turn a thread or a guard has, or whose turn is offered.
struct Queue<K: Label, W: Default> {
    waiting: VecDeque<Waiting<K, W>>,
    /// The hand-off that is for whoever comes, while nobody has the turn.
    offered: Option<W>,
    /// The thread that was told of an offer, and hasn't looked since: it waits, or is about to be sent the turn.
    told: Option<u64>,
    /// Whether this process knows that the lock is taken.
    taken: bool,
}

struct Waiting<K: Label, W: Default> {
    number: u64,
    /// Has room for the turn, the offer and the other message: one of each at most is in there.
    give: Sender<Message<K, W>>,
}

/// What is sent to a thread that waits.
enum Message<K: Label, W: Default> {
    Turn(Turn<K, W>, W),
    /// The turn was offered: another may have taken it since.
    Offer,
    /// What would end its wait may have come.
    LookAgain,
}

/// Wakes a waiting thread, once, so that it checks whether its call was cancelled.
pub(crate) struct LookAgain<K: Label, W: Default> {
    tell: Sender<Message<K, W>>,
    told: AtomicBool,
}

impl<K: Label, W: Default> LookAgain<K, W> {
    pub(crate) fn tell(&self) {
        // Once: the room for the turn stays.
        if !self.told.swap(true, Ordering::Relaxed) {
            // A thread that doesn't wait any more needn't look.
            let _ = self.tell.try_send(Message::LookAgain);
        }
    }
}

/// The right of one thread of this process to deal with the engine for a name.
pub(crate) struct Turn<K: Label, W: Default> {
    queues: Arc<Mutex<Queues<K, W>>>,
    key: K,
    /// Whether another thread has it now.
    passed: bool,
}

/// A thread in a queue. It leaves when this is dropped.
pub(crate) struct Waiter<K: Label, W: Default> {
    queues: Arc<Mutex<Queues<K, W>>>,
    key: K,
    number: u64,
    given: Receiver<Message<K, W>>,
    /// The other end, until somebody may have it look again.
    tell: Option<Sender<Message<K, W>>>,
    /// Whether it isn't in the queue any more.
    left: bool,
}

/// How a thread begins.
pub(crate) enum Entered<K: Label, W: Default> {
    First(Turn<K, W>),
    /// With what was offered, ahead of those that wait.
    Offered(Turn<K, W>, W),
    Behind(Waiter<K, W>),
}

/// How the wait of a thread ends that doesn't wait any longer.
pub(crate) enum Left<K: Label, W: Default> {
    /// The turn came at the last moment, or was offered.
    Given(Turn<K, W>, W),
    Gone {
        /// Whether the lock is known to be taken.
        taken: bool,
    },
}

impl<K: Label, W: Default> LocalQueues<K, W> {
    /// Takes the turn of a name, or enters its queue.
    pub(crate) fn enter(&self, key: &K) -> Entered<K, W> {
        let mut locked = self.0.lock();
        let number = locked.next;
        let mut queue = match locked.of.entry(key.clone()) {
            Entry::Occupied(queue) => queue,
            Entry::Vacant(place) => {
                place.insert(Queue::default());
                drop(locked);
                return Entered::First(Turn::new(self.0.clone(), key.clone()));
            }
        };
        if let Some(offered) = queue.get_mut().offered.take() {
            drop(locked);
            let turn = Turn::new(self.0.clone(), key.clone());
            return Entered::Offered(turn, offered);
        }
        let (give, given) = bounded(3);
        let tell = Some(give.clone());
        queue.get_mut().waiting.push_back(Waiting { number, give });
        locked.next += 1;
        drop(locked);
        Entered::Behind(Waiter {
            queues: self.0.clone(),
            key: key.clone(),
            number,
            given,
            tell,
            left: false,
        })
    }

    /// How many threads wait for a turn, of these names.
    #[cfg(feature = "testing")]
    pub(crate) fn waiting(&self, is_one: impl Fn(&K) -> bool) -> usize {
        let locked = self.0.lock();
        let queues = locked.of.iter().filter(|(key, _)| is_one(key));
        queues.map(|(_, queue)| queue.waiting.len()).sum()
    }

    /// For how many names there is memory.
    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        self.0.lock().of.capacity()
    }

    /// How many threads have a turn or wait for one.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        let locked = self.0.lock();
        locked
            .of
            .values()
            .map(|queue| 1 + queue.waiting.len())
            .sum()
    }
}

impl<K: Label, W: Default> Turn<K, W> {
    fn new(queues: Arc<Mutex<Queues<K, W>>>, key: K) -> Self {
        Turn {
            queues,
            key,
            passed: false,
        }
    }

    /// Says whether the lock is known to be taken, for threads that don't wait for it.
    pub(crate) fn set_taken(&self, taken: bool) {
        if let Some(queue) = self.queues.lock().of.get_mut(&self.key) {
            queue.taken = taken;
        }
    }

    /// How many threads wait for the turn.
    pub(crate) fn successors(&self) -> usize {
        let locked = self.queues.lock();
        let queue = locked.of.get(&self.key);
        queue.map_or(0, |queue| queue.waiting.len())
    }

    pub(crate) fn has_successor(&self) -> bool {
        self.successors() > 0
    }

    /// Gives the turn to whichever thread comes or looks first, or back if none waits.
    pub(crate) fn offer(mut self, handoff: W) -> Result<(), (Self, W)> {
        let queues = self.queues.clone();
        let mut locked = queues.lock();
        let Some(queue) = locked.of.get_mut(&self.key) else {
            drop(locked);
            return Err((self, handoff));
        };
        let Some(first) = queue.waiting.front() else {
            drop(locked);
            return Err((self, handoff));
        };
        self.passed = true;
        queue.offered = Some(handoff);
        // One at a time: more would look in vain.
        if queue.told.is_none() {
            queue.told = Some(first.number);
            let tell = first.give.clone();
            // It will lock the queue.
            drop(locked);
            // A thread that has left has taken what was offered, or found that another had.
            let _ = tell.try_send(Message::Offer);
        }
        Ok(())
    }

    /// Gives the turn to the next in the queue, or back if there is none.
    pub(crate) fn pass(mut self, handoff: W) -> Result<(), (Self, W)> {
        let queues = self.queues.clone();
        let mut locked = queues.lock();
        let Some(queue) = locked.of.get_mut(&self.key) else {
            drop(locked);
            return Err((self, handoff));
        };
        match queue.give(handoff, || Turn::new(queues.clone(), self.key.clone())) {
            Ok(()) => {
                self.passed = true;
                Ok(())
            }
            Err(handoff) => {
                drop(locked);
                Err((self, handoff))
            }
        }
    }
}

impl<K: Label, W: Default> Drop for Turn<K, W> {
    fn drop(&mut self) {
        if self.passed {
            return;
        }
        let mut locked = self.queues.lock();
        let Entry::Occupied(mut queue) = locked.of.entry(self.key.clone()) else {
            return;
        };
        queue.get_mut().taken = false;
        let turn = || Turn::new(self.queues.clone(), self.key.clone());
        if queue.get_mut().give(W::default(), turn).is_err() {
            queue.remove();
            locked.shrink();
        }
    }
}

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

impl<K: Label, W: Default> Queue<K, W> {
    /// If this was the thread that was told of an offer, the next offer is told anew.
    fn has_looked(&mut self, number: u64) {
        if self.told == Some(number) {
            self.told = None;
        }
    }

    fn remove(&mut self, number: u64) {
        self.waiting.retain(|one| one.number != number);
    }

    /// Gives a new turn to the first thread that waits, or the hand-off back if none does.
    fn give(&mut self, mut handoff: W, turn: impl Fn() -> Turn<K, W>) -> Result<(), W> {
        while let Some(next) = self.waiting.pop_front() {
            self.has_looked(next.number);
            // It has room for this one message, and a receiver for as long as its thread is in the queue.
            let Err(unsent) = next.give.try_send(Message::Turn(turn(), handoff)) else {
                return Ok(());
            };
            let Message::Turn(mut turn, kept) = unsent.into_inner() else {
                return Ok(());
            };
            turn.passed = true;
            handoff = kept;
        }
        Err(handoff)
    }
}

impl<K: Label, W: Default> Queues<K, W> {
    fn shrink(&mut self) {
        const SMALL: usize = 64;
        if self.of.is_empty() && self.of.capacity() > SMALL {
            self.of.shrink_to_fit();
        }
    }
}

impl<K: Label, W: Default> Default for LocalQueues<K, W> {
    fn default() -> Self {
        LocalQueues(Arc::new(Mutex::new(Queues {
            of: HashMap::default(),
            next: 0,
        })))
    }
}

impl<K: Label, W: Default> Default for Queue<K, W> {
    fn default() -> Self {
        Queue {
            waiting: VecDeque::new(),
            offered: None,
            told: None,
            taken: false,
        }
    }
}

impl<K: Label, W: Default> fmt::Debug for LocalQueues<K, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.lock().of.len();
        f.debug_struct("LocalQueues")
            .field("names", &names)
            .finish_non_exhaustive()
    }
}

impl<K: Label, W: Default> fmt::Debug for Turn<K, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").finish_non_exhaustive()
    }
}
