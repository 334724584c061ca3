//! The server: one lock, and the line of those that wait for it. Each request is one step.

use arrayvec::ArrayVec;

use super::{Mutant, Owner, Setup, TTL, Ticks, Token};

/// The other processes, each of which has one owner: its number.
pub const OTHERS: Owner = 2;

/// Within how many ticks who stands in line has to ask again.
const PROMISE: Ticks = 2;

/// Whether it is that of another process.
pub fn is_other(owner: Owner) -> bool {
    owner < OTHERS
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Server {
    /// `None`: it is free.
    pub lock: Option<Lock>,
    pub line: ArrayVec<Waiter, 4>,
    /// Odd while the lock is held, or since a holder didn't come to its end.
    pub counter: Token,
    /// Grants that are on their way to the process of the threads.
    pub messages: ArrayVec<Message, 3>,
    /// Whether that process hears of grants.
    pub hears: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lock {
    pub owner: Owner,
    pub lasts: Ticks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Waiter {
    pub owner: Owner,
    /// 0: it didn't ask again in time.
    pub overdue: Ticks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    pub owner: Owner,
    pub token: Token,
}

/// What a question is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    Granted(Token),
    /// What is granted later has a token above the counter.
    Taken(Token),
}

/// How a lease ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// By an owner that doesn't know whether it was granted one.
    Unknown,
    Clean {
        last_used: Token,
    },
    Panicked {
        last_used: Token,
    },
}

impl Answer {
    pub fn token(&mut self) -> &mut Token {
        match self {
            Answer::Granted(token) | Answer::Taken(token) => token,
        }
    }
}

impl Ending {
    /// What the counter holds then.
    fn counter(self) -> Option<Token> {
        match self {
            Ending::Unknown => None,
            Ending::Clean { last_used } => Some(last_used + 1),
            Ending::Panicked { last_used } => Some(last_used + 2),
        }
    }

    pub fn last_used(self) -> Option<Token> {
        match self {
            Ending::Unknown => None,
            Ending::Clean { last_used } | Ending::Panicked { last_used } => Some(last_used),
        }
    }

    pub fn token(&mut self) -> Option<&mut Token> {
        match self {
            Ending::Unknown => None,
            Ending::Clean { last_used } | Ending::Panicked { last_used } => Some(last_used),
        }
    }
}

impl Server {
    pub fn new() -> Self {
        Server {
            lock: None,
            line: ArrayVec::new(),
            counter: 0,
            messages: ArrayVec::new(),
            hears: true,
        }
    }

    pub fn is_held_by(&self, owner: Owner) -> bool {
        self.lock.is_some_and(|lock| lock.owner == owner)
    }

    pub fn has_in_line(&self, owner: Owner) -> bool {
        self.line.iter().any(|waiter| waiter.owner == owner)
    }

    pub fn has_message_for(&self, owner: Owner) -> bool {
        self.messages.iter().any(|message| message.owner == owner)
    }

    /// Who has the lock, and who stands in line.
    pub fn owners(&self) -> impl Iterator<Item = Owner> {
        let holder = self.lock.map(|lock| lock.owner);
        let line = self.line.iter().map(|waiter| waiter.owner);
        holder.into_iter().chain(line)
    }

    pub fn for_each_token(&mut self, mut change: impl FnMut(&mut Token)) {
        for message in &mut self.messages {
            change(&mut message.token);
        }
        change(&mut self.counter);
    }

    /// Takes the lock; or enters the line, or stays in it, if the owner waits; or else leaves it.
    pub fn ask(&mut self, owner: Owner, waits: bool, setup: &Setup) -> Answer {
        if let Some(lock) = self.lock.as_mut().filter(|lock| lock.owner == owner) {
            lock.lasts = TTL;
            return Answer::Granted(self.counter);
        }
        if setup.is(Mutant::FreeLockPastLine) && self.lock.is_none() {
            self.leave(owner);
            self.grant(owner, setup);
        }
        self.let_in(Some(owner), setup);
        if self.lock.is_none() {
            self.grant(owner, setup);
        }
        if self.is_held_by(owner) {
            return Answer::Granted(self.counter);
        }
        if !waits {
            self.leave(owner);
        } else if let Some(waiter) = self.line.iter_mut().find(|waiter| waiter.owner == owner) {
            waiter.overdue = PROMISE;
        } else {
            let overdue = PROMISE;
            self.line.push(Waiter { owner, overdue });
        }
        Answer::Taken(self.counter)
    }

    /// Says whether the lock is the owner's.
    pub fn renew(&mut self, owner: Owner) -> bool {
        let lock = self.lock.as_mut().filter(|lock| lock.owner == owner);
        lock.map(|lock| lock.lasts = TTL).is_some()
    }

    /// The owner leaves the line, or the lock goes to the first in line.
    pub fn release(&mut self, owner: Owner, ending: Ending, setup: &Setup) {
        self.leave(owner);
        if self.is_held_by(owner) {
            let known = ending.counter().filter(|after| *after > self.counter);
            self.counter = known.unwrap_or(self.counter + self.counter % 2);
            self.lock = None;
        }
        if !setup.is(Mutant::FreeLockPastLine) {
            self.let_in(None, setup);
        }
    }

    /// Lets time pass.
    pub fn tick(&mut self) {
        if let Some(lock) = &mut self.lock {
            lock.lasts -= 1;
        }
        self.lock = self.lock.filter(|lock| lock.lasts > 0);
        for waiter in &mut self.line {
            // Other processes always ask again in time.
            if !is_other(waiter.owner) {
                waiter.overdue = (waiter.overdue - 1).max(0);
            }
        }
    }

    fn leave(&mut self, owner: Owner) {
        self.line.retain(|waiter| waiter.owner != owner);
    }

    /// A free lock goes to the first in line that still asks, and hears of it. Who asks just now does both.
    fn let_in(&mut self, asking: Option<Owner>, setup: &Setup) {
        while self.lock.is_none() && !self.line.is_empty() {
            let Waiter { owner, overdue } = self.line.remove(0);
            let hears = is_other(owner) || self.hears || setup.is(Mutant::DeafAreLetIn);
            let is_there = overdue > 0 && hears;
            if asking != Some(owner) && !is_there {
                continue;
            }
            self.grant(owner, setup);
            if asking != Some(owner) && !is_other(owner) {
                let token = self.counter;
                self.messages.push(Message { owner, token });
            }
        }
    }

    /// The tokens that an abandoned lease may have used are left out.
    fn grant(&mut self, owner: Owner, setup: &Setup) {
        let is_abandoned = self.counter % 2 == 1;
        let used = if is_abandoned {
            2 * setup.hand_overs + 1
        } else {
            0
        };
        self.counter += used + 1;
        let lasts = TTL;
        self.lock = Some(Lock { owner, lasts });
    }
}
