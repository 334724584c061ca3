//! Whose end a waiter waits for.

use crate::base::claim::Mode;
use crate::base::clock::BootInstant;
use crate::base::owner::Owner;
use crate::base::token::Token;
use crate::engine::rules::{Entry, EntryState, NameState, PresenceId};

const WRITE: Mode = Mode::Exclusive;
const READ: Mode = Mode::Shared;
const PERMIT: Mode = Mode::Permits { count: 1, of: 2 };

/// Holders and waiters that are called 0, 1, and so on.
fn name(holders: &[Mode], waiters: &[Mode]) -> NameState {
    let has = EntryState::Has(Token::from_number(1));
    let waits = EntryState::Waits {
        first: false,
        more: false,
    };
    let holders = holders.iter().map(|mode| (has, mode));
    let all = holders.chain(waiters.iter().map(|mode| (waits, mode)));
    let entries = all.enumerate().map(|(at, (state, mode))| Entry {
        owner: Some(Owner::from_text(&at.to_string())),
        presence: Some(PresenceId(at as u128)),
        state,
        mode: *mode,
        since: BootInstant::START,
        until: BootInstant::MAX,
    });
    NameState {
        abandoned_until: None,
        entries: entries.collect(),
    }
}

#[test]
fn waiter_waits_for_the_holders_or_the_one_right_ahead() {
    for (holders, waiters, expected) in [
        (
            &[WRITE][..],
            &[WRITE, WRITE, WRITE][..],
            &["0", "1", "2"][..],
        ),
        (&[READ, READ], &[WRITE, PERMIT], &["01", "2"]),
        // Readers wait for the first of the others, wherever that is.
        (
            &[WRITE],
            &[READ, WRITE, READ, WRITE],
            &["02", "0", "02", "2"],
        ),
        (&[READ], &[WRITE, READ], &["0", "1"]),
        (&[PERMIT, PERMIT], &[PERMIT, READ], &["01", "012"]),
        (&[], &[READ, READ], &["", ""]),
    ] {
        let name = name(holders, waiters);
        let ahead = name.waiting().map(|(_, ahead)| {
            let numbers = ahead.iter().flatten().map(|one| one.0.to_string());
            numbers.collect::<String>()
        });
        assert_eq!(
            ahead.collect::<Vec<_>>(),
            expected,
            "{holders:?} {waiters:?}"
        );
    }
}
