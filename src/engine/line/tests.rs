//! Who is where in a line.

use super::*;
use crate::base::claim::Mode;
use crate::base::owner::Owner;

fn entry(id: &str, place: u64, mode: Mode) -> Entry {
    Entry {
        id: id.to_owned(),
        place,
        mode,
        who: Who::Owner(Owner::from_text(&format!("{id}/h/1/1"))),
        token: None,
        since: 0,
        session: None,
        version: place,
    }
}

#[test]
fn whoever_came_first_is_first_and_strangers_exclude() {
    let stranger = Entry {
        who: Who::Stranger,
        ..entry("f", 5, Mode::Exclusive)
    };
    let reader = |id, place| entry(id, place, Mode::Shared);
    let line = Line::of([reader("c", 9), reader("a", 3), stranger, reader("b", 4)]);
    let ids = |entries: &[Entry]| entries.iter().map(|one| one.id.clone()).collect::<String>();
    assert_eq!(ids(&line.0), "abfc");
    assert_eq!(ids(line.holders()), "ab");
    let c = Owner::from_text("c/h/1/1");
    let found = line.0.iter().position(|one| one.owner() == Some(&c));
    assert_eq!(found, Some(3));
    assert_eq!(line.standing(3), Standing::Behind(2));
    assert_eq!(line.standing(1), Standing::Holds);
    assert!(!line.lets_in(Mode::Shared));
    assert_eq!(line.find(&Owner::new()), None);
}

#[test]
fn owner_is_found_by_its_uuid() {
    let owner = Owner::new();
    let mut own = entry("a", 2, Mode::Exclusive);
    own.who = Who::Owner(Owner::from_text(uuid_of(&owner)));
    let line = Line::of([own, entry("b", 1, Mode::Exclusive)]);
    assert_eq!(line.find(&owner).map(|(at, _)| at), Some(1));
    let kept = Entry {
        who: Who::Kept,
        ..line.0[1].clone()
    };
    assert_eq!(Line::of([kept]).find(&owner), None);
}
