//! What may happen to a lock, at random.

use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Without waiting.
    Try(Owner),
    /// Enters the line, or is a heartbeat in it.
    Wait(Owner, Inbox),
    /// The same, and the next heartbeat is overdue when the script has ended.
    WaitAndDie(Owner, Inbox),
    Renew(Owner),
    /// After so many hand-overs inside the process; by whoever holds the lock, if by nobody else.
    Release(Option<Owner>, u64),
    /// The same, by an owner that doesn't know its token.
    GiveUp(Option<Owner>),
    /// The lease ends, or somebody deletes the lock.
    LoseHolder,
    /// A client of another kind takes the lock if it is free, with a ttl or without.
    ForeignLock {
        expires: bool,
    },
    LoseCounter,
    LoseLine,
    LoseWaiters,
    /// Its connection is gone, or is there again.
    Close(Inbox),
    Open(Inbox),
}

/// A number below `OWNERS`.
pub(crate) type Owner = usize;
/// An index into `INBOXES`.
pub(crate) type Inbox = usize;

pub(crate) const OWNERS: usize = 6;
pub(crate) const INBOXES: [&str; 5] = ["inbox:0", "inbox:1", "inbox:nobody's", FORBIDDEN, ""];
/// To this channel the scripts' user must not publish.
pub(crate) const FORBIDDEN: &str = "forbidden";
/// The first of `INBOXES` belong to a connection, which may be gone.
pub(crate) const CONNECTED: usize = 2;

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let owner = || 0..OWNERS;
    let maybe = || prop_oneof![2 => Just(None), 1 => owner().prop_map(Some)];
    let inbox = || prop_oneof![3 => 0..CONNECTED, 2 => 0..INBOXES.len()];
    let step = prop_oneof![
        4 => owner().prop_map(Step::Try),
        16 => (owner(), inbox()).prop_map(|(owner, inbox)| Step::Wait(owner, inbox)),
        2 => (owner(), inbox()).prop_map(|(owner, inbox)| Step::WaitAndDie(owner, inbox)),
        2 => owner().prop_map(Step::Renew),
        8 => (maybe(), 0..4u64).prop_map(|(owner, more)| Step::Release(owner, more)),
        4 => maybe().prop_map(Step::GiveUp),
        3 => Just(Step::LoseHolder),
        1 => any::<bool>().prop_map(|expires| Step::ForeignLock { expires }),
        1 => Just(Step::LoseCounter),
        1 => Just(Step::LoseLine),
        1 => Just(Step::LoseWaiters),
        1 => (0..CONNECTED).prop_map(Step::Close),
        1 => (0..CONNECTED).prop_map(Step::Open),
    ];
    proptest::collection::vec(step, 1..40)
}
