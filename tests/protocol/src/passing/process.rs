//! The threads of the process, its local queue, and what passes from one thread to the next.

use arrayvec::ArrayVec;

use super::lease::{Deferred, Guard, Lease};
use super::place::{Asker, Place, Step};
use super::server::Answer;
use super::{Owner, TTL, Token};

/// A thread's number: where it is in [`Process::threads`].
pub type Number = u8;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    pub threads: ArrayVec<Thread, 3>,
    /// `None`: no thread has the seat.
    pub queue: Option<Queue>,
    /// Releases that a thread in the background still has to make.
    pub deferred: ArrayVec<Deferred, 4>,
}

/// The local queue. There is one while somebody has the seat.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Queue {
    pub waiting: ArrayVec<Number, 3>,
    /// Whether it is known here that the lock is taken.
    pub taken: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Thread {
    pub phase: Phase,
    /// Whether the time of its call is over.
    pub over: bool,
    /// How many calls it still has to make, with the one that it is in.
    pub calls: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Between calls.
    Out,
    /// In the local queue.
    Waiting,
    /// It was given the seat, and hasn't looked yet.
    Given(Word),
    Asking(Asker),
    Holding(Guard),
    /// The guard has ended, and its lease is to be handed over or released.
    Ending {
        lease: Lease,
        seat: bool,
        panicked: bool,
        /// Whether the server said that the lock isn't its own.
        gone: bool,
    },
    /// What was to be released is, or is left to be: next is the seat.
    Leaving {
        seat: bool,
        unsaid: Option<Deferred>,
    },
}

/// What comes with the seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Word {
    Ask,
    Wait(Place),
    Have(Lease),
}

/// Something of this process that has an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    pub owner: Owner,
    /// Whether it goes on to a release of that owner, if nothing comes of it.
    pub releases: bool,
}

impl Phase {
    pub fn has_seat(&self) -> bool {
        match self {
            Phase::Out | Phase::Waiting => false,
            Phase::Given(_) => true,
            Phase::Asking(asker) => asker.seat,
            Phase::Holding(guard) => guard.seat,
            Phase::Ending { seat, .. } | Phase::Leaving { seat, .. } => *seat,
        }
    }

    pub fn place(&self) -> Option<&Place> {
        match self {
            Phase::Given(Word::Wait(place)) | Phase::Asking(Asker { place, .. }) => Some(place),
            _ => None,
        }
    }

    pub fn lease(&self) -> Option<&Lease> {
        match self {
            Phase::Given(Word::Have(lease))
            | Phase::Holding(Guard { lease, .. })
            | Phase::Ending { lease, .. } => Some(lease),
            _ => None,
        }
    }

    fn home(&self) -> Option<Home> {
        let is_asked =
            matches!(self, Phase::Asking(asker) if matches!(asker.step, Step::Asked { .. }));
        let unsaid = match self {
            Phase::Leaving { unsaid, .. } => unsaid.map(|unsaid| unsaid.owner),
            _ => None,
        };
        let place = self
            .place()
            .map(|place| (place.owner, place.known || is_asked));
        let held = self.lease().map(|lease| lease.owner).or(unsaid);
        let (owner, releases) = place.or(held.map(|owner| (owner, true)))?;
        Some(Home { owner, releases })
    }

    /// Every token in it.
    fn tokens(&mut self) -> ArrayVec<&mut Token, 3> {
        let mut tokens = ArrayVec::new();
        match self {
            Phase::Out | Phase::Waiting | Phase::Given(Word::Ask) => {}
            Phase::Given(Word::Wait(place)) => tokens.extend(place.token()),
            Phase::Asking(asker) => {
                tokens.extend(asker.place.token());
                if let Step::Asked { answer, .. } = &mut asker.step {
                    tokens.extend(answer.as_mut().map(Answer::token));
                }
            }
            Phase::Given(Word::Have(lease))
            | Phase::Holding(Guard { lease, .. })
            | Phase::Ending { lease, .. } => tokens.push(&mut lease.token),
            Phase::Leaving { unsaid, .. } => {
                tokens.extend(unsaid.as_mut().and_then(|unsaid| unsaid.ending.token()));
            }
        }
        tokens
    }

    fn tick(&mut self) {
        match self {
            Phase::Given(Word::Wait(place)) => place.tick(),
            Phase::Asking(asker) => {
                asker.place.tick();
                match &mut asker.step {
                    Step::Asked { age, .. } => *age = (*age + 1).min(TTL),
                    Step::Wait { due } => *due = (*due - 1).max(0),
                    _ => {}
                }
            }
            Phase::Given(Word::Have(lease)) | Phase::Ending { lease, .. } => lease.tick(),
            Phase::Holding(guard) => guard.tick(),
            _ => {}
        }
    }
}

impl Process {
    pub fn new(calls: &[u8]) -> Self {
        let thread = |calls: &u8| Thread {
            phase: Phase::Out,
            over: false,
            calls: *calls,
        };
        Process {
            threads: calls.iter().map(thread).collect(),
            queue: None,
            deferred: ArrayVec::new(),
        }
    }

    pub fn waits(&self) -> bool {
        self.queue
            .as_ref()
            .is_some_and(|queue| !queue.waiting.is_empty())
    }

    pub fn phases(&self) -> impl Iterator<Item = &Phase> {
        self.threads.iter().map(|thread| &thread.phase)
    }

    pub fn guards(&self) -> impl Iterator<Item = &Guard> {
        self.phases().filter_map(|phase| match phase {
            Phase::Holding(guard) => Some(guard),
            _ => None,
        })
    }

    /// All that has an owner.
    pub fn homes(&self) -> impl Iterator<Item = Home> {
        let deferred = self.deferred.iter().map(|deferred| Home {
            owner: deferred.owner,
            releases: true,
        });
        self.phases().filter_map(Phase::home).chain(deferred)
    }

    /// Whether somebody hears what is said to an owner.
    pub fn hears(&self, owner: Owner) -> bool {
        let mut places = self.phases().filter_map(Phase::place);
        places.any(|place| place.owner == owner && place.listened)
    }

    pub fn for_each_token(&mut self, mut change: impl FnMut(&mut Token)) {
        for thread in &mut self.threads {
            thread.phase.tokens().into_iter().for_each(&mut change);
        }
        let endings = self.deferred.iter_mut();
        endings
            .filter_map(|deferred| deferred.ending.token())
            .for_each(change);
    }

    pub fn tick(&mut self) {
        for thread in &mut self.threads {
            thread.phase.tick();
        }
    }
}
