//! What the local queue is made of, so that a checker chooses at every step which thread goes on.
//!
//! What a thread does with a mutex locked is one step, in which others can't see a difference: only one thing that
//! happens there, the sending of a message, is seen by who hasn't locked it.

use std::cell::Cell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::ops::{Deref, DerefMut};
use std::sync::{self, Arc, PoisonError, TryLockError};
use std::task::{Poll, Waker};
use std::thread::panicking;
use std::time::{Duration, Instant};

use shuttle::future::block_on;
use shuttle::thread;

thread_local! {
    /// Whether the thread that runs can't be interrupted: it has locked something, or has just been chosen.
    static LOCKED: Cell<bool> = const { Cell::new(false) };
    static CHOSEN: Cell<bool> = const { Cell::new(false) };
}

/// Here another thread may go on first.
pub(crate) fn step() {
    if !LOCKED.get() && !CHOSEN.take() {
        thread::sleep(Duration::ZERO);
    }
}

pub(crate) fn spawn(f: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    thread::spawn(|| {
        CHOSEN.set(true);
        f();
    })
}

pub(crate) use std::collections::HashMap;

pub(crate) struct Mutex<T>(sync::Mutex<T>);

pub(crate) struct MutexGuard<'a, T>(sync::MutexGuard<'a, T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Mutex(sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        step();
        match self.0.try_lock() {
            Ok(locked) => {
                LOCKED.set(true);
                MutexGuard(locked)
            }
            Err(TryLockError::Poisoned(locked)) => MutexGuard(locked.into_inner()),
            Err(TryLockError::WouldBlock) => panic!("a thread locks twice"),
        }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        LOCKED.set(false);
    }
}

pub(crate) struct Sender<T>(Arc<sync::Mutex<Channel<T>>>);

pub(crate) struct Receiver<T>(Arc<sync::Mutex<Channel<T>>>);

struct Channel<T> {
    messages: VecDeque<T>,
    room: usize,
    senders: usize,
    has_receiver: bool,
    waits: Option<Waker>,
}

/// A message that found no room or no receiver. The queue sends a turn only to who waits for it.
pub(crate) struct Unsent<T>(T);

#[derive(Debug)]
pub(crate) struct Nothing;

pub(crate) fn bounded<T>(room: usize) -> (Sender<T>, Receiver<T>) {
    let channel = Channel {
        messages: VecDeque::new(),
        room,
        senders: 1,
        has_receiver: true,
        waits: None,
    };
    let channel = Arc::new(sync::Mutex::new(channel));
    (Sender(channel.clone()), Receiver(channel))
}

impl<T> Channel<T> {
    fn of(this: &sync::Mutex<Self>) -> sync::MutexGuard<'_, Self> {
        this.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waits.take() {
            waker.wake();
        }
    }
}

impl<T> Sender<T> {
    pub(crate) fn try_send(&self, message: T) -> Result<(), Unsent<T>> {
        step();
        let mut channel = Channel::of(&self.0);
        if !channel.has_receiver || channel.messages.len() == channel.room {
            return Err(Unsent(message));
        }
        channel.messages.push_back(message);
        channel.wake();
        Ok(())
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Channel::of(&self.0).senders += 1;
        Sender(self.0.clone())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut channel = Channel::of(&self.0);
        channel.senders -= 1;
        channel.wake();
    }
}

impl<T> Unsent<T> {
    pub(crate) fn into_inner(self) -> T {
        if panicking() {
            return self.0;
        }
        // Not dropped: what it belongs to is locked.
        std::mem::forget(self.0);
        panic!("a turn was sent to nobody");
    }
}

impl<T> Receiver<T> {
    pub(crate) fn recv(&self) -> Result<T, Nothing> {
        step();
        let message = block_on(poll_fn(|context| {
            let mut channel = Channel::of(&self.0);
            match channel.messages.pop_front() {
                Some(message) => Poll::Ready(Ok(message)),
                None if channel.senders > 0 => {
                    channel.waits = Some(context.waker().clone());
                    Poll::Pending
                }
                None => Poll::Ready(Err(Nothing)),
            }
        }));
        assert!(message.is_ok(), "who waits for ever was forgotten");
        message
    }

    pub(crate) fn try_recv(&self) -> Result<T, Nothing> {
        step();
        let message = Channel::of(&self.0).messages.pop_front();
        message.ok_or(Nothing)
    }

    /// The others may take any number of steps before this thread looks: so the deadline passes at every moment
    /// there is, before a message comes or after it, and it needs no clock.
    pub(crate) fn recv_deadline(&self, _: Instant) -> Result<T, Nothing> {
        self.try_recv()
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut channel = Channel::of(&self.0);
        channel.has_receiver = false;
        let messages = std::mem::take(&mut channel.messages);
        drop(channel);
        drop(messages);
    }
}
