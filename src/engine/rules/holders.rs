//! Who holds a name.

use crate::base::claim::Mode;
use crate::base::clock::BootInstant;
use crate::base::owner::Owner;
use crate::base::token::Token;

/// Who holds a name, all in one way.
#[derive(Debug, Default)]
pub(super) enum Holders {
    #[default]
    Nobody,
    Exclusive(Holder),
    Readers(Vec<Holder>),
    Permits(Vec<Holder>),
}

/// A share of a name that is taken.
#[derive(Debug)]
pub(super) struct Holder {
    pub(super) who: Who,
    /// How many permits; 1 for others.
    pub(super) count: u32,
    /// Of how many permits; 0 for others.
    pub(super) of: u32,
    /// Since when it is taken.
    pub(super) since: BootInstant,
    /// Until when, if it isn't renewed.
    pub(super) until: BootInstant,
}

/// By whom it is taken.
#[derive(Debug)]
pub(super) enum Who {
    /// By a waiter to whom the name was granted, and who hasn't asked since.
    Granted(Owner),
    /// By a waiter who has a lease, and may not know it yet.
    Given(Owner, Token),
    /// By an owner with a lease.
    Owner(Owner, Token),
    /// By nobody any more: its last holder released it with `at_least_for`.
    Nobody,
}

impl Holder {
    pub(super) fn new(who: Who, mode: Mode, since: BootInstant, until: BootInstant) -> Self {
        let (count, of) = match mode {
            Mode::Exclusive | Mode::Shared => (1, 0),
            Mode::Permits { count, of } => (count, of),
        };
        Holder {
            who,
            count,
            of,
            since,
            until,
        }
    }

    pub(super) fn token(&self) -> Option<Token> {
        match &self.who {
            Who::Given(_, token) | Who::Owner(_, token) => Some(*token),
            Who::Granted(_) | Who::Nobody => None,
        }
    }

    pub(super) fn owner(&self) -> Option<&Owner> {
        match &self.who {
            Who::Granted(owner) | Who::Given(owner, _) | Who::Owner(owner, _) => Some(owner),
            Who::Nobody => None,
        }
    }

    /// When it abandoned the name, if its end does that.
    pub(super) fn abandons(&self) -> Option<BootInstant> {
        let abandons = match &self.who {
            Who::Owner(..) => true,
            // It never knew that it had the lease, nor that the one before it had abandoned it.
            Who::Given(_, token) => token.abandoned,
            Who::Granted(_) | Who::Nobody => false,
        };
        abandons.then_some(self.until)
    }

    fn is_of(&self, one: &Owner) -> bool {
        self.owner() == Some(one)
    }

    /// Whether it is still there. An owner that asks just now is alive, and takes the place that is kept for it.
    fn stays(&self, now: BootInstant, asking: Option<&Owner>) -> bool {
        now < self.until || matches!(&self.who, Who::Granted(owner) if asking == Some(owner))
    }
}

impl Holders {
    pub(super) fn fits(&self, mode: Mode) -> bool {
        match (self, mode) {
            (Holders::Nobody, _) | (Holders::Readers(_), Mode::Shared) => true,
            (Holders::Permits(holders), Mode::Permits { count, of }) => {
                used(holders) + u64::from(count) <= of.into()
            }
            _ => false,
        }
    }

    /// Adds a holder that fits.
    pub(super) fn add(&mut self, mode: Mode, holder: Holder) {
        match (self, mode) {
            (Holders::Readers(holders) | Holders::Permits(holders), _) => holders.push(holder),
            (holders, Mode::Exclusive) => *holders = Holders::Exclusive(holder),
            (holders, Mode::Shared) => *holders = Holders::Readers(vec![holder]),
            (holders, Mode::Permits { .. }) => *holders = Holders::Permits(vec![holder]),
        }
    }

    pub(super) fn has(&self, owner: &Owner, mode: Mode) -> bool {
        match (self, mode) {
            (Holders::Exclusive(_), Mode::Exclusive)
            | (Holders::Readers(_), Mode::Shared)
            | (Holders::Permits(_), Mode::Permits { .. }) => {
                self.holders().iter().any(|holder| holder.is_of(owner))
            }
            _ => false,
        }
    }

    pub(super) fn get_mut(&mut self, owner: &Owner, mode: Mode) -> Option<&mut Holder> {
        match (self, mode) {
            (Holders::Exclusive(holder), Mode::Exclusive) => {
                Some(holder).filter(|holder| holder.is_of(owner))
            }
            (Holders::Readers(holders), Mode::Shared)
            | (Holders::Permits(holders), Mode::Permits { .. }) => {
                holders.iter_mut().find(|holder| holder.is_of(owner))
            }
            _ => None,
        }
    }

    /// Leaves the lease of an owner to nobody, until then, and gives its token; `None` if it has none.
    pub(super) fn keep(&mut self, owner: &Owner, mode: Mode, until: BootInstant) -> Option<Token> {
        let holder = self.get_mut(owner, mode)?;
        let token = holder.token()?;
        (holder.who, holder.until) = (Who::Nobody, until);
        Some(token)
    }

    pub(super) fn remove(&mut self, owner: &Owner, mode: Mode) -> Option<Holder> {
        self.get_mut(owner, mode)?;
        let (Holders::Readers(holders) | Holders::Permits(holders)) = self else {
            return match std::mem::take(self) {
                Holders::Exclusive(holder) => Some(holder),
                _ => None,
            };
        };
        let place = holders.iter().position(|holder| holder.is_of(owner))?;
        let holder = holders.remove(place);
        self.settle();
        Some(holder)
    }

    /// Removes the holders whose time is over; gives the exclusive holder, if it is.
    pub(super) fn expire(&mut self, now: BootInstant, asking: Option<&Owner>) -> Option<Holder> {
        match self {
            Holders::Nobody => None,
            Holders::Exclusive(holder) if holder.stays(now, asking) => None,
            Holders::Exclusive(_) => match std::mem::take(self) {
                Holders::Exclusive(holder) => Some(holder),
                _ => None,
            },
            Holders::Readers(holders) | Holders::Permits(holders) => {
                holders.retain(|holder| holder.stays(now, asking));
                self.settle();
                None
            }
        }
    }

    /// Removes all, in the order in which they came.
    pub(super) fn take(&mut self) -> Vec<Holder> {
        match std::mem::take(self) {
            Holders::Nobody => Vec::new(),
            Holders::Exclusive(holder) => vec![holder],
            Holders::Readers(holders) | Holders::Permits(holders) => holders,
        }
    }

    /// The last of several holders may have left.
    fn settle(&mut self) {
        if matches!(self, Holders::Readers(holders) | Holders::Permits(holders) if holders.is_empty())
        {
            *self = Holders::Nobody;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Holders::Nobody)
    }

    pub(super) fn is_permits(&self) -> bool {
        matches!(self, Holders::Permits(_))
    }

    pub(super) fn holders_mut(&mut self) -> &mut [Holder] {
        match self {
            Holders::Nobody => &mut [],
            Holders::Exclusive(holder) => std::slice::from_mut(holder),
            Holders::Readers(holders) | Holders::Permits(holders) => holders,
        }
    }

    pub(super) fn holders(&self) -> &[Holder] {
        match self {
            Holders::Nobody => &[],
            Holders::Exclusive(holder) => std::slice::from_ref(holder),
            Holders::Readers(holders) | Holders::Permits(holders) => holders,
        }
    }
}

/// How many permits are out.
pub(super) fn used<'a>(holders: impl IntoIterator<Item = &'a Holder>) -> u64 {
    let counts = holders.into_iter().map(|holder| u64::from(holder.count));
    counts.sum()
}
