//! `show`: shows all about one lock. Also how tables and sentences name locks, holders and waiters.

use std::time::Duration;

use clap::{ArgMatches, Command};
use crosslock::{Holder, Inspection, LockState, Party, Waiter, Wants};

use crate::args::{self, Globals};
use crate::output::{self, visible};
use crate::status::{OK, Outcome};
use crate::table::{Cell, Style, Table};
use crate::time;

pub(crate) fn command() -> Command {
    Command::new("show")
        .about("Show the holders and waiters of a lock")
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

/// One line for the lock, each holder and each waiter. Its first word is `lock`, `holder` or `waiter`.
fn for_programs(seen: &Inspection) -> String {
    let lock = vec![
        Cell::text(&seen.name),
        Cell::text(&kind(seen)),
        Cell::time(kept(seen)),
        Cell::of(seen.last_token),
    ];
    let lock = Table::new(&["NAME", "KIND", "TTL", "TOKEN"], [lock]);
    let [holders, waiters] = tables(seen);
    let mut text = String::new();
    for (word, part) in [("lock", lock), ("holder", holders), ("waiter", waiters)] {
        for line in part.for_programs().lines() {
            text += &format!("{word}\t{line}\n");
        }
    }
    text
}

pub(crate) fn for_people(seen: &Inspection, style: Style) -> Vec<String> {
    let name = style.bold(&visible(&seen.name));
    let mut first = format!("{name}: {}", kind(seen));
    if let Some(remaining) = kept(seen) {
        first += &format!(" for {} more", time::text(remaining));
    }
    if let Some(last) = seen.last_token {
        first += &format!(", last token {last}");
    }
    let mut lines = vec![first];
    for table in tables(seen).iter().filter(|table| !table.is_empty()) {
        lines.push(String::new());
        lines.extend(table.for_people(style));
    }
    lines
}

/// The tables of the holders and of the waiters.
fn tables(seen: &Inspection) -> [Table; 2] {
    const HOLDERS: &[&str] = &[
        "HOLDER", "THREAD", "LABEL", "HELD", "TTL", "TOKEN", "PERMITS",
    ];
    const WAITERS: &[&str] = &["WAITER", "THREAD", "LABEL", "WAITED", "WANTS"];
    let row = |party: &Option<Party>, rest: Vec<Cell>| {
        let party = party.as_ref();
        let thread = Cell::of(party.map(|party| party.thread));
        let who = [party_cell(party), thread, label_cell(party)];
        who.into_iter().chain(rest).collect()
    };
    let holder = |it: &Holder| {
        let [held, remaining] = [it.held_for, it.remaining].map(Cell::time);
        let permits = Cell::of(Some(it.permits));
        row(
            &it.party,
            vec![held, remaining, Cell::of(it.token), permits],
        )
    };
    let waiter = |it: &Waiter| {
        let rest = vec![Cell::time(it.waited_for), Cell::text(&wants(it.wants))];
        row(&it.party, rest)
    };
    [
        Table::new(HOLDERS, seen.holders.iter().map(holder)),
        Table::new(WAITERS, seen.waiters.iter().map(waiter)),
    ]
}

/// How much longer a lock without a holder stays taken.
pub(crate) fn kept(seen: &Inspection) -> Option<Duration> {
    match seen.state {
        LockState::Kept { remaining, .. } => remaining,
        _ => None,
    }
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

/// `<host>/<pid>`, or `foreign` for another program, which doesn't store them.
pub(crate) fn party_cell(party: Option<&Party>) -> Cell {
    let party = party.map(|party| format!("{}/{}", party.host, party.pid));
    Cell::text(party.as_deref().unwrap_or("foreign"))
}

pub(crate) fn label_cell(party: Option<&Party>) -> Cell {
    Cell::of(party.and_then(|party| party.label.as_deref()))
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

/// In a sentence: the first three holders, and the number of the others.
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

/// In a sentence: who holds a lock, or for how long it is kept.
pub(crate) fn held(seen: &Inspection) -> String {
    if !matches!(seen.state, LockState::Kept { .. }) {
        return format!("held by {}", holders(&seen.holders));
    }
    let long = kept(seen).map(|remaining| format!(" for {} more", time::text(remaining)));
    format!("without a holder, but kept{}", long.unwrap_or_default())
}

/// In a sentence: `web-3/99 "deploy 4712" for 3 s`.
pub(crate) fn waiter(waiter: &Waiter) -> String {
    who(waiter.party.as_ref(), waiter.waited_for)
}
