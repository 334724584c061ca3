//! What a Redis server holds of one name, and the scripts of `lua/` as steps on it.
//!
//! A script is one step, as it is on a server. The names of what is here are those of the scripts; times are in ticks
//! from now on, so that states which differ in nothing but the hour are the same state.

mod acquire;
mod adopt;
mod breaks;
mod event;
mod grant;
mod line;
mod name;
mod release;
mod renew;
mod script;
mod several;

use std::fmt::{self, Debug, Display};
use std::str::FromStr;

pub use self::event::{Answer, Call, Key, Names, run};
use self::name::remove_first;
pub use self::release::Released;

/// A fencing token, or what a counter holds.
pub type Token = i64;
/// A time from now, or how long something lasts.
pub type Ticks = i8;
/// Who asks: another for every acquisition.
pub type Owner = u8;
/// The channel of a process: an index into what [`Server::ears`] says of them.
pub type Inbox = u8;

/// What was published, in order.
pub type Messages = Vec<Message>;

/// How a lock is wanted: as text it is what the scripts have, `x`, `w`, `r`, `R` or `<count>/<permits>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    Exclusive,
    /// The same, and before those that wait to read.
    Writer,
    Read,
    /// The same, and before those that wait for the lock exclusively. Only who asks has it: it is held as `Read`.
    EagerRead,
    Permits {
        count: u8,
        of: u8,
    },
}

/// What `KEYS[1]` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Says {
    Owner(Owner),
    /// A client of another kind has it.
    Foreign,
    Readers,
    /// And how many are out.
    Permits(i16),
    /// Nobody has it, and nobody is let in until it expires.
    Kept,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lock {
    pub says: Says,
    /// `None`: it has no ttl.
    pub lasts: Option<Ticks>,
}

/// The letters behind the counter: which lines there may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Letters {
    pub queue: bool,
    pub readers: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Counter {
    pub number: Token,
    pub letters: Letters,
}

/// What `KEYS[4]` says of one who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Waiter {
    pub owner: Owner,
    /// 0 and less: its heartbeat is overdue.
    pub overdue: Ticks,
    pub ttl: Ticks,
    pub mode: Mode,
    /// `None`: it can't hear.
    pub inbox: Option<Inbox>,
}

/// A member of `KEYS[6]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Share {
    pub owner: Owner,
    pub count: u8,
    /// It is nobody's any more, and stays out for a while.
    pub kept: bool,
    /// 0: it is over.
    pub lasts: Ticks,
    /// 0 of one that is kept.
    pub token: Token,
}

/// A lease that somebody broke, as the counter's key names it behind the letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BrokenLease {
    pub owner: Owner,
    /// 0: it would be over.
    pub lasts: Ticks,
}

/// The keys of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Name {
    pub lock: Option<Lock>,
    pub counter: Option<Counter>,
    /// A part of the counter's key. Sorted by owner.
    pub broken: Vec<BrokenLease>,
    pub queue: Vec<Owner>,
    pub readers: Vec<Owner>,
    /// Sorted by owner.
    pub waiters: Vec<Waiter>,
    /// Sorted by owner.
    pub shares: Vec<Share>,
    /// How long the key of the shares lasts.
    pub shares_last: Ticks,
    pub value: Option<u16>,
}

/// Whether what is published to an inbox is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ear {
    Hears,
    /// Its connection is gone, and the server knows.
    Gone,
    /// It mustn't be told.
    Forbidden,
}

/// The channel on which all inboxes hear whose leases were broken.
pub const BROADCAST: Inbox = Inbox::MAX;

/// A grant that was published; token 0 asks its owner to ask again. Told to all, that its lease was broken: its token
/// is below this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    pub inbox: Inbox,
    pub owner: Owner,
    pub token: Token,
}

/// What a script runs with, besides its keys and arguments.
#[derive(Debug)]
pub struct Server {
    /// Its clock, in the unit of tokens.
    pub now: Token,
    pub ears: Vec<Ear>,
    /// What is published.
    pub messages: Messages,
}

/// The arguments of the acquire scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Acquire {
    pub owner: Owner,
    pub ttl: Ticks,
    pub mode: Mode,
    /// `None`: it doesn't wait.
    pub wait: Option<Wait>,
    pub valued: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Wait {
    /// In how many ticks the next heartbeat is overdue.
    pub promise: Ticks,
    pub inbox: Option<Inbox>,
}

/// The arguments of the release scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Release {
    pub owner: Owner,
    /// What the counter becomes; 0 when the owner doesn't know whether it was granted a token.
    pub counter_after: Token,
    pub mode: Mode,
    pub value: Option<u16>,
    pub keep: Option<Ticks>,
}

/// The arguments of the renew scripts; those of the downgrade script are the same, and a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Renew {
    pub owner: Owner,
    /// 0: only look.
    pub ttl: Ticks,
    pub mode: Mode,
    pub value: Option<u16>,
    /// The token that the holder was granted; 0: it doesn't say.
    pub granted: Token,
}

/// The arguments of the adopt scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Adopt {
    pub owner: Owner,
    pub ttl: Ticks,
    pub mode: Mode,
    /// Who has the lease.
    pub from: Owner,
    /// The last token that was used under it, and 1.
    pub counter_after: Token,
}

/// What the break script answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Broke {
    pub holders: u8,
    /// Of an exclusive holder.
    pub token: Token,
}

/// What the renew scripts answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Renewed {
    NotOwner = 0,
    Done = 1,
    /// It isn't the owner's, because somebody broke it.
    Broken = 2,
}

/// What the acquire scripts answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Acquired {
    Granted {
        token: Token,
        /// To one who asks for the value, too.
        value: Option<Option<u16>>,
    },
    Taken(Taken),
    /// The owner's lease was broken.
    Broken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Taken {
    pub remaining: Remaining,
    pub counter: Token,
    pub stood: bool,
    pub known: bool,
    pub length: u8,
    pub holder: Option<Owner>,
}

/// How long a key lasts, as PTTL says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Remaining {
    /// There is no such key.
    Absent,
    Endless,
    Ticks(Ticks),
}

impl Waiter {
    /// Whether it keeps its place: one that has an inbox does, until its heartbeat is overdue for its ttl.
    pub fn lives(&self) -> bool {
        self.overdue > 0 || (self.inbox.is_some() && self.overdue > -self.ttl)
    }
}

impl Mode {
    pub fn is_exclusive(self) -> bool {
        matches!(self, Mode::Exclusive | Mode::Writer)
    }

    pub fn is_read(self) -> bool {
        matches!(self, Mode::Read | Mode::EagerRead)
    }

    /// As it is held, or waits.
    pub fn held(self) -> Mode {
        match self {
            Mode::EagerRead => Mode::Read,
            other => other,
        }
    }

    /// How many permits an owner takes; 1 for one that reads.
    pub fn count(self) -> u8 {
        match self {
            Mode::Permits { count, .. } => count,
            _ => 1,
        }
    }
}

impl Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mode::Exclusive => f.write_str("x"),
            Mode::Writer => f.write_str("w"),
            Mode::Read => f.write_str("r"),
            Mode::EagerRead => f.write_str("R"),
            Mode::Permits { count, of } => write!(f, "{count}/{of}"),
        }
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let permits = || {
            let (count, of) = text.split_once('/')?;
            let (count, of) = (count.parse().ok()?, of.parse().ok()?);
            Some(Mode::Permits { count, of })
        };
        match text {
            "x" => Ok(Mode::Exclusive),
            "w" => Ok(Mode::Writer),
            "r" => Ok(Mode::Read),
            "R" => Ok(Mode::EagerRead),
            _ => permits().ok_or_else(|| format!("no mode: {text:?}")),
        }
    }
}

impl Release {
    /// Of an owner that doesn't know what it has.
    pub fn unknown(owner: Owner, mode: Mode) -> Self {
        Release {
            owner,
            counter_after: 0,
            mode,
            value: None,
            keep: None,
        }
    }
}

impl Says {
    pub fn is_shared(self) -> bool {
        matches!(self, Says::Readers | Says::Permits(_))
    }
}

impl Letters {
    const BOTH: Letters = Letters {
        queue: true,
        readers: true,
    };

    fn any(self) -> bool {
        self.queue || self.readers
    }
}
