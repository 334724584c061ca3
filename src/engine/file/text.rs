//! A name's state as text: a line for the counter, and one for each entry of its list.
//!
//! `<state> <mode> [token=] [since=] [until=] [door=<id> <owner>]`, and `broken door=<id> <owner>`. Times are seconds since this boot. If any of them is an end, a
//! line `booted` tells them from those of another.

use std::time::Duration;

use super::booted::Booted;
use super::by_owner::ByOwner;
use super::digits;
use super::store::door::DoorId;
use crate::base::claim::Mode;
use crate::base::clock::BootInstant;
use crate::base::owner::Owner;
use crate::base::token::Token;
use crate::engine::rules::{Entry, EntryState, NameState};

/// Of a lease that its owner has given away: it lasts until a time, whoever lives.
const NO_DOOR: &str = "-";

/// What the line of one begins with whose lease was broken.
const BROKEN: &str = "broken";

/// What the lines of all waiters begin with.
const WAITS: &str = "waits";

/// What a name's file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    /// The last number that the counter had.
    pub(super) counter: u64,
    pub(super) name: NameState,
}

/// By which door each owner can be told, and is known to live.
pub(super) type Doors = ByOwner<DoorId>;

/// What the text says; `None` when it is none. The doors of its owners are added to `doors`.
pub(super) fn parse(text: &str, doors: &mut Doors) -> Option<Written> {
    let mut written = Written::default();
    for line in text.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "counter" => written.counter = rest.parse().ok()?,
            // Since when isn't said.
            "abandoned" => written.name.abandoned_until = Some(BootInstant::MAX),
            Booted::WORD => drop(Booted::parse(rest)?),
            BROKEN => written.name.entries.push(broken(rest, doors)?),
            _ => {
                let (mode, rest) = rest.split_once(' ')?;
                let fields = Fields::parse(rest, doors)?;
                written.name.entries.push(fields.entry(word, mode)?);
            }
        }
    }
    Some(written)
}

/// How an owner stands among those that hold the lock, if it does. The text is read only as far as that.
pub(super) fn holder_in(text: &str, owner: &Owner) -> Option<EntryState> {
    let holders = text.lines().take_while(|line| !line.starts_with(WAITS));
    let mut lines = holders.filter(|line| line.ends_with(owner.as_str()));
    lines.find_map(|line| {
        let entry = parse(line, &mut Doors::default())?.name.entries.pop()?;
        entry.is_of(owner).then_some(entry.state)
    })
}

/// The text that says this.
pub(super) fn text_of(written: &Written, doors: &Doors) -> String {
    let NameState {
        abandoned_until,
        entries,
    } = &written.name;
    let mut text = String::with_capacity(160 * (1 + entries.len()));
    text.push_str("counter ");
    digits::push(&mut text, written.counter);
    text.push('\n');
    if abandoned_until.is_some() {
        text.push_str("abandoned\n");
    }
    if entries.iter().any(|one| one.until != BootInstant::MAX) {
        Booted::now().push_to(&mut text);
    }
    for entry in entries {
        push_entry(&mut text, entry);
        push_owner(&mut text, entry.owner.as_ref(), doors);
    }
    text
}

fn push_entry(text: &mut String, entry: &Entry) {
    text.push_str(match entry.state {
        EntryState::Has(_) => "has",
        EntryState::Given(_) => "given",
        EntryState::Granted => "granted",
        EntryState::Kept => "kept",
        EntryState::Broken => return text.push_str(BROKEN),
        EntryState::Waits { first, more } => match (first, more) {
            (false, false) => WAITS,
            (true, false) => "waits-first",
            (false, true) => "waits-for-more",
            (true, true) => "waits-for-more-first",
        },
    });
    match entry.mode {
        Mode::Exclusive => text.push_str(" exclusive"),
        Mode::Shared => text.push_str(" shared"),
        Mode::Permits { count, of } => {
            push_number(text, " ", count.into());
            push_number(text, "/", of.into());
        }
    }
    if let EntryState::Has(token) | EntryState::Given(token) = entry.state {
        push_number(text, " token=", token.number);
    }
    push_seconds(text, " since=", entry.since);
    if entry.until != BootInstant::MAX {
        push_seconds(text, " until=", entry.until);
    }
}

fn push_number(text: &mut String, before: &str, number: u64) {
    text.push_str(before);
    digits::push(text, number);
}

fn push_owner(text: &mut String, owner: Option<&Owner>, doors: &Doors) {
    if let Some(owner) = owner {
        text.push_str(" door=");
        match doors.get(owner) {
            Some(door) => door.push_to(text),
            None => text.push_str(NO_DOOR),
        }
        text.push(' ');
        text.push_str(owner.as_str());
    }
    text.push('\n');
}

/// What stands behind the mode.
#[derive(Default)]
struct Fields {
    token: Option<u64>,
    since: Option<BootInstant>,
    until: Option<BootInstant>,
    owner: Option<Owner>,
}

impl Fields {
    /// A line without an owner has no door, so the owner, in which a label may have any character, is what follows the door.
    fn parse(mut rest: &str, doors: &mut Doors) -> Option<Self> {
        let mut fields = Fields::default();
        while !rest.is_empty() {
            let (field, after) = rest.split_once(' ').unwrap_or((rest, ""));
            let (name, value) = field.split_once('=')?;
            match name {
                "token" => fields.token = Some(value.parse().ok()?),
                "since" => fields.since = Some(seconds(value)?),
                "until" => fields.until = Some(seconds(value)?),
                "door" => {
                    let owner = Owner::from_text(after);
                    if value != NO_DOOR {
                        doors.insert(owner.clone(), DoorId::parse(value)?);
                    }
                    fields.owner = Some(owner);
                    break;
                }
                _ => return None,
            }
            rest = after;
        }
        Some(fields)
    }

    fn entry(self, state: &str, mode: &str) -> Option<Entry> {
        let state = match state {
            "has" => EntryState::Has(Token::from_number(self.token?)),
            "given" => EntryState::Given(Token::from_number(self.token?)),
            "granted" => EntryState::Granted,
            "kept" => EntryState::Kept,
            WAITS => waits(false, false),
            "waits-first" => waits(true, false),
            "waits-for-more" => waits(false, true),
            "waits-for-more-first" => waits(true, true),
            _ => return None,
        };
        // Only what is kept is nobody's.
        if (state == EntryState::Kept) != self.owner.is_none() {
            return None;
        }
        Some(Entry {
            owner: self.owner,
            state,
            mode: parse_mode(mode)?,
            since: self.since?,
            until: self.until.unwrap_or(BootInstant::MAX),
        })
    }
}

/// Of one whose lease was broken nothing else counts.
fn broken(rest: &str, doors: &mut Doors) -> Option<Entry> {
    Fields::parse(rest, doors)?.owner.map(broken_of)
}

fn broken_of(owner: Owner) -> Entry {
    Entry {
        owner: Some(owner),
        state: EntryState::Broken,
        mode: Mode::Exclusive,
        since: BootInstant::START,
        until: BootInstant::MAX,
    }
}

fn waits(first: bool, more: bool) -> EntryState {
    EntryState::Waits { first, more }
}

fn parse_mode(text: &str) -> Option<Mode> {
    match text {
        "exclusive" => Some(Mode::Exclusive),
        "shared" => Some(Mode::Shared),
        _ => {
            let (count, of) = text.split_once('/')?;
            let (count, of) = (count.parse().ok()?, of.parse().ok()?);
            Some(Mode::Permits { count, of })
        }
    }
}

/// A point in time, as seconds since this boot.
fn push_seconds(text: &mut String, before: &str, at: BootInstant) {
    let since = at.since(BootInstant::START);
    push_number(text, before, since.as_secs());
    text.push('.');
    digits::push_padded(text, since.subsec_nanos().into(), NANOS);
}

/// How many digits.
const NANOS: usize = 9;

fn seconds(text: &str) -> Option<BootInstant> {
    let (seconds, nanos) = text.split_once('.')?;
    if nanos.len() != NANOS {
        return None;
    }
    let since = Duration::new(seconds.parse().ok()?, nanos.parse().ok()?);
    Some(BootInstant::START.plus(since))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::{Random, for_any};
    use uuid::Uuid;

    fn instant(random: &mut Random) -> BootInstant {
        BootInstant::START.plus(Duration::from_nanos(random.magnitude()))
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
            _ => Mode::Permits {
                count: random.u32(..),
                of: random.u32(..),
            },
        }
    }

    fn entry(random: &mut Random) -> Entry {
        let state = match random.u32(..6) {
            0 => EntryState::Has(Token::from_number(random.magnitude())),
            3 => EntryState::Given(Token::from_number(random.magnitude())),
            1 => EntryState::Granted,
            2 => EntryState::Kept,
            4 => return broken_of(owner(random)),
            _ => waits(random.bool(), random.bool()),
        };
        Entry {
            owner: (state != EntryState::Kept).then(|| owner(random)),
            state,
            mode: mode(random),
            since: instant(random),
            until: random.option(instant).unwrap_or(BootInstant::MAX),
        }
    }

    fn state(random: &mut Random) -> (Written, Doors) {
        let name = NameState {
            abandoned_until: random.bool().then_some(BootInstant::MAX),
            entries: random.list(0..=9, entry),
        };
        let counter = random.magnitude();
        let written = Written { counter, name };
        let entries = written.name.entries.iter();
        let owners = entries.filter_map(|one| one.owner.as_ref());
        let doors = owners
            .filter(|_| random.u32(..8) > 0)
            .map(|owner| (owner.clone(), door()))
            .collect();
        (written, doors)
    }

    fn door() -> DoorId {
        DoorId::parse(&Uuid::new_v4().simple().to_string()).expect("that is one")
    }

    fn parsed(text: &str) -> Option<(Written, Doors)> {
        let mut doors = Doors::default();
        let written = parse(text, &mut doors)?;
        Some((written, doors))
    }

    #[test]
    fn what_is_written_is_read_again() {
        for_any(|random| {
            let (written, doors) = state(random);
            let text = text_of(&written, &doors);
            assert_eq!(parsed(&text), Some((written, doors)), "{text}");
        });
    }

    #[test]
    fn text_that_was_altered_is_refused_or_says_what_can_be_written() {
        for_any(|random| {
            let (written, doors) = state(random);
            let mut chars: Vec<_> = text_of(&written, &doors).chars().collect();
            let place = random.usize(..chars.len());
            match random.u32(..3) {
                0 => chars.truncate(place),
                1 => chars[place] = random.char(..),
                _ => drop(chars.remove(place)),
            }
            let altered: String = chars.into_iter().collect();
            if let Some((written, doors)) = parsed(&altered) {
                let text = text_of(&written, &doors);
                assert_eq!(parsed(&text), Some((written, doors)), "{altered:?}");
            }
        });
    }

    #[test]
    fn lines_that_say_nothing_are_refused() {
        const DOOR: &str = "door=14209b66da4f4175a132d99d64998ed1";
        let whole = format!("has exclusive token=4 since=1.000000000 {DOOR} a/b/1/2");
        assert!(parsed(&whole).is_some());
        for text in [
            "counter".to_owned(),
            "counter -1".to_owned(),
            "counter 18446744073709551616".to_owned(),
            "broken".to_owned(),
            "has".to_owned(),
            format!("gone exclusive since=1.000000000 {DOOR} a"),
            "has exclusive token=4 since=1.000000000".to_owned(),
            format!("kept exclusive since=1.000000000 until=2.000000000 {DOOR} a"),
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
        ] {
            assert_eq!(parsed(&text), None, "{text:?}");
        }
    }
}
