//! A name's state as text: a line for the counter, and one for each entry of its list.
//!
//! `<state> <mode> [token=] [since=] [until=] [door=<id> <owner>]`, and `broken door=<id> <owner>`. Times are seconds since this boot. If any of them is an end, a
//! line `booted` tells them from those of another.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::time::Duration;

use super::boot::{Booted, Boots};
use super::digits;
use super::page::Found;
use super::presence::PresenceId;
use crate::base::claim::Mode;
use crate::base::clock::{BootClock, BootInstant, Clock};
use crate::base::owner::Owner;
use crate::base::token::Token;
use crate::engine::rules::{Entry, EntryState, NameState};

/// Of a lease that its owner has given away: it lasts until a time, whoever lives.
const NO_PRESENCE: &str = "-";

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

/// By which presence each owner can be told, and is known to live.
pub(super) type Presences = ByOwner<PresenceId>;

/// What the text says; `None` when it is none. The presences of its owners are added to `presences`.
pub(super) fn parse(text: &str, presences: &mut Presences) -> Option<Written> {
    let mut written = Written::default();
    for line in text.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "counter" => written.counter = rest.parse().ok()?,
            // Since when isn't said.
            "abandoned" => written.name.abandoned_until = Some(BootInstant::MAX),
            Booted::WORD => drop(Booted::parse(rest)?),
            BROKEN => written.name.entries.push(broken(rest, presences)?),
            _ => {
                let (mode, rest) = rest.split_once(' ')?;
                let fields = Fields::parse(rest, presences)?;
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
        let entry = parse(line, &mut Presences::default())?.name.entries.pop()?;
        entry.is_of(owner).then_some(entry.state)
    })
}

/// The text that says this.
pub(super) fn text_of(written: &Written, presences: &Presences) -> String {
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
        push_owner(&mut text, entry.owner.as_ref(), presences);
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

fn push_owner(text: &mut String, owner: Option<&Owner>, presences: &Presences) {
    if let Some(owner) = owner {
        text.push_str(" door=");
        match presences.get(owner) {
            Some(presence) => presence.push_to(text),
            None => text.push_str(NO_PRESENCE),
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
    /// A line without an owner has no presence, so the owner, in which a label may have any character, is what follows the presence.
    fn parse(mut rest: &str, presences: &mut Presences) -> Option<Self> {
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
                    if value != NO_PRESENCE {
                        presences.insert(owner.clone(), PresenceId::parse(value)?);
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
fn broken(rest: &str, presences: &mut Presences) -> Option<Entry> {
    Fields::parse(rest, presences)?.owner.map(broken_of)
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
        permits => Mode::parse(permits).filter(|mode| mode.of_permits().is_some()),
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

/// What a file says of its name; `None` when it says something else.
pub(super) fn written_of(found: Found, presences: &mut Presences) -> Option<Written> {
    match found {
        Found::Fresh | Found::Cut => Some(Written::default()),
        Found::Text { text, boots, seen } => {
            let mut written = parse(&text, presences)?;
            if let Some(seen) = seen {
                written.name.has_seen(seen);
            }
            let has_other_times = match boots {
                Boots::Same => false,
                Boots::Differ => {
                    !Booted::is_told_by(&text) || are_to_come(&written.name, presences)
                }
                Boots::Unclear => are_to_come(&written.name, presences),
            };
            Some(if has_other_times {
                after_reboot(written, presences)
            } else {
                written
            })
        }
    }
}

/// Whether times are of a clock that shows more than this one: what began is over, unless it lives by a presence.
fn are_to_come(name: &NameState, presences: &Presences) -> bool {
    let latest = BootClock.now().plus(Booted::TOLERANCE);
    let mut timed = name
        .entries
        .iter()
        .filter(|one| !has_presence(one, presences));
    timed.any(|entry| entry.since > latest)
}

fn has_presence(entry: &Entry, presences: &Presences) -> bool {
    let owner = entry.owner.as_ref();
    owner.is_some_and(|owner| presences.contains_key(owner))
}

/// What was to end at a time has ended: that was a time of another boot. The others' presences tell whether they live, as always.
pub(super) fn after_reboot(mut written: Written, presences: &Presences) -> Written {
    let now = BootClock.now();
    let mut was_held = false;
    written.name.entries.retain_mut(|entry| {
        let lives_by_presence = has_presence(entry, presences) || entry.state == EntryState::Broken;
        was_held |= !lives_by_presence && entry.owner.is_some() && entry.mode == Mode::Exclusive;
        entry.since = entry.since.min(now);
        lives_by_presence
    });
    if was_held {
        written.name.abandoned_until = Some(BootInstant::MAX);
    }
    written
}

pub(super) type ByOwner<T> = HashMap<Owner, T, BuildHasherDefault<OwnerHasher>>;
pub(super) type Owners = HashSet<Owner, BuildHasherDefault<OwnerHasher>>;

/// The hash of the Rust compiler (FxHash), with the bits mixed at the end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OwnerHasher(u64);

const FACTOR: u64 = 0x517c_c1b7_2722_0a95;

impl OwnerHasher {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(FACTOR);
    }
}

impl Hasher for OwnerHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.add(u64::from_le_bytes(*word));
        }
        for byte in rest {
            self.add(u64::from(*byte));
        }
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

#[cfg(test)]
mod tests;
