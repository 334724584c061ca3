//! What the local queue is made of. Its model test puts other types in their place, which try out the orders in
//! which threads can run.
//!
//! A channel here has one receiver, which gives up the processor once and then sleeps: whoever has to wait needn't
//! hurry, because those that hurry take what is offered. To spin before, as other channels do, takes the processor from
//! the thread that is waited for. To sleep at once has it woken at the next offer, in place of the thread that made it:
//! of two on one processor, the other would then find nobody who waits, and ask the engine each time.

use std::{collections::VecDeque, sync::Arc, time::Instant};

use crate::base::sys::sync::{Condvar, MutexGuard};
use crate::base::sys::time;
pub(crate) use crate::base::sys::{collections::HashMap, sync::Mutex};

/// The sending end of a channel.
pub(crate) struct Sender<T>(Arc<Channel<T>>);

/// The receiving end. What is still in the channel is dropped with it.
pub(crate) struct Receiver<T>(Arc<Channel<T>>);

struct Channel<T> {
    inside: Mutex<Inside<T>>,
    came: Condvar,
}

struct Inside<T> {
    messages: VecDeque<T>,
    room: usize,
    has_receiver: bool,
    is_asleep: bool,
}

/// A message that found no room, or nobody to receive it.
pub(crate) struct Unsent<T>(T);

/// The time was over before a message came.
pub(crate) struct Nothing;

pub(crate) fn bounded<T>(room: usize) -> (Sender<T>, Receiver<T>) {
    let inside = Inside {
        messages: VecDeque::with_capacity(room),
        room,
        has_receiver: true,
        is_asleep: false,
    };
    let channel = Arc::new(Channel {
        inside: Mutex::new(inside),
        came: Condvar::new(),
    });
    (Sender(channel.clone()), Receiver(channel))
}

impl<T> Sender<T> {
    pub(crate) fn try_send(&self, message: T) -> Result<(), Unsent<T>> {
        let mut inside = self.0.inside.lock();
        if !inside.has_receiver || inside.messages.len() == inside.room {
            return Err(Unsent(message));
        }
        inside.messages.push_back(message);
        let is_asleep = std::mem::take(&mut inside.is_asleep);
        drop(inside);
        if is_asleep {
            self.0.came.notify_one();
        }
        Ok(())
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Sender(self.0.clone())
    }
}

impl<T> Unsent<T> {
    pub(crate) fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Receiver<T> {
    /// Somebody has to keep a sender.
    pub(crate) fn recv(&self) -> Result<T, Nothing> {
        let mut inside = self.inside_after_others();
        loop {
            if let Some(message) = inside.messages.pop_front() {
                return Ok(message);
            }
            inside.is_asleep = true;
            inside = self.0.came.wait_until(inside, None);
        }
    }

    pub(crate) fn recv_deadline(&self, deadline: Instant) -> Result<T, Nothing> {
        let mut inside = self.inside_after_others();
        loop {
            if let Some(message) = inside.messages.pop_front() {
                return Ok(message);
            }
            if time::now() >= deadline {
                inside.is_asleep = false;
                return Err(Nothing);
            }
            inside.is_asleep = true;
            inside = self.0.came.wait_until(inside, Some(deadline));
        }
    }

    /// Lets others run first if nothing has come.
    fn inside_after_others(&self) -> MutexGuard<'_, Inside<T>> {
        let inside = self.0.inside.lock();
        if !inside.messages.is_empty() {
            return inside;
        }
        drop(inside);
        time::yield_now();
        self.0.inside.lock()
    }

    pub(crate) fn try_recv(&self) -> Result<T, Nothing> {
        self.0.inside.lock().messages.pop_front().ok_or(Nothing)
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut inside = self.0.inside.lock();
        inside.has_receiver = false;
        let messages = std::mem::take(&mut inside.messages);
        // A turn that is dropped locks its queue.
        drop(inside);
        drop(messages);
    }
}
