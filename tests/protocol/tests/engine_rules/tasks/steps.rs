//! The calls of a random sequence.

use proptest::prelude::*;

use super::real::SECOND;
use crate::base::task::IfExists;
use crate::engine::rules::tasks::Micros;

#[derive(Clone, Debug)]
pub(super) enum Step {
    Pass(Micros),
    Insert(Insert),
    Ask {
        owner: u8,
        waits: bool,
    },
    Renew {
        owner: u8,
        looks: bool,
    },
    End {
        owner: u8,
        how: u8,
    },
    /// It ends its task, and another owner takes the next.
    Next {
        owner: u8,
        how: u8,
    },
    TakeBack {
        owner: u8,
    },
    Reset {
        id: u8,
        wait: Micros,
    },
    Remove(u8),
    Kick(u8),
    Look,
}

#[derive(Clone, Debug)]
pub(super) struct Insert {
    pub(super) ids: Vec<u8>,
    pub(super) wait: Micros,
    pub(super) if_exists: IfExists,
    pub(super) nonce: Option<u8>,
    pub(super) tries: u32,
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let wait = prop_oneof![
        Just(0),
        (0..8u64).prop_map(|halves| halves * SECOND / 2),
        Just(1 << 53)
    ];
    let if_exists = prop_oneof![
        Just(IfExists::Keep),
        Just(IfExists::Reset),
        Just(IfExists::Replace)
    ];
    let insert = (
        proptest::collection::vec(0..4u8, 1..4),
        wait.clone(),
        if_exists,
        proptest::option::of(0..2u8),
        0..3u32,
    );
    let insert = insert.prop_map(|(ids, wait, if_exists, nonce, tries)| {
        Step::Insert(Insert {
            ids,
            wait,
            if_exists,
            nonce,
            tries,
        })
    });
    let owner = || 0..5u8;
    prop_oneof![
        3 => (1..5u64).prop_map(|halves| Step::Pass(halves * SECOND / 2 + 7)),
        4 => insert,
        8 => (owner(), any::<bool>()).prop_map(|(owner, waits)| Step::Ask { owner, waits }),
        1 => (owner(), any::<bool>()).prop_map(|(owner, looks)| Step::Renew { owner, looks }),
        4 => (owner(), 0..6u8).prop_map(|(owner, how)| Step::End { owner, how }),
        2 => (owner(), 0..6u8).prop_map(|(owner, how)| Step::Next { owner, how }),
        1 => owner().prop_map(|owner| Step::TakeBack { owner }),
        1 => (0..4u8, wait).prop_map(|(id, wait)| Step::Reset { id, wait }),
        1 => (0..4u8).prop_map(Step::Remove),
        1 => (0..4u8).prop_map(Step::Kick),
        2 => Just(Step::Look),
    ]
}
