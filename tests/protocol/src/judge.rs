//! The rules of the protocol, and what excuses an exception.
//!
//! The judge sees everything: what guards say of themselves, and what the server does. What it remembers between two
//! steps is in the state; which rule a step broke, and which excuse it used, is there until the next step.

mod endings;
mod guards;
mod line;
mod scripts;
mod waits;

use arrayvec::ArrayVec;
use stateright::Property;

pub(crate) use self::endings::Lost;
use crate::server::{Owner, Token};
use crate::setup::Setup;
use crate::world::{CLIENTS, World};

/// What always holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// While one guard of a name says that it is held, no other does, unless they may share it.
    Exclusion,
    /// Tokens increase in the order of holding, but among those that share.
    Tokens,
    /// No script brings a counter back.
    Counter,
    /// Who waits and lives is served: at once when the lock is released, within one heartbeat whatever went wrong.
    /// Nobody is let in who is known to be dead.
    Service,
    /// First come, first served, and no reader passes those that wait for the lock exclusively.
    Order,
    /// No key is left without a ttl.
    Ttl,
    /// After an acquisition is over the server knows nothing of it.
    NothingLeft,
    /// A guard that said once that it isn't held never says again that it is.
    LostForGood,
    /// `unlock` says Ok only for a lease that was the caller's to the end.
    Unlock,
    /// `abandoned` is true exactly when the exclusive holder before never released, or panicked.
    Abandoned,
    /// A lease that was broken is never renewed, and its owner isn't let in again while it would last.
    Broken,
    /// A renewal is done only of a lease that nobody else had since it was granted.
    Renewal,
}

/// A documented exception from a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Excuse {
    /// Exclusion: the server forgot a lease, and let in another before its holder could know.
    OverlapAfterForgetting,
    /// Tokens, abandoned: a grant was still on its way when the server forgot it, and others held the lock meanwhile.
    GrantFromBefore,
    /// Exclusion: somebody broke a lease, and let in another before its holder could know.
    OverlapAfterBreak,
    /// Tokens: the same, and the lease was handed over meanwhile, or a grant of it was still on its way.
    TokenAfterBreak,
    /// Abandoned: a request that came late took the lock for an owner that was done.
    LateCopyAbandons,
    /// Abandoned: one that was let in died or stood still before it knew; or gave up several names without knowing that
    /// it had them, one of which was abandoned.
    UnknownGrantAbandons,
    /// Abandoned: the server that knew of it forgot; or one of several names was broken, and a late request gave up the
    /// others.
    AbandonmentForgotten,
    /// Abandoned: a replica that lags didn't know of the release.
    ReleaseForgotten,
    /// Order: it couldn't be told, or its heartbeat was overdue.
    PassedOver,
    /// Order: a request that came late stood in line for an owner that was done.
    LateCopyServed,
    /// Order, service, nothing left: the server forgot a part of the line. Who stood in it enters anew, which takes
    /// three heartbeats at most; what is left of it stays for a day.
    LineForgotten,
}

/// What the judge remembers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Judge {
    broken: u16,
    excused: u16,
    pub records: ArrayVec<Record, 2>,
    pub watches: [Watch; CLIENTS],
}

/// Of a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Record {
    /// The largest token of a guard that held it exclusively, and of any guard.
    pub last_exclusive: Token,
    pub last: Token,
    /// The last exclusive holder, if it hasn't released in order.
    pub unreleased: Option<Owner>,
    /// Since the last exclusive grant.
    pub since: Since,
    /// Before that, while no guard was made of it.
    pub before: Since,
    /// Whether the server forgot a part of the line, and not yet the rest.
    pub torn: bool,
    /// Who stands in line, in the order of coming.
    pub line: ArrayVec<Owner, 6>,
}

/// What makes a difference to whether the next holder is told of an abandonment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Since {
    /// A lease ended by itself that never had a guard.
    pub ghost: Option<Ghost>,
    /// The server lost the counter.
    pub forgot: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ghost {
    LateCopy,
    UnknownGrant,
}

/// Of a client's acquisition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Watch {
    /// Another was let in while it had the lock.
    pub intruded: bool,
    /// The server forgot what this client may have been granted.
    pub forgotten: bool,
    /// Somebody broke what it has, or was granted, and it doesn't know.
    pub broken: bool,
    /// A replica brought back what the server had forgotten, or released.
    pub revived: bool,
    /// A copy of a request was served for which nobody waits any more.
    pub late: bool,
    /// The server carried out its release.
    pub released: bool,
    /// Its guard said that it isn't held.
    pub over: bool,
    /// For how many ticks it could have been served and wasn't.
    pub unserved: u8,
}

impl Since {
    fn and(self, other: Since) -> Since {
        Since {
            ghost: self.ghost.or(other.ghost),
            forgot: self.forgot || other.forgot,
        }
    }
}

/// All of them, their names, and for each the property by which the checker looks for it: the condition is a function,
/// which can't be told for which.
macro_rules! all_of {
    ($of:ident, $kind:ident, $test:ident: $($which:ident)+) => {
        impl $of {
            pub const ALL: [$of; [$(stringify!($which)),+].len()] = [$($of::$which),+];

            pub fn name(self) -> &'static str {
                match self {
                    $($of::$which => stringify!($which)),+
                }
            }

            pub(crate) fn properties() -> Vec<Property<Setup>> {
                vec![$(Property::$kind(
                    stringify!($which),
                    |_: &Setup, world: &World| world.judge.$test($of::$which),
                )),+]
            }
        }
    };
}

all_of! { Rule, always, keeps:
    Exclusion Tokens Counter Service Order Ttl NothingLeft LostForGood Unlock Abandoned Broken Renewal
}

all_of! { Excuse, sometimes, uses:
    OverlapAfterForgetting GrantFromBefore OverlapAfterBreak TokenAfterBreak LateCopyAbandons UnknownGrantAbandons
    AbandonmentForgotten ReleaseForgotten PassedOver LateCopyServed LineForgotten
}

impl Judge {
    pub fn new(setup: &Setup) -> Self {
        Judge {
            broken: 0,
            excused: 0,
            records: (0..setup.names).map(|_| Record::default()).collect(),
            watches: Default::default(),
        }
    }

    /// Whether the last step kept a rule.
    pub fn keeps(&self, rule: Rule) -> bool {
        self.broken & 1 << rule as u16 == 0
    }

    /// Whether the last step used an excuse.
    pub fn uses(&self, excuse: Excuse) -> bool {
        self.excused & 1 << excuse as u16 != 0
    }

    pub(crate) fn begin_step(&mut self) {
        (self.broken, self.excused) = (0, 0);
    }

    /// Nobody could know of it before.
    pub(crate) fn begin_fault(&mut self) {
        for watch in &mut self.watches {
            watch.unserved = 0;
        }
    }

    fn broke(&mut self, rule: Rule) {
        self.broken |= 1 << rule as u16;
    }

    fn excuse(&mut self, excuse: Excuse) {
        self.excused |= 1 << excuse as u16;
    }

    /// A rule is broken, unless there is an excuse.
    fn broke_unless(&mut self, rule: Rule, is_excused: bool, excuse: Excuse) {
        if is_excused {
            self.excuse(excuse);
        } else {
            self.broke(rule);
        }
    }
}
