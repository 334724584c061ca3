use super::*;
use crate::base::random::{Random, for_any};
use uuid::Uuid;

fn instant(random: &mut Random) -> BootInstant {
    BootInstant::START.plus(Duration::from_nanos(random.u64(..) >> random.u32(..64)))
}

/// With a label that has all but control characters.
fn owner(random: &mut Random) -> Owner {
    let label = random.text_without(char::is_control, 0..=40);
    Owner::from_text(&format!("{}/{label}", Owner::new().as_str()))
}

fn mode(random: &mut Random) -> Mode {
    match random.u32(..3) {
        0 => Mode::Exclusive,
        1 => Mode::Shared,
        _ => {
            let of = random.u32(1..);
            let count = random.u32(1..=of);
            Mode::Permits { count, of }
        }
    }
}

fn entry(random: &mut Random) -> Entry {
    let state = match random.u32(..6) {
        0 => EntryState::Has(Token::from_number(random.u64(..) >> random.u32(..64))),
        3 => EntryState::Given(Token::from_number(random.u64(..) >> random.u32(..64))),
        1 => EntryState::Granted,
        2 => EntryState::Kept,
        4 => {
            return Entry {
                owner: Some(owner(random)),
                presence: Some(presence()),
                state: EntryState::Broken,
                mode: Mode::Exclusive,
                since: BootInstant::START,
                until: BootInstant::MAX,
            };
        }
        _ => EntryState::Waits {
            first: random.bool(),
            more: random.bool(),
        },
    };
    let owner = (state != EntryState::Kept).then(|| owner(random));
    Entry {
        presence: owner
            .as_ref()
            .filter(|_| random.u32(..8) > 0)
            .map(|_| presence()),
        owner,
        state,
        mode: mode(random),
        since: instant(random),
        until: random.option(instant).unwrap_or(BootInstant::MAX),
    }
}

fn written(random: &mut Random) -> Written {
    let name = NameState {
        abandoned_until: random.bool().then_some(BootInstant::MAX),
        entries: random.list(0..=9, entry),
    };
    let counter = random.u64(..) >> random.u32(..64);
    Written { counter, name }
}

fn presence() -> PresenceId {
    PresenceId::parse(&Uuid::new_v4().simple().to_string()).expect("that is one")
}

#[test]
fn what_is_written_is_read_again() {
    for_any(|random| {
        let written = written(random);
        let text = text_of(&written);
        assert_eq!(parse(&text), Some(written), "{text}");
    });
}

#[test]
fn lines_that_say_nothing_are_refused() {
    const PRESENCE: &str = "door=14209b66da4f4175a132d99d64998ed1";
    let whole = format!("has exclusive token=4 since=1.000000000 {PRESENCE} a/b/1/2");
    assert!(parse(&whole).is_some());
    for text in [
        "counter".to_owned(),
        "counter -1".to_owned(),
        "counter 18446744073709551616".to_owned(),
        "broken".to_owned(),
        "has".to_owned(),
        format!("gone exclusive since=1.000000000 {PRESENCE} a"),
        "has exclusive token=4 since=1.000000000".to_owned(),
        format!("kept exclusive since=1.000000000 until=2.000000000 {PRESENCE} a"),
        whole.replace(" token=4", ""),
        whole.replace(" since=1.000000000", ""),
        whole.replace("exclusive", "alone"),
        whole.replace("exclusive", "1/"),
        whole.replace("1.000000000", "1"),
        whole.replace("1.000000000", "1.0"),
        whole.replace("token", "tokens"),
        whole.replace("14209b66", "14209B66"),
        whole.replace("14209b66", ""),
        format!("\n{whole}"),
        "booted".to_owned(),
        "booted 1.5".to_owned(),
        "booted -1".to_owned(),
    ] {
        assert_eq!(parse(&text), None, "{text:?}");
    }
}
