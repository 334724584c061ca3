//! What a name's file says: the text of this boot, or what is left of that of another.
//!
//! It uses `booted`, `text`, and what `store::page` finds.

use super::booted::Booted;
use super::store::page::{Boots, Found};
use super::text::{Doors, Written, parse};
use crate::base::claim::Mode;
use crate::base::clock::{BootClock, BootInstant, Clock};
use crate::engine::rules::{Entry, EntryState, NameState};

/// What a file says of its name; `None` when it says something else.
pub(super) fn written_of(found: Found, doors: &mut Doors) -> Option<Written> {
    match found {
        Found::Fresh | Found::Cut => Some(Written::default()),
        Found::Text { text, boots, seen } => {
            let mut written = parse(&text, doors)?;
            if let Some(seen) = seen {
                written.name.has_seen(seen);
            }
            let has_other_times = match boots {
                Boots::Same => false,
                Boots::Differ => !Booted::is_told_by(&text) || are_to_come(&written.name, doors),
                Boots::Unclear => are_to_come(&written.name, doors),
            };
            Some(if has_other_times {
                after_reboot(written, doors)
            } else {
                written
            })
        }
    }
}

/// Whether times are of a clock that shows more than this one: what began is over, unless it lives by a door.
fn are_to_come(name: &NameState, doors: &Doors) -> bool {
    let latest = BootClock.now().plus(Booted::TOLERANCE);
    let mut timed = name.entries.iter().filter(|one| !has_door(one, doors));
    timed.any(|entry| entry.since > latest)
}

fn has_door(entry: &Entry, doors: &Doors) -> bool {
    let owner = entry.owner.as_ref();
    owner.is_some_and(|owner| doors.contains_key(owner))
}

/// What was to end at a time has ended: that was a time of another boot. The others' doors tell whether they live, as always.
pub(super) fn after_reboot(mut written: Written, doors: &Doors) -> Written {
    let now = BootClock.now();
    let mut was_held = false;
    written.name.entries.retain_mut(|entry| {
        let lives_by_door = has_door(entry, doors) || entry.state == EntryState::Broken;
        was_held |= !lives_by_door && entry.owner.is_some() && entry.mode == Mode::Exclusive;
        entry.since = entry.since.min(now);
        lives_by_door
    });
    if was_held {
        written.name.abandoned_until = Some(BootInstant::MAX);
    }
    written
}
