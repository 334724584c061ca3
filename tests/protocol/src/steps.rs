//! What may happen to a server, at random.

use crate::server::{Ear, Inbox, Key, Mode, Names, Owner, Ticks, Token, Wait};
use proptest::prelude::*;

pub const OWNERS: Owner = 6;
/// The last two start as one that is gone and one that mustn't be told.
pub const INBOXES: Inbox = 4;
/// Names of which somebody may want several.
pub const NAMES: u8 = 3;

/// Who asks, for what, and how.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    pub names: Names,
    pub mode: Mode,
    /// Asks for the value, and stores one.
    pub valued: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum Step {
    Ask {
        owner: Owner,
        ttl: Ticks,
        wait: Option<Wait>,
    },
    /// By whoever holds the name, if by nobody else. A ttl of 0 only looks.
    Renew {
        owner: Option<Owner>,
        ttl: Ticks,
    },
    Release {
        owner: Option<Owner>,
        end: End,
        keep: Option<Ticks>,
    },
    Downgrade {
        owner: Option<Owner>,
        more: Token,
        ttl: Ticks,
    },
    Permits,
    /// By whoever has the name, if by nobody else, to another that wants the same.
    Adopt {
        owner: Owner,
        from: Option<Owner>,
        more: Token,
        ttl: Ticks,
    },
    Break,
    /// A copy of a call comes late: of so many calls before.
    Again(usize),
    Tick,
    Ear(Inbox, Ear),
    Forget,
    Copy,
    FailOver,
    Delete(Key),
    Foreign(Option<Ticks>),
}

impl Step {
    /// Whether a script runs; otherwise time passes, or something is lost.
    pub fn is_call(self) -> bool {
        use Step::{Copy, Delete, Ear, FailOver, Foreign, Forget, Tick};
        !matches!(
            self,
            Tick | Ear(..) | Forget | Copy | FailOver | Delete(_) | Foreign(_)
        )
    }
}

/// How a lease ends: in order or by a panic after so many hand-overs inside the process, or by an owner that doesn't
/// know whether it was granted anything.
#[derive(Clone, Copy, Debug)]
pub enum End {
    Clean { more: Token },
    Panicked { more: Token },
    Unknown,
}

impl End {
    /// What the counter becomes; 0 if the owner can't say.
    pub fn counter_after(self, token: Token) -> Token {
        match self {
            End::Unknown => 0,
            End::Clean { more } => token + 2 * more + 1,
            End::Panicked { more } => {
                let next = token + 2 * more + 2;
                if next % 8 == 7 { next + 2 } else { next }
            }
        }
    }
}

/// Which name it is about, where an owner wants several or it isn't about an owner.
pub type At = u8;

/// What each owner wants, and what happens then.
pub type Sequence = (Vec<Claim>, Vec<(At, Step)>);

/// All want the same name.
pub fn of_one_name() -> impl Strategy<Value = Sequence> {
    let claims = kinds().prop_flat_map(|kinds| {
        let claims: Vec<_> = kinds
            .into_iter()
            .map(|kind| claim(Just(Names::one(0)), kind))
            .collect();
        claims
    });
    (claims, proptest::collection::vec((Just(0), step()), 1..50))
}

/// Some want several names at once: those only exclusively.
pub fn of_several_names() -> impl Strategy<Value = Sequence> {
    let several = (2..=NAMES)
        .prop_flat_map(|count| (0..=NAMES - count).prop_map(move |first| Names { first, count }));
    let one = || (0..NAMES).prop_map(Names::one);
    let exclusive = claim(one(), Just(Mode::Exclusive).boxed());
    let any = kinds().prop_flat_map(move |kinds| claim(one(), kinds[0].clone()));
    let all = several.prop_map(|names| Claim {
        names,
        mode: Mode::Exclusive,
        valued: false,
    });
    let claim = prop_oneof![6 => all, 1 => exclusive, 1 => any];
    let claims = proptest::collection::vec(claim, usize::from(OWNERS));
    (claims, proptest::collection::vec((0..NAMES, step()), 1..50))
}

fn claim(
    names: impl Strategy<Value = Names>,
    mode: BoxedStrategy<Mode>,
) -> impl Strategy<Value = Claim> {
    (names, mode, any::<bool>()).prop_map(|(names, mode, valued)| Claim {
        names,
        mode,
        valued,
    })
}

/// How each owner may want it: often all of them alike.
fn kinds() -> impl Strategy<Value = Vec<BoxedStrategy<Mode>>> {
    let exclusive = prop_oneof![3 => Just(Mode::Exclusive), 1 => Just(Mode::Writer)].boxed();
    let reader = prop_oneof![3 => Just(Mode::Read), 1 => Just(Mode::EagerRead)].boxed();
    let of = |count| (Just(count), count..6);
    let permits = (1..4u8).prop_flat_map(of);
    let permits = permits
        .prop_map(|(count, of)| Mode::Permits { count, of })
        .boxed();
    let plain = prop_oneof![Just(Mode::Exclusive), Just(Mode::Read)].boxed();
    let both = prop_oneof![exclusive.clone(), reader.clone()].boxed();
    let any = prop_oneof![exclusive.clone(), reader, permits.clone()].boxed();
    let alike = |mode| Just(vec![mode; OWNERS.into()]);
    prop_oneof![
        1 => alike(exclusive),
        2 => alike(plain),
        2 => alike(both),
        2 => alike(permits),
        1 => alike(any),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        70 => call(),
        12 => Just(Step::Tick),
        1 => Just(Step::Permits),
        5 => Just(Step::Break),
        6 => loss(),
        2 => (0..INBOXES, ear()).prop_map(|(inbox, ear)| Step::Ear(inbox, ear)),
    ]
}

fn call() -> impl Strategy<Value = Step> {
    let owner = || 0..OWNERS;
    let maybe = || prop_oneof![2 => Just(None), 1 => owner().prop_map(Some)];
    let inbox = prop_oneof![4 => (0..INBOXES).prop_map(Some), 1 => Just(None)];
    let wait = (1..4 as Ticks, inbox).prop_map(|(promise, inbox)| Some(Wait { promise, inbox }));
    let wait = prop_oneof![4 => wait, 1 => Just(None)];
    let end = prop_oneof![
        4 => (0..4 as Token).prop_map(|more| End::Clean { more }),
        2 => (0..4 as Token).prop_map(|more| End::Panicked { more }),
        3 => Just(End::Unknown),
    ];
    let keep = prop_oneof![5 => Just(None), 1 => (1..4 as Ticks).prop_map(Some)];
    prop_oneof![
        22 => (owner(), 1..6 as Ticks, wait)
            .prop_map(|(owner, ttl, wait)| Step::Ask { owner, ttl, wait }),
        4 => (maybe(), 0..6 as Ticks).prop_map(|(owner, ttl)| Step::Renew { owner, ttl }),
        11 => (maybe(), end, keep).prop_map(|(owner, end, keep)| Step::Release { owner, end, keep }),
        2 => (maybe(), 0..4 as Token, 1..6 as Ticks)
            .prop_map(|(owner, more, ttl)| Step::Downgrade { owner, more, ttl }),
        2 => (owner(), maybe(), 0..4 as Token, 1..6 as Ticks)
            .prop_map(|(owner, from, more, ttl)| Step::Adopt { owner, from, more, ttl }),
        3 => (0..6usize).prop_map(Step::Again),
    ]
}

/// Something is gone, or comes from outside.
fn loss() -> impl Strategy<Value = Step> {
    let any = proptest::sample::select(&Key::ALL);
    let key = prop_oneof![4 => Just(Key::Lock), 7 => any];
    prop_oneof![
        11 => key.prop_map(Step::Delete),
        2 => proptest::option::of(1..4 as Ticks).prop_map(Step::Foreign),
        1 => Just(Step::Forget),
        2 => Just(Step::Copy),
        2 => Just(Step::FailOver),
    ]
}

fn ear() -> impl Strategy<Value = Ear> {
    prop_oneof![
        2 => Just(Ear::Hears),
        2 => Just(Ear::Gone),
        1 => Just(Ear::Forbidden),
    ]
}
