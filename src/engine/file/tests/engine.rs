//! What the engine does, and what operators see of it.

use super::*;
use crate::base::claim::Mode;
use crate::base::token::Token;
use crate::engine::rules::{EntryState, NameState, PresenceId};

#[test]
fn directory_is_the_path_of_the_url() {
    for (url, directory) in [
        ("file:///a/b", "/a/b"),
        ("file:/a/b/", "/a/b/"),
        ("FILE://LocalHost/a", "/a"),
        ("file:////a", "//a"),
        ("file:///a%20b%3F/ü", "/a b?/ü"),
    ] {
        assert_eq!(directory_of(url).unwrap(), Path::new(directory), "{url}");
    }
    let raw = directory_of("file:///%ff").unwrap();
    assert_eq!(raw.into_os_string().into_vec(), b"/\xff");
}

#[test]
fn url_that_names_no_directory_is_told_what_would() {
    for (url, advice) in [
        ("file:a", "file:///dir"),
        ("file://host/a", "three slashes"),
        ("file://a", "three slashes"),
        ("file:///", "file: for a private one"),
        ("file://", "file: for a private one"),
        ("file:///..", "file: for a private one"),
        ("file:///a?b", "%3F"),
        ("file:///a#b", "%23"),
        ("file:///a%b", "%25"),
        ("file:///a\nb", "%xx"),
        ("file:///a ", "space"),
    ] {
        match directory_of(url) {
            Err(Error::InvalidUrl { reason, .. }) => {
                assert!(reason.contains(advice), "{url}: {reason}");
            }
            other => panic!("{url}: {other:?}"),
        }
    }
}

// Whose end a waiter waits for.

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
