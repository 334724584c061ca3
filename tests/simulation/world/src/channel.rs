//! The channels that crosslock uses of `crossbeam_channel`, under the same names.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{error, fmt};

use crate::scheduler::{block, may_yield, with};
use crate::sync::WaitId;
use crate::time;

struct Channel<T> {
    messages: Mutex<VecDeque<T>>,
    room: usize,
    senders: AtomicUsize,
    receivers: AtomicUsize,
    came: WaitId,
    taken: WaitId,
}

pub struct Sender<T>(Arc<Channel<T>>);

pub struct Receiver<T>(Arc<Channel<T>>);

/// A channel with room for so many messages. One without room only tells that its other end is gone.
#[must_use]
pub fn bounded<T>(room: usize) -> (Sender<T>, Receiver<T>) {
    let channel = Arc::new(Channel {
        messages: Mutex::default(),
        room,
        senders: AtomicUsize::new(1),
        receivers: AtomicUsize::new(1),
        came: WaitId::new(),
        taken: WaitId::new(),
    });
    (Sender(channel.clone()), Receiver(channel))
}

#[must_use]
pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    bounded(usize::MAX)
}

/// A channel that nothing ever comes through.
#[must_use]
pub fn never<T>() -> Receiver<T> {
    let (sender, receiver) = bounded(1);
    // Its sender is there for ever.
    std::mem::forget(sender);
    receiver
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrySendError<T> {
    Full(T),
    Disconnected(T),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendTimeoutError<T> {
    Timeout(T),
    Disconnected(T),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendError<T>(pub T);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryRecvError {
    Empty,
    Disconnected,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecvTimeoutError {
    Timeout,
    Disconnected,
}

/// Nothing was ready in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyTimeoutError;

impl TryRecvError {
    #[must_use]
    pub fn is_disconnected(self) -> bool {
        self == TryRecvError::Disconnected
    }

    #[must_use]
    pub fn is_empty(self) -> bool {
        self == TryRecvError::Empty
    }
}

impl RecvTimeoutError {
    #[must_use]
    pub fn is_disconnected(self) -> bool {
        self == RecvTimeoutError::Disconnected
    }
}

impl<T> SendTimeoutError<T> {
    #[must_use]
    pub fn is_disconnected(&self) -> bool {
        matches!(self, SendTimeoutError::Disconnected(_))
    }
}

impl<T> TrySendError<T> {
    #[must_use]
    pub fn is_disconnected(&self) -> bool {
        matches!(self, TrySendError::Disconnected(_))
    }

    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self, TrySendError::Full(_))
    }
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("receiving on an empty and disconnected channel")
    }
}

impl error::Error for RecvError {}

impl<T> Channel<T> {
    fn messages(&self) -> std::sync::MutexGuard<'_, VecDeque<T>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_closed(&self) -> bool {
        self.senders.load(Ordering::Relaxed) == 0
    }
}

impl<T> Sender<T> {
    /// # Errors
    ///
    /// Gives the message back where there is no room or no receiver.
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        may_yield();
        if self.0.receivers.load(Ordering::Relaxed) == 0 {
            return Err(TrySendError::Disconnected(message));
        }
        let mut messages = self.0.messages();
        if messages.len() >= self.0.room {
            return Err(TrySendError::Full(message));
        }
        messages.push_back(message);
        drop(messages);
        self.0.came.wake(false);
        Ok(())
    }

    /// # Errors
    ///
    /// Gives the message back where there is no receiver.
    pub fn send(&self, mut message: T) -> Result<(), SendError<T>> {
        loop {
            match self.try_send(message) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Disconnected(it)) => return Err(SendError(it)),
                Err(TrySendError::Full(it)) => message = it,
            }
            block(Some(self.0.taken.get()), None);
        }
    }
}

impl<T> Sender<T> {
    /// # Errors
    ///
    /// Gives the message back where there is no room in time, or no receiver.
    pub fn send_timeout(
        &self,
        mut message: T,
        timeout: Duration,
    ) -> Result<(), SendTimeoutError<T>> {
        let deadline = time::now().checked_add(timeout);
        loop {
            match self.try_send(message) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Disconnected(it)) => {
                    return Err(SendTimeoutError::Disconnected(it));
                }
                Err(TrySendError::Full(it)) => message = it,
            }
            if !await_until(&self.0.taken, deadline) {
                return Err(SendTimeoutError::Timeout(message));
            }
        }
    }
}

/// False: it is time.
fn await_until(what: &WaitId, deadline: Option<Instant>) -> bool {
    let left = deadline.map(|deadline| deadline.saturating_duration_since(time::now()));
    if left == Some(Duration::ZERO) {
        return false;
    }
    let until = left.map(|left| with(|inside| time::due_in(inside, left)));
    block(Some(what.get()), until);
    true
}

impl<T> Receiver<T> {
    /// # Errors
    ///
    /// Says whether something may still come.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        may_yield();
        let message = self.0.messages().pop_front();
        match message {
            Some(message) => {
                self.0.taken.wake(false);
                Ok(message)
            }
            None if self.0.is_closed() => Err(TryRecvError::Disconnected),
            None => Err(TryRecvError::Empty),
        }
    }

    /// # Errors
    ///
    /// Nothing will come.
    pub fn recv(&self) -> Result<T, RecvError> {
        loop {
            match self.try_recv() {
                Ok(message) => return Ok(message),
                Err(TryRecvError::Disconnected) => return Err(RecvError),
                Err(TryRecvError::Empty) => _ = block(Some(self.0.came.get()), None),
            }
        }
    }

    /// # Errors
    ///
    /// Nothing came in time, or nothing will.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        let deadline = time::now().checked_add(timeout);
        self.recv_until(deadline)
    }

    /// # Errors
    ///
    /// Nothing came in time, or nothing will.
    pub fn recv_deadline(&self, deadline: Instant) -> Result<T, RecvTimeoutError> {
        self.recv_until(Some(deadline))
    }

    fn recv_until(&self, deadline: Option<Instant>) -> Result<T, RecvTimeoutError> {
        loop {
            match self.try_recv() {
                Ok(message) => return Ok(message),
                Err(TryRecvError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
                Err(TryRecvError::Empty) if !self.await_one(deadline) => {
                    return Err(RecvTimeoutError::Timeout);
                }
                Err(TryRecvError::Empty) => {}
            }
        }
    }

    /// False: it is time.
    fn await_one(&self, deadline: Option<Instant>) -> bool {
        await_until(&self.0.came, deadline)
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.messages().is_empty()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.0.messages().len()
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.senders.fetch_add(1, Ordering::Relaxed);
        Sender(self.0.clone())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if self.0.senders.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.came.wake(true);
        }
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.0.receivers.fetch_add(1, Ordering::Relaxed);
        Receiver(self.0.clone())
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        if self.0.receivers.fetch_sub(1, Ordering::Relaxed) == 1 {
            // Dropped without the lock: a message may have a sender of this channel.
            let messages = std::mem::take(&mut *self.0.messages());
            drop(messages);
            self.0.taken.wake(true);
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sender { .. }")
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Receiver { .. }")
    }
}

/// Waits until a receiver is ready: for one of them.
#[derive(Default)]
pub struct Select<'a> {
    of: Option<&'a dyn Ready>,
}

trait Ready {
    fn is_ready(&self) -> bool;
    fn await_one(&self, deadline: Option<Instant>) -> bool;
}

impl<T> Ready for Receiver<T> {
    fn is_ready(&self) -> bool {
        !self.is_empty() || self.0.is_closed()
    }

    fn await_one(&self, deadline: Option<Instant>) -> bool {
        Receiver::await_one(self, deadline)
    }
}

impl<'a> Select<'a> {
    #[must_use]
    pub fn new() -> Self {
        Select::default()
    }

    pub fn recv<T>(&mut self, receiver: &'a Receiver<T>) -> usize {
        assert!(self.of.is_none(), "only one receiver is simulated");
        self.of = Some(receiver);
        0
    }

    /// # Errors
    ///
    /// It isn't ready in time.
    pub fn ready_timeout(&mut self, timeout: Duration) -> Result<usize, ReadyTimeoutError> {
        let deadline = time::now().checked_add(timeout);
        let of = self.of.expect("a receiver");
        while !of.is_ready() {
            if !of.await_one(deadline) {
                return Err(ReadyTimeoutError);
            }
        }
        Ok(0)
    }
}
