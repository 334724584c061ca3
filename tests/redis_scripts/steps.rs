//! What may happen to a lock, at random.

use proptest::prelude::*;

/// How an owner wants the lock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Exclusive,
    /// The same, and before those that wait to read.
    Writer,
    Reader,
    /// The same, and before those that wait for the lock exclusively.
    EagerReader,
    Permits {
        count: u64,
        of: u64,
    },
}

/// A number below `OWNERS`.
pub(crate) type Owner = usize;
/// An index into `INBOXES`.
pub(crate) type Inbox = usize;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// With a lease that is over when the script has ended, if it is `short`.
    Ask {
        owner: Owner,
        waits: Waits,
        short: bool,
    },
    /// `store`: writes a new value, too, if the owner cares for it.
    Renew {
        owner: Owner,
        store: bool,
    },
    /// After so many hand-overs inside the process; by whoever holds the lock, if by nobody else.
    Release {
        owner: Option<Owner>,
        more: u64,
        store: bool,
    },
    /// The same, by an owner that doesn't know its token.
    GiveUp {
        owner: Option<Owner>,
        store: bool,
    },
    Downgrade {
        owner: Option<Owner>,
        more: u64,
        store: bool,
    },
    CountPermits,
    /// What the lock's key says is deleted: an exclusive lease has ended by itself, or somebody meddles.
    LoseLock,
    /// A client of another kind takes the lock if it is free, with a ttl or without.
    ForeignLock {
        expires: bool,
    },
    LoseCounter,
    LoseQueue,
    LoseCrowd,
    LoseWaiters,
    LoseShares,
    LoseValue,
    /// Its connection is gone, or is there again.
    Close(Inbox),
    Open(Inbox),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Waits {
    No,
    /// In line, or a heartbeat in it.
    Yes(Inbox),
    /// The same, and the next heartbeat is overdue when the script has ended.
    AndDies(Inbox),
}

pub(crate) const OWNERS: usize = 6;
pub(crate) const INBOXES: [&str; 5] = ["inbox:0", "inbox:1", "inbox:nobody's", FORBIDDEN, ""];
/// To this channel the scripts' user must not publish.
pub(crate) const FORBIDDEN: &str = "forbidden";
/// The first of `INBOXES` belong to a connection, which may be gone.
pub(crate) const CONNECTED: usize = 2;

impl Kind {
    pub(crate) fn is_exclusive(self) -> bool {
        matches!(self, Kind::Exclusive | Kind::Writer)
    }

    pub(crate) fn is_reader(self) -> bool {
        matches!(self, Kind::Reader | Kind::EagerReader)
    }

    /// As a script is asked.
    pub(crate) fn text(self) -> String {
        match self {
            Kind::Exclusive => "x".to_owned(),
            Kind::Writer => "w".to_owned(),
            Kind::Reader => "r".to_owned(),
            Kind::EagerReader => "R".to_owned(),
            Kind::Permits { count, of } => format!("{count}/{of}"),
        }
    }

    /// As it is held, or waits.
    pub(crate) fn held_text(self) -> String {
        match self {
            Kind::EagerReader => Kind::Reader.text(),
            other => other.text(),
        }
    }
}

/// How each owner wants the lock, and what happens then.
pub(crate) fn sequences() -> impl Strategy<Value = ([Kind; OWNERS], Vec<Step>)> {
    let exclusive = || prop_oneof![3 => Just(Kind::Exclusive), 1 => Just(Kind::Writer)];
    let reader = || prop_oneof![3 => Just(Kind::Reader), 1 => Just(Kind::EagerReader)];
    let permits = || {
        let of = |count| (Just(count), count..6);
        let permits = (1..4u64).prop_flat_map(of);
        permits.prop_map(|(count, of)| Kind::Permits { count, of })
    };
    let plain = prop_oneof![Just(Kind::Exclusive), Just(Kind::Reader)];
    let kinds = prop_oneof![
        1 => proptest::array::uniform(exclusive().boxed()),
        2 => proptest::array::uniform(plain.boxed()),
        2 => proptest::array::uniform(prop_oneof![exclusive(), reader()].boxed()),
        2 => proptest::array::uniform(permits().boxed()),
        1 => proptest::array::uniform(prop_oneof![exclusive(), reader(), permits()].boxed()),
    ];
    (kinds, proptest::collection::vec(step(), 1..40))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        60 => call(),
        3 => Just(Step::LoseLock),
        1 => any::<bool>().prop_map(|expires| Step::ForeignLock { expires }),
        6 => prop_oneof![
            Just(Step::LoseCounter),
            Just(Step::LoseQueue),
            Just(Step::LoseCrowd),
            Just(Step::LoseWaiters),
            Just(Step::LoseShares),
            Just(Step::LoseValue),
        ],
        1 => (0..CONNECTED).prop_map(Step::Close),
        1 => (0..CONNECTED).prop_map(Step::Open),
    ]
}

fn call() -> impl Strategy<Value = Step> {
    let owner = || 0..OWNERS;
    let maybe = || prop_oneof![2 => Just(None), 1 => owner().prop_map(Some)];
    let inbox = || prop_oneof![3 => 0..CONNECTED, 2 => 0..INBOXES.len()];
    let waits = prop_oneof![
        4 => Just(Waits::No),
        16 => inbox().prop_map(Waits::Yes),
        2 => inbox().prop_map(Waits::AndDies),
    ];
    let flag = any::<bool>;
    prop_oneof![
        22 => (owner(), waits, prop::bool::weighted(0.06))
            .prop_map(|(owner, waits, short)| Step::Ask { owner, waits, short }),
        2 => (owner(), flag()).prop_map(|(owner, store)| Step::Renew { owner, store }),
        8 => (maybe(), 0..4u64, flag())
            .prop_map(|(owner, more, store)| Step::Release { owner, more, store }),
        4 => (maybe(), flag()).prop_map(|(owner, store)| Step::GiveUp { owner, store }),
        2 => (maybe(), 0..4u64, flag())
            .prop_map(|(owner, more, store)| Step::Downgrade { owner, more, store }),
        1 => Just(Step::CountPermits),
    ]
}
