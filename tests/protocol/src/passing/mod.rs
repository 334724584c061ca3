//! How the threads of one process pass its place, and its lease, from one to the next.
//!
//! Two or three threads want one lock, and two other processes want it too. The threads do what `src/local_queue.rs`,
//! `src/acquire.rs`, `src/asker.rs`, `src/guard/ending.rs`, `src/held.rs` and `src/farewell.rs` do, and names are those
//! of the code. The server is a simple one: its scripts are modelled elsewhere. See `docs/protocol_model.md`.
//!
//! Times are in ticks from now on, and tokens count from the server's counter, so that states which differ in nothing
//! but the hour are the same state. What takes no time is done before the clock ticks. If it isn't, that is a fault, as
//! is a request, an answer or a message that is lost, and only so many things go wrong.

mod asking;
mod holding;
mod judge;
mod lease;
mod model;
mod mutant;
mod place;
mod process;
mod queueing;
mod server;
mod witness;
mod world;

use self::server::OTHERS;

pub use self::judge::Rule;
pub use self::model::Action;
pub use self::mutant::Mutant;
pub use self::witness::NAMES as WITNESSES;
pub use self::world::{Network, State};

/// A time, or how long something lasts.
type Ticks = i8;
/// A fencing token, or what the counter holds.
type Token = i8;
/// Another one for every acquisition; one that nobody knows any more is used again.
type Owner = u8;

/// A set of owners: a bit for each.
type Owners = u8;

/// More owners than there ever are at once.
const OWNERS: Owner = 8;

/// How long a lease lasts.
const TTL: Ticks = 3;
/// A lease that lasts for less isn't handed over, or taken from a message.
const HALF_TTL: Ticks = 2;
/// How long after its grant a lease may be handed over.
const HAND_OVER: Ticks = 1;
/// After which time a holder renews its lease, and a waiter asks again.
const RENEW_AFTER: Ticks = 1;
const HEARTBEAT: Ticks = 1;

/// What there is, and what may happen.
#[derive(Clone, Debug)]
pub struct Setup {
    pub threads: Vec<Caller>,
    /// How often each of the other processes wants the lock.
    pub others: [u8; OTHERS as usize],
    /// How many things may go wrong.
    pub faults: u8,
    /// How often a lease may be handed over.
    pub hand_overs: i8,
    /// Whether a guard may be dropped by a panic, which counts as a fault, as do the next two.
    pub panics: bool,
    /// Whether somebody may delete the lock.
    pub deletions: bool,
    /// Whether the process may crash.
    pub crashes: bool,
    pub mutant: Option<Mutant>,
}

/// A thread, and the calls that it makes.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    pub calls: u8,
    /// Whether its calls may end at any moment without the lock.
    pub timed: bool,
}

fn all(owners: impl Iterator<Item = Owner>) -> Owners {
    owners.fold(0, |all, owner| all | 1 << owner)
}

impl Setup {
    fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }
}
