//! Clients, what is on its way between them and the server, and the server.
//!
//! Time is in ticks. What is due is done before the next tick, so that nothing is late but by a fault: a packet that
//! is slow, a client that is stopped.

mod actions;
mod asking;
mod faults;
mod holding;
mod operating;
mod tokens;
mod wire;

use arrayvec::ArrayVec;

pub use self::actions::Action;
pub use self::faults::Fault;
use crate::judge::Judge;
use crate::server::{
    Call, Ear, Inbox, Mode, Name, Names, Owner, Released, Renewed, Server, Ticks, Token,
};
use crate::setup::{Setup, Want};

/// How long a lease lasts.
pub const TTL: Ticks = 3;
/// How often a waiter sends a heartbeat, and a holder renews.
pub const EVERY: Ticks = 1;
/// When the next heartbeat is overdue.
pub const PROMISE: Ticks = 2;
/// How long the answer to a question may take.
pub const ANSWERED_WITHIN: Ticks = 2;
/// How long the answer to a renewal, or to a release, may take.
pub const DONE_WITHIN: Ticks = 1;
/// How often a release is tried.
pub const TRIES: u8 = 3;
/// How long a lock stays taken that was released to be kept.
pub const KEEP: Ticks = 2;
pub const CLIENTS: usize = 3;
/// How many hand-overs one lease may make.
pub const HAND_OVERS: Token = 1;
/// Where the clock stands, in the unit of tokens: times are relative to it, so that there are finitely many states.
pub const NOON: Token = 1 << 20;

pub type Wire = ArrayVec<Packet, 10>;
pub type AllNames = ArrayVec<Name, 2>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub names: AllNames,
    /// What a replica has that lags.
    pub replica: Option<Box<AllNames>>,
    pub ears: [Ear; CLIENTS],
    pub clients: ArrayVec<Client, CLIENTS>,
    /// Sorted: in which order packets arrive is open.
    pub wire: Wire,
    /// How many faults may still come.
    pub faults: u8,
    /// How often somebody may still break a lock.
    pub breaks: u8,
    /// A lease that was passed on.
    pub ticket: Option<Ticket>,
    pub judge: Judge,
}

/// One process, with one thread that wants locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Client {
    /// Which of its acquisitions this is.
    pub step: u8,
    pub owner: Owner,
    pub phase: Phase,
    /// The last answer that the lock was taken.
    pub seen: Option<Seen>,
    /// What it heard and hasn't looked at.
    pub news: Option<News>,
    /// Whether it stands still.
    pub stopped: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Before its next acquisition, or after the last.
    Idle,
    /// Its question is on its way, or the answer, or one of them was lost.
    Asking {
        waits: bool,
        age: Ticks,
    },
    /// It goes on with the lease of another.
    Adopting {
        age: Ticks,
    },
    /// In line.
    Waiting {
        due: Ticks,
    },
    Holding(Lease),
    /// It turns its lease into one that reads.
    Downgrading {
        lease: Lease,
        age: Ticks,
    },
    /// It releases its lease.
    Ending {
        lease: Lease,
        ending: Ending,
        age: Ticks,
        tries: u8,
        /// Whether it was held when the release began.
        was_held: bool,
    },
    /// It takes back what it may have been granted without knowing.
    GivingUp {
        age: Ticks,
        tries: u8,
        mode: Mode,
    },
    /// Killed.
    Dead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    pub token: Token,
    pub mode: Mode,
    /// For how long its guard says that it is held.
    pub valid: Ticks,
    /// When it is renewed.
    pub due: Ticks,
    /// How old the renewal is that is on its way.
    pub renewing: Option<Ticks>,
    /// It was told that the lock isn't its own.
    pub refused: bool,
    pub hand_overs: u8,
}

impl Lease {
    /// The token of the grant: each hand-over uses one above it.
    fn granted(&self) -> Token {
        self.token - 2 * Token::from(self.hand_overs)
    }
}

/// A lease on its way from one process to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    pub names: Names,
    pub mode: Mode,
    /// Who has it as long as nobody adopts it.
    pub from: Owner,
    pub last_used: Token,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    Clean,
    Panicked,
    /// The lock stays taken for a while.
    Kept,
    /// It may read by now.
    Downgraded,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Seen {
    /// How long ago that question was sent.
    pub age: Ticks,
    pub counter: Token,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum News {
    Granted(Token),
    Ask,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Packet {
    pub client: u8,
    pub owner: Owner,
    pub body: Body,
    /// It may arrive at any time.
    pub slow: bool,
    /// Nobody waits for the answer any more.
    pub orphan: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Body {
    Request(Call),
    Reply(Reply),
    Grant(Token),
    /// Its lease was broken, whose token is below this one. It may come at any time, or never: nobody has to listen who
    /// holds a lock.
    Revoked(Token),
}

/// What a client makes of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reply {
    Granted(Token),
    Taken {
        counter: Token,
    },
    /// The owner's lease was broken before it knew that it had it.
    Broken,
    Renewed(Renewed),
    Released(Released),
    Downgraded(Token),
    Adopted(Token),
}

impl Lease {
    /// Whether its guard says that it is held.
    pub fn is_held(&self, setup: &Setup) -> bool {
        let late = setup.is(crate::mutant::Mutant::ValidityIgnored);
        !self.refused && (self.valid > 0 || late)
    }
}

impl Client {
    /// The lease of its guard, while it says that it is held.
    pub fn held(&self, setup: &Setup) -> Option<Lease> {
        match self.phase {
            Phase::Holding(lease) if lease.is_held(setup) => Some(lease),
            _ => None,
        }
    }

    /// The lease that it has, or is giving back.
    pub fn lease(&self) -> Option<Lease> {
        match self.phase {
            Phase::Holding(lease)
            | Phase::Downgrading { lease, .. }
            | Phase::Ending { lease, .. } => Some(lease),
            _ => None,
        }
    }

    pub fn is_dead(&self) -> bool {
        self.phase == Phase::Dead
    }
}

impl World {
    pub fn new(setup: &Setup) -> Self {
        let client = |at| Client {
            step: 0,
            owner: Setup::owner(at, 0),
            phase: Phase::Idle,
            seen: None,
            news: None,
            stopped: false,
        };
        World {
            names: (0..setup.names).map(|_| Name::default()).collect(),
            replica: None,
            ears: [Ear::Hears; CLIENTS],
            clients: (0..setup.clients.len()).map(client).collect(),
            wire: Wire::new(),
            faults: setup.faults,
            breaks: setup.breaks,
            ticket: None,
            judge: Judge::new(setup),
        }
    }

    pub fn server<'a>(&self, setup: &Setup, ears: &'a [Ear]) -> Server<'a> {
        Server {
            now: NOON,
            ears,
            hand_overs: HAND_OVERS,
            mutant: setup.mutant,
        }
    }

    pub fn want(&self, setup: &Setup, client: usize) -> Want {
        setup.want(self.clients[client].owner)
    }

    /// Whether a client has acquisitions to make.
    pub fn has_wants(&self, setup: &Setup, client: usize) -> bool {
        usize::from(self.clients[client].step) < setup.clients[client].len()
    }

    pub fn no_fault_yet(&self, setup: &Setup) -> bool {
        self.faults == setup.faults
    }

    fn inbox(client: usize) -> Inbox {
        Inbox::try_from(client).unwrap_or(Inbox::MAX)
    }
}
