//! What a run of the model begins with: who wants what, and what may go wrong.

use crate::mutant::Mutant;
use crate::server::{Mode, Names, Owner};
use crate::world::Fault;

/// How long a caller waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Patience {
    /// It asks once.
    Try,
    /// Until it has the lock.
    Lock,
    /// Until it has the lock, or any time before.
    Timed,
    /// It goes on with a lease that another passes on.
    Adopt,
}

/// One acquisition of a client.
#[derive(Clone, Copy, Debug)]
pub struct Want {
    pub names: Names,
    pub mode: Mode,
    pub patience: Patience,
}

/// What a holder may do besides releasing its lock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choices {
    pub panics: bool,
    pub downgrades: bool,
    /// Gives its lease to another thread of its process.
    pub hands_over: bool,
    /// Has the lock stay taken when it is released.
    pub keeps: bool,
    /// Passes its lease on to another process, once.
    pub passes_on: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub title: &'static str,
    /// What each client wants, one after the other.
    pub clients: &'static [&'static [Want]],
    pub names: u8,
    /// How often somebody breaks a lock.
    pub breaks: u8,
    /// How many faults there may be.
    pub faults: u8,
    /// Of which kinds.
    pub kinds: &'static [&'static [Fault]],
    pub choices: Choices,
    pub mutant: Option<Mutant>,
}

impl Setup {
    pub fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    pub fn may(&self, fault: Fault) -> bool {
        self.kinds.iter().any(|kinds| kinds.contains(&fault))
    }

    /// The owner of a client's acquisition.
    pub fn owner(client: usize, step: u8) -> Owner {
        u8::try_from(client).unwrap_or(u8::MAX) + 4 * step
    }

    pub fn client_of(owner: Owner) -> usize {
        usize::from(owner % 4)
    }

    /// Which of its client's acquisitions an owner is of.
    pub fn step_of(owner: Owner) -> u8 {
        owner / 4 % 8
    }

    pub fn want(&self, owner: Owner) -> Want {
        self.clients[Self::client_of(owner)][usize::from(Self::step_of(owner))]
    }
}
