//! The scripts, and what they answer.

use super::adopt::adopt_all;
use super::release::Released;
use super::several::{acquire_all, release_all, renew_all};
use super::{Acquire, Acquired, Adopt, Broke, Name, Release, Renew, Renewed, Server, Token};

/// A script and its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Call {
    Acquire(Acquire),
    Renew(Renew),
    Release(Release),
    Downgrade { ask: Renew, counter_after: Token },
    Permits,
    Adopt(Adopt),
    Break,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    Acquired(Acquired),
    Renewed(Renewed),
    Released(Released),
    /// 0: the lock isn't the owner's.
    Downgraded(Token),
    Permits(i16),
    /// 0: the lease isn't the other owner's.
    Adopted(Token),
    Broke(Broke),
}

/// Some of the names, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Names {
    pub first: u8,
    pub count: u8,
}

/// In the order of the scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    Lock,
    Counter,
    Queue,
    Waiters,
    Readers,
    Shares,
    Value,
}

impl Key {
    pub const ALL: [Self; 7] = [
        Key::Lock,
        Key::Counter,
        Key::Queue,
        Key::Waiters,
        Key::Readers,
        Key::Shares,
        Key::Value,
    ];
}

impl Names {
    pub const fn one(first: u8) -> Self {
        Names { first, count: 1 }
    }

    pub fn of<T>(self, names: &mut [T]) -> &mut [T] {
        let first = usize::from(self.first);
        &mut names[first..first + usize::from(self.count)]
    }
}

/// Runs a script for these names: the one for one name, or the one for several.
pub fn run(names: &mut [Name], call: Call, server: &mut Server) -> Answer {
    match (call, names) {
        (Call::Acquire(ask), [name]) => Answer::Acquired(name.acquire(ask, server)),
        (Call::Acquire(ask), names) => Answer::Acquired(acquire_all(names, ask, server)),
        (Call::Renew(ask), [name]) => Answer::Renewed(name.renew(ask)),
        (Call::Renew(ask), names) => Answer::Renewed(renew_all(names, ask)),
        (Call::Release(ask), [name]) => Answer::Released(name.release(ask, server)),
        (Call::Release(ask), names) => Answer::Released(release_all(names, ask, server)),
        (Call::Downgrade { ask, counter_after }, names) => {
            Answer::Downgraded(names[0].downgrade(ask, counter_after, server))
        }
        (Call::Permits, names) => Answer::Permits(names[0].permits(server)),
        (Call::Adopt(ask), [name]) => Answer::Adopted(name.adopt(ask, server)),
        (Call::Adopt(ask), names) => Answer::Adopted(adopt_all(names, ask, server)),
        (Call::Break, names) => Answer::Broke(names[0].break_lock(server)),
    }
}

impl Name {
    pub fn delete(&mut self, key: Key) {
        match key {
            Key::Lock => self.lock = None,
            Key::Counter => {
                self.counter = None;
                self.broken.clear();
            }
            Key::Queue => self.queue.clear(),
            Key::Readers => self.readers.clear(),
            Key::Waiters => self.waiters.clear(),
            Key::Shares => self.forget_shares(),
            Key::Value => self.value = None,
        }
    }
}
