//! `show`: everything about one lock; and how locks, holders and waiters are named in tables and sentences.

use std::time::Duration;

use clap::{ArgMatches, Command};
use crosslock::{Holder, Inspection, LockState, Party, Waiter, Wants};

use crate::args::{self, Globals};
use crate::ls::token;
use crate::output::visible;
use crate::status::{OK, Outcome};
use crate::table::{Cell, Style, Table, bold};
use crate::{output, time};

pub(crate) fn command() -> Command {
    Command::new("show")
        .about("Show who holds a lock, and who waits for it")
        .arg(args::name())
}

pub(crate) fn run(globals: &Globals, matches: &ArgMatches) -> Outcome {
    let name = args::text(matches, "name").unwrap_or_default();
    let seen = globals.locker()?.inspect(name)?;
    let text = if globals.words.json {
        output::json_lines(&[seen])?
    } else if output::is_terminal() {
        for_people(&seen, Style::of_terminal()).join("\n") + "\n"
    } else {
        for_programs(&seen)
    };
    output::print(&text)?;
    Ok(OK)
}

/// A line for the lock, each holder and each waiter, which begins with what it is about.
fn for_programs(seen: &Inspection) -> String {
    let kept = match seen.state {
        LockState::Kept { remaining, .. } => remaining,
        _ => None,
    };
    let mut lock = Table::new(&["NAME", "KIND", "TTL", "TOKEN"]);
    lock.push(vec![
        Cell::text(&seen.name),
        Cell::text(&kind(seen)),
        Cell::or_nothing(kept, Cell::time),
        token(seen.last_token),
    ]);
    let parts = [
        ("lock", lock),
        ("holder", holders_table(seen)),
        ("waiter", waiters_table(seen)),
    ];
    let mut text = String::new();
    for (word, part) in parts {
        for line in part.for_programs().lines() {
            text += &format!("{word}\t{line}\n");
        }
    }
    text
}

pub(crate) fn for_people(seen: &Inspection, style: Style) -> Vec<String> {
    let name = visible(&seen.name);
    let name = match style {
        Style::Coloured => bold(&name),
        Style::Plain => name,
    };
    let mut first = format!("{name}: {}", kind(seen));
    if let LockState::Kept {
        remaining: Some(remaining),
        ..
    } = seen.state
    {
        first += &format!(" for {} more", time::text(remaining));
    }
    if let Some(last) = seen.last_token {
        first += &format!(", last token {last}");
    }
    let mut lines = vec![first];
    if !seen.holders.is_empty() {
        lines.push(String::new());
        lines.extend(holders_table(seen).for_people(style));
    }
    if !seen.waiters.is_empty() {
        lines.push(String::new());
        lines.extend(waiters_table(seen).for_people(style));
    }
    lines
}

fn holders_table(seen: &Inspection) -> Table {
    let mut table = Table::new(&[
        "HOLDER", "THREAD", "LABEL", "HELD", "TTL", "TOKEN", "PERMITS",
    ]);
    let row = |holder: &Holder| {
        let party = holder.party.as_ref();
        vec![
            party_cell(party),
            Cell::or_nothing(party, |party| Cell::text(&party.thread.to_string())),
            label_cell(party),
            Cell::or_nothing(holder.held_for, Cell::time),
            Cell::or_nothing(holder.remaining, Cell::time),
            token(holder.token),
            Cell::text(&holder.permits.to_string()),
        ]
    };
    seen.holders
        .iter()
        .for_each(|holder| table.push(row(holder)));
    table
}

fn waiters_table(seen: &Inspection) -> Table {
    let mut table = Table::new(&["WAITER", "THREAD", "LABEL", "WAITED", "WANTS"]);
    let row = |waiter: &Waiter| {
        let party = waiter.party.as_ref();
        vec![
            party_cell(party),
            Cell::or_nothing(party, |party| Cell::text(&party.thread.to_string())),
            label_cell(party),
            Cell::or_nothing(waiter.waited_for, Cell::time),
            Cell::text(&wants(waiter.wants)),
        ]
    };
    seen.waiters
        .iter()
        .for_each(|waiter| table.push(row(waiter)));
    table
}

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
pub(crate) fn party_cell(party: Option<&Party>) -> Cell {
    match party {
        Some(party) => Cell::text(&format!("{}/{}", party.host, party.pid)),
        None => Cell::text("foreign"),
    }
}

pub(crate) fn label_cell(party: Option<&Party>) -> Cell {
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
        text += &format!(" for {}", time::text(time));
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
