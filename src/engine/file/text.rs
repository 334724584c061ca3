//! A name's state as text: a line for the counter, and one for each entry of its list.
//!
//! `<state> <mode> [token=] [since=] [until=] [door=<id> <owner>]`, and `broken door=<id> <owner>`. Times are seconds
//! since this boot. If any of them is an end, a line `booted` tells them from those of another.

use std::fmt::{self, Write as _};
use std::time::Duration;

use super::page::{Boots, Found};
use crate::base::{BootClock, BootInstant, Clock, Key, Mode, Owner, Token, sys::time};
use crate::engine::rules::{Entry, EntryState, NameState, PresenceId, Table};

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

impl Written {
    /// As the rules have it.
    pub(super) fn table(self, key: &Key) -> Table {
        let mut table = Table::default();
        table.put(key, self.name, self.counter);
        table
    }
}

/// What the text says; `None` when it is none.
pub(super) fn parse(text: &str) -> Option<Written> {
    let mut written = Written::default();
    for line in text.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "counter" => written.counter = rest.parse().ok()?,
            // Since when isn't said.
            "abandoned" => written.name.abandoned_until = Some(BootInstant::MAX),
            Booted::WORD => drop(Booted::parse(rest)?),
            BROKEN => written.name.entries.push(broken(rest)?),
            _ => {
                let (mode, rest) = rest.split_once(' ')?;
                let fields = Fields::parse(rest)?;
                written.name.entries.push(fields.entry(word, mode)?);
            }
        }
    }
    Some(written)
}

/// The text that says this.
pub(super) fn text_of(written: &Written) -> String {
    let mut text = String::with_capacity(160 * (1 + written.name.entries.len()));
    push_all(&mut text, written).expect("a string takes any text");
    text
}

fn push_all(text: &mut String, Written { counter, name }: &Written) -> fmt::Result {
    writeln!(text, "counter {counter}")?;
    if name.abandoned_until.is_some() {
        text.push_str("abandoned\n");
    }
    if name.entries.iter().any(|one| one.until != BootInstant::MAX) {
        writeln!(text, "{} {}", Booted::WORD, Booted::now().0)?;
    }
    for entry in &name.entries {
        text.push_str(word(entry.state));
        if !entry.is_broken() {
            push_state(text, entry)?;
        }
        push_owner(text, entry)?;
        text.push('\n');
    }
    Ok(())
}

/// What a line begins with.
fn word(state: EntryState) -> &'static str {
    match state {
        EntryState::Has(_) => "has",
        EntryState::Given(_) => "given",
        EntryState::Granted => "granted",
        EntryState::Kept => "kept",
        EntryState::Broken => BROKEN,
        EntryState::Waits { first, more } => match (first, more) {
            (false, false) => WAITS,
            (true, false) => "waits-first",
            (false, true) => "waits-for-more",
            (true, true) => "waits-for-more-first",
        },
    }
}

fn push_state(text: &mut String, entry: &Entry) -> fmt::Result {
    match entry.mode {
        // Tasks aren't entries.
        Mode::Exclusive | Mode::Task => text.push_str(" exclusive"),
        Mode::Shared => text.push_str(" shared"),
        Mode::Permits { count, of } => write!(text, " {count}/{of}")?,
    }
    if let Some(token) = entry.token() {
        write!(text, " token={}", token.number)?;
    }
    write!(text, " since={}", Seconds(entry.since))?;
    if entry.until != BootInstant::MAX {
        write!(text, " until={}", Seconds(entry.until))?;
    }
    Ok(())
}

fn push_owner(text: &mut String, entry: &Entry) -> fmt::Result {
    let Some(owner) = &entry.owner else {
        return Ok(());
    };
    match entry.presence {
        Some(presence) => write!(text, " door={presence} {}", owner.as_str()),
        None => write!(text, " door={NO_PRESENCE} {}", owner.as_str()),
    }
}

/// What stands behind the mode.
#[derive(Default)]
struct Fields {
    token: Option<u64>,
    since: Option<BootInstant>,
    until: Option<BootInstant>,
    presence: Option<PresenceId>,
    owner: Option<Owner>,
}

impl Fields {
    /// A line without an owner has no presence, so the owner, in which a label may have any character, is what follows
    /// the presence.
    fn parse(mut rest: &str) -> Option<Self> {
        let mut fields = Fields::default();
        while !rest.is_empty() {
            let (field, after) = rest.split_once(' ').unwrap_or((rest, ""));
            let (name, value) = field.split_once('=')?;
            match name {
                "token" => fields.token = Some(value.parse().ok()?),
                "since" => fields.since = Some(Seconds::parse(value)?),
                "until" => fields.until = Some(Seconds::parse(value)?),
                "door" => {
                    if value != NO_PRESENCE {
                        fields.presence = Some(PresenceId::parse(value)?);
                    }
                    fields.owner = Some(Owner::from_text(after));
                    break;
                }
                _ => return None,
            }
            rest = after;
        }
        Some(fields)
    }

    fn entry(self, state: &str, mode: &str) -> Option<Entry> {
        let token = self.token.map(Token::from_number);
        let waits = [(false, false), (true, false), (false, true), (true, true)];
        let waits = waits.map(|(first, more)| EntryState::Waits { first, more });
        let leases = [token.map(EntryState::Has), token.map(EntryState::Given)];
        let all = leases.into_iter().flatten();
        let mut all = all
            .chain([EntryState::Granted, EntryState::Kept])
            .chain(waits);
        let state = all.find(|one| word(*one) == state)?;
        // Only what is kept is nobody's.
        if (state == EntryState::Kept) != self.owner.is_none() {
            return None;
        }
        Some(Entry {
            owner: self.owner,
            presence: self.presence,
            state,
            mode: parse_mode(mode)?,
            since: self.since?,
            until: self.until.unwrap_or(BootInstant::MAX),
        })
    }
}

/// Of one whose lease was broken nothing else counts.
fn broken(rest: &str) -> Option<Entry> {
    let fields = Fields::parse(rest)?;
    Some(Entry {
        owner: Some(fields.owner?),
        presence: fields.presence,
        state: EntryState::Broken,
        mode: Mode::Exclusive,
        since: BootInstant::START,
        until: BootInstant::MAX,
    })
}

fn parse_mode(text: &str) -> Option<Mode> {
    match text {
        "exclusive" => Some(Mode::Exclusive),
        "shared" => Some(Mode::Shared),
        permits => Mode::parse(permits).filter(|mode| mode.of_permits().is_some()),
    }
}

/// A point in time, as seconds since this boot.
struct Seconds(BootInstant);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = self.0.since(BootInstant::START);
        write!(f, "{}.{:09}", since.as_secs(), since.subsec_nanos())
    }
}

impl Seconds {
    fn parse(text: &str) -> Option<BootInstant> {
        const NANOS: usize = "000000000".len();
        let (seconds, nanos) = text.split_once('.')?;
        if nanos.len() != NANOS {
            return None;
        }
        let since = Duration::new(seconds.parse().ok()?, nanos.parse().ok()?);
        Some(BootInstant::START.plus(since))
    }
}

/// What a file says of its name; `None` when it says something else.
pub(super) fn written_of(found: Found) -> Option<Written> {
    match found {
        Found::Fresh | Found::Cut => Some(Written::default()),
        Found::Text { text, boots, seen } => {
            let mut written = parse(&text)?;
            if let Some(seen) = seen {
                written.name.has_seen(seen);
            }
            let has_other_times = match boots {
                Boots::Same => false,
                Boots::Differ => !Booted::is_told_by(&text) || are_to_come(&written.name),
                Boots::Unclear => are_to_come(&written.name),
            };
            Some(if has_other_times {
                after_reboot(written)
            } else {
                written
            })
        }
    }
}

/// Whether times are of a clock that shows more than this one: what began is over, unless it lives by a presence.
fn are_to_come(name: &NameState) -> bool {
    let latest = BootClock.now().plus(Booted::TOLERANCE);
    let mut timed = name.entries.iter().filter(|one| one.presence.is_none());
    timed.any(|entry| entry.since > latest)
}

/// What was to end at a time has ended: that was a time of another boot. The others' presences tell whether they live,
/// as always.
pub(super) fn after_reboot(mut written: Written) -> Written {
    let now = BootClock.now();
    let mut was_held = false;
    written.name.entries.retain_mut(|entry| {
        let lives_by_presence = entry.presence.is_some() || entry.state == EntryState::Broken;
        was_held |= !lives_by_presence && entry.owner.is_some() && entry.mode == Mode::Exclusive;
        entry.since = entry.since.min(now);
        lives_by_presence
    });
    if was_held {
        written.name.abandoned_until = Some(BootInstant::MAX);
    }
    written
}

/// When the host was booted, in seconds since 1970: by the wall clock, which is one for all processes of a host. Its
/// distance from the time since boot stays as it is until somebody sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Booted(u64);

impl Booted {
    const WORD: &str = "booted";

    /// Two boots are further apart. A leap second and what two clocks that are read one after the other may differ by
    /// are less.
    const TOLERANCE: Duration = Duration::from_secs(2);

    fn now() -> Self {
        let up = BootClock.now().since(BootInstant::START);
        Booted(time::wall().saturating_sub(up).as_secs())
    }

    /// Whether a text says that it was written in this boot.
    fn is_told_by(text: &str) -> bool {
        let told = text.lines().find_map(|line| {
            let (word, rest) = line.split_once(' ')?;
            (word == Booted::WORD).then(|| Booted::parse(rest))?
        });
        told.is_some_and(|told| told.0.abs_diff(Booted::now().0) <= Booted::TOLERANCE.as_secs())
    }

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Booted)
    }
}

#[cfg(test)]
mod tests;
