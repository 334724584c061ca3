//! How locks, holders and waiters are named in tables and sentences.

use std::time::Duration;

use crosslock::{Holder, Inspection, LockState, Party, Waiter, Wants};

use crate::duration;
use crate::table::Cell;
use crate::visible::visible;

/// `exclusive`, `shared 3` for three readers, `permits 1/3`, `kept` or `free`.
pub(crate) fn kind(seen: &Inspection) -> String {
    match seen.state {
        LockState::Free => "free".to_owned(),
        LockState::Exclusive => "exclusive".to_owned(),
        LockState::Shared => format!("shared {}", seen.holders.len()),
        LockState::Permits { taken, of, .. } => match of {
            Some(of) => format!("permits {taken}/{of}"),
            None => format!("permits {taken}"),
        },
        LockState::Kept { .. } => "kept".to_owned(),
        _ => "taken".to_owned(),
    }
}

pub(crate) fn wants(wants: Wants) -> String {
    match wants {
        Wants::Exclusive => "exclusive".to_owned(),
        Wants::Shared => "shared".to_owned(),
        Wants::Permits { count, .. } => format!("permits {count}"),
        _ => "another way".to_owned(),
    }
}

/// `<host>/<pid>`; of another program, which tells neither, `foreign`.
pub(crate) fn party(party: Option<&Party>) -> Cell {
    match party {
        Some(party) => Cell::text(&format!("{}/{}", party.host, party.pid)),
        None => Cell::text("foreign"),
    }
}

pub(crate) fn label(party: Option<&Party>) -> Cell {
    let label = party.and_then(|party| party.label.as_deref());
    Cell::or_nothing(label, Cell::text)
}

/// In a sentence: `web-2/4711 "deploy 4711" for 12 s`.
pub(crate) fn holder(holder: &Holder) -> String {
    who(holder.party.as_ref(), holder.held_for)
}

fn who(party: Option<&Party>, time: Option<Duration>) -> String {
    let mut text = match party {
        Some(party) => visible(&format!("{}/{}", party.host, party.pid)),
        None => "a program that isn't crosslock".to_owned(),
    };
    if let Some(label) = party.and_then(|party| party.label.as_deref()) {
        text += &format!(" \"{}\"", visible(label));
    }
    if let Some(time) = time {
        text += &format!(" for {}", duration::text(time));
    }
    text
}

/// In a sentence: the holder of that name, or how many there are.
pub(crate) fn holders(holders: &[Holder]) -> String {
    const NAMED: usize = 3;
    let mut named: Vec<_> = holders.iter().take(NAMED).map(holder).collect();
    if holders.len() > NAMED {
        named.push(format!("{} more", holders.len() - NAMED));
    }
    match named.pop() {
        Some(last) if !named.is_empty() => format!("{} and {last}", named.join(", ")),
        Some(only) => only,
        None => "nobody".to_owned(),
    }
}

/// In a sentence: `web-3/99 "deploy 4712" for 3 s`.
pub(crate) fn waiter(waiter: &Waiter) -> String {
    who(waiter.party.as_ref(), waiter.waited_for)
}
