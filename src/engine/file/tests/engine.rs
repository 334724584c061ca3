//! What the engine does, and what operators see of it.

use std::fs;

use super::*;
use crate::base::claim::Mode;
use crate::base::inspection::LockState;
use crate::base::token::{Ending, Token};
use crate::engine::rules::{EntryState, NameState, PresenceId};

/// What another process has open of the same directory.
fn other(place: &Place) -> Arc<Files> {
    files_of(place.directory.path())
}

fn is_taken(files: &Files, claim: &Claim) -> bool {
    let owner = Owner::new();
    let asked = files.acquire(request(claim, &owner), TRIES, &deadline());
    matches!(asked.unwrap().0, Answer::Taken { .. })
}

#[test]
fn waiter_in_a_directory_that_was_made_anew_is_seen() {
    let (place, claim) = (Place::new(), claim());
    place.has(&claim);
    let waiter = place.waits(&claim);
    fs::remove_dir_all(&place.directory).unwrap();
    fs::create_dir(&place.directory).unwrap();
    assert!(matches!(place.ask(&claim, &waiter), Answer::Granted(_)));
    assert!(is_taken(&other(&place), &claim));
}

#[test]
fn owner_with_another_presence_than_before_is_seen() {
    let (place, claim) = (Place::new(), claim());
    let owner = place.has(&claim);
    place.files.presences.close(&owner);
    assert!(matches!(place.ask(&claim, &owner), Answer::Granted(_)));
    assert!(is_taken(&other(&place), &claim));
}

#[test]
fn owner_whose_presence_was_removed_has_nothing_after_a_change_that_fails() {
    let (place, claim) = (Place::new(), claim());
    let owner = place.has(&claim);
    let presence = place.files.presences.of(&owner).unwrap();
    let name = format!(".door-{}", presence.id());
    fs::remove_file(place.directory.path().join(name)).unwrap();
    let failed: Result<()> = place.files.change_by_presence(
        request(&claim, &owner),
        (LockMode::Urgent, &deadline()),
        |_| Err(place.files.no_state(&claim.key)),
    );
    assert!(failed.is_err());
    let verified = place.change(&claim, &owner, Change::Verify);
    assert_eq!(verified, Outcome::NOT_OWNER);
    assert!(!is_taken(&other(&place), &claim));
}

#[test]
fn lock_whose_value_can_not_be_stored_ends_with_its_guard() {
    let (place, claim) = (Place::new(), claim());
    let owner = place.has(&claim);
    let path = place.files.value_path(&claim.key);
    fs::create_dir(&path).unwrap();
    fs::write(path.join("x"), "").unwrap();
    let release = Release {
        ending: Ending::Clean { last_used: 1 },
        value: Some(b"1"),
        ..Release::UNKNOWN
    };
    let released = place.engine().change(
        request(&claim, &owner),
        Change::Release(release),
        &deadline(),
    );
    let error = released.unwrap_err();
    assert!(!error.may_pass(), "{error:?}");
    assert!(!is_taken(&other(&place), &claim));
}

#[test]
fn lease_that_was_given_away_and_broken_is_forgotten() {
    let (place, claim) = (Place::new(), claim());
    let owner = place.has(&claim);
    place
        .engine()
        .give_away(request(&claim, &owner), &deadline())
        .unwrap();
    assert_eq!(place.breaks(&claim.key), 1);
    assert_eq!(place.broken(&claim), []);
}

#[test]
fn presence_that_others_have_a_copy_of_is_not_used_again() {
    let (place, claim) = (Place::new(), claim());
    let owner = place.has(&claim);
    let id = place.files.presences.of(&owner).unwrap().id();
    let _copy = place.files.presences.copy(&owner).unwrap();
    place.release(&claim, &owner);
    let next = place.has(&claim);
    assert!(place.files.presences.of(&next).unwrap().id() != id);
}

#[test]
fn break_of_a_dead_owners_lock_leaves_it_to_the_next() {
    let (place, claim) = (Place::new(), claim());
    let holder = place.has(&claim);
    let [next, last] = [(); 2].map(|()| place.waits(&claim));
    place.files.presences.close(&holder);
    assert_eq!(place.breaks(&claim.key), 0);
    assert!(matches!(place.ask(&claim, &last), Answer::Taken { .. }));
    assert!(matches!(place.ask(&claim, &next), Answer::Granted(_)));
}

fn inspect(place: &Place, claim: &Claim) -> Inspection {
    place.engine().inspect(&claim.key, &deadline()).unwrap()
}

fn free_permits(place: &Place, claim: &Claim) -> u32 {
    let free = place.engine().free_permits(&claim.key, 3, &deadline());
    free.unwrap()
}

#[test]
fn look_makes_and_changes_nothing() {
    let (place, claim) = (Place::new(), claim());
    assert_eq!(inspect(&place, &claim).state, LockState::Free);
    assert_eq!(free_permits(&place, &claim), 3);
    assert_eq!(fs::read_dir(&place.directory).unwrap().count(), 0);
    let (holder, waiter) = (place.has(&claim), place.waits(&claim));
    let read = || fs::read(place.path(&claim.key)).unwrap();
    let before = read();
    let count = |seen: &Inspection| (seen.holders.len(), seen.waiters.len());
    assert_eq!(count(&inspect(&place, &claim)), (1, 1));
    place.files.presences.close(&waiter);
    assert_eq!(count(&inspect(&place, &claim)), (1, 0));
    place.files.presences.close(&holder);
    let seen = inspect(&place, &claim);
    assert_eq!((count(&seen), seen.state), ((0, 0), LockState::Free));
    assert!(seen.last_token.is_some());
    assert_eq!(read(), before);
}

#[test]
fn names_that_are_held_are_listed() {
    let place = Place::new();
    let long = format!("ab{}", "x".repeat(300));
    let names = ["ab", "ac", "b", &long].map(|name| Claim::exclusive("x", name));
    let owners = names.each_ref().map(|claim| place.has(claim));
    place.has(&Claim::exclusive("y", "ab"));
    fs::write(place.directory.path().join("x+ad.lock"), "something else").unwrap();
    let list = |prefix| {
        let namespace = Namespace::new("x").unwrap();
        let page = place
            .engine()
            .list(&namespace, prefix, Cursor::default(), &deadline());
        let mut listed = page.unwrap().names;
        listed.sort();
        listed
    };
    assert_eq!(list("a"), ["ab", &long, "ac"]);
    place.files.presences.close(&owners[0]);
    assert_eq!(list(""), [&long, "ac", "b"]);
}

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
