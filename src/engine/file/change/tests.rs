use super::super::tests::{Place, TRIES, both, claim, deadline, files_of, request};
use super::super::text::after_reboot;
use super::*;
use crate::base::claim::{Claim, Mode};
use crate::base::owner::Owner;
use crate::engine::Release;
use crate::engine::rules::NameState;

/// What is known of the names is what it was before.
fn put_back(names: &mut Names<'_>) {
    for part in &mut names.parts {
        let Written { counter, name } = part.before.clone();
        names.table.put(part.key, name, counter);
    }
}

#[test]
fn what_was_written_of_several_names_is_undone() {
    let (place, both) = (Place::new(), both());
    let holder = place.has(&both);
    let read = || {
        both.names
            .iter()
            .map(|key| std::fs::read(place.path(key)).unwrap())
    };
    let before: Vec<_> = read().collect();
    place
        .files
        .change(&both.names, (LockMode::Urgent, &deadline()), |names| {
            let release = Change::Release(Release::UNKNOWN);
            let released = names.change(request(&both, &holder), release)?;
            assert_eq!(released, Outcome::DONE);
            names.write()?;
            assert!(read().zip(&before).all(|(now, before)| now != *before));
            names.undo(1);
            // What is at the end of a file whose text was shorter for a while doesn't count.
            assert!(
                read()
                    .zip(&before)
                    .all(|(now, before)| now[..64] == before[..64])
            );
            put_back(names);
            Ok(())
        })
        .unwrap();
    let renewed = place.change(&both, &holder, Change::Renew);
    assert_eq!(renewed, Outcome::DONE);
}

#[test]
fn reboot_ends_what_ends_at_a_time_and_leaves_the_rest_to_the_presences() {
    let [lives, waits, given_away] = [(); 3].map(|()| Owner::new());
    let entry = |state, mode, owner: Option<&Owner>, presence| Entry {
        owner: owner.cloned(),
        presence,
        state,
        mode,
        since: BootInstant::START,
        until: BootInstant::MAX,
    };
    let has = EntryState::Has(crate::base::token::Token::from_number(4));
    let is_waiting = EntryState::Waits {
        first: false,
        more: false,
    };
    let [one, other] = [0, 1].map(|id| Some(PresenceId(id)));
    let (alone, shared) = (Mode::Exclusive, Mode::Shared);
    // What is held, whether it stays, and whether it was abandoned.
    for (held, stays, abandoned) in [
        (entry(has, alone, Some(&lives), one), true, false),
        (entry(has, alone, Some(&given_away), None), false, true),
        (entry(has, shared, Some(&given_away), None), false, false),
        (entry(EntryState::Kept, alone, None, None), false, false),
    ] {
        let waiter = entry(is_waiting, alone, Some(&waits), other);
        let name = NameState {
            entries: [held, waiter].into(),
            ..NameState::default()
        };
        let Written { counter, name } = after_reboot(Written { counter: 6, name });
        assert_eq!((counter, name.abandoned_until.is_some()), (6, abandoned));
        assert_eq!(name.entries.len(), 1 + usize::from(stays));
        let now = BootClock.now();
        assert!(name.entries.iter().all(|one| one.since <= now));
    }
}

/// A process that has its directory at a path, where another is put for a while.
struct Swapped {
    ours: Place,
    others: Arc<Files>,
}

impl Swapped {
    fn new() -> Self {
        let mut ours = Place::new();
        let path = ours.directory.path().join("locks");
        std::fs::create_dir(&path).unwrap();
        ours.files = files_of(&path);
        let others = files_of(&path);
        Swapped { ours, others }
    }

    /// Another directory is where that of the locks was, and is used.
    fn use_another(&self) {
        let [path, away, other] =
            ["locks", "away", "other"].map(|name| self.ours.directory.path().join(name));
        std::fs::rename(&path, &away).unwrap();
        std::fs::create_dir(&path).unwrap();
        let claim = Claim::exclusive("x", "elsewhere");
        let owner = self.ours.has(&claim);
        assert_eq!(self.ours.release(&claim, &owner), Outcome::DONE);
        std::fs::rename(&path, &other).unwrap();
        std::fs::rename(&away, &path).unwrap();
    }

    fn others_try(&self, claim: &Claim, owner: &Owner) -> Answer {
        let asked = self
            .others
            .acquire(request(claim, owner), TRIES, &deadline());
        asked.unwrap().0
    }
}

#[test]
fn holder_is_not_looked_for_in_a_directory_that_is_not_there_any_more() {
    let (place, claim) = (Swapped::new(), claim());
    let holder = Owner::new();
    let asked = place.others_try(&claim, &holder);
    assert!(matches!(asked, Answer::Granted(_)));
    let waiter = place.ours.waits(&claim);
    place.use_another();
    let asked = place.ours.ask(&claim, &waiter);
    assert!(matches!(asked, Answer::Taken { .. }), "two have it");
}

#[test]
fn holder_has_no_presence_in_a_directory_that_is_not_there_any_more() {
    let (place, claim) = (Swapped::new(), claim());
    let before = place.ours.has(&claim);
    assert_eq!(place.ours.release(&claim, &before), Outcome::DONE);
    place.use_another();
    place.ours.has(&claim);
    let asked = place.others_try(&claim, &Owner::new());
    assert!(matches!(asked, Answer::Taken { .. }), "two have it");
}
