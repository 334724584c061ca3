//! `show`: everything about one lock.

use clap::{ArgMatches, Command};
use crosslock::{Holder, Inspection, LockState, Waiter};

use crate::args::{self, Globals};
use crate::ls::token;
use crate::status::{OK, Outcome};
use crate::table::{Cell, Style, Table, bold};
use crate::visible::visible;
use crate::{duration, output, results, shown};

pub(crate) fn command() -> Command {
    Command::new("show")
        .about("Show who holds a lock, and who waits for it")
        .arg(args::name())
}

pub(crate) fn run(globals: &Globals, matches: &ArgMatches) -> Outcome {
    let name = args::text(matches, "name").unwrap_or_default();
    let seen = globals.locker()?.inspect(name)?;
    let text = if globals.json {
        results::json_lines(&[seen])?
    } else if output::is_terminal() {
        for_people(&seen, Style::of_terminal()).join("\n") + "\n"
    } else {
        for_programs(&seen)
    };
    results::print(&text)?;
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
        Cell::text(&shown::kind(seen)),
        Cell::or_nothing(kept, Cell::time),
        token(seen.last_token),
    ]);
    let parts = [
        ("lock", lock),
        ("holder", holders(seen)),
        ("waiter", waiters(seen)),
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
    let mut first = format!("{name}: {}", shown::kind(seen));
    if let LockState::Kept {
        remaining: Some(remaining),
        ..
    } = seen.state
    {
        first += &format!(" for {} more", duration::text(remaining));
    }
    if let Some(last) = seen.last_token {
        first += &format!(", last token {last}");
    }
    let mut lines = vec![first];
    if !seen.holders.is_empty() {
        lines.push(String::new());
        lines.extend(holders(seen).for_people(style));
    }
    if !seen.waiters.is_empty() {
        lines.push(String::new());
        lines.extend(waiters(seen).for_people(style));
    }
    lines
}

fn holders(seen: &Inspection) -> Table {
    let mut table = Table::new(&[
        "HOLDER", "THREAD", "LABEL", "HELD", "TTL", "TOKEN", "PERMITS",
    ]);
    let row = |holder: &Holder| {
        let party = holder.party.as_ref();
        vec![
            shown::party(party),
            Cell::or_nothing(party, |party| Cell::text(&party.thread.to_string())),
            shown::label(party),
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

fn waiters(seen: &Inspection) -> Table {
    let mut table = Table::new(&["WAITER", "THREAD", "LABEL", "WAITED", "WANTS"]);
    let row = |waiter: &Waiter| {
        let party = waiter.party.as_ref();
        vec![
            shown::party(party),
            Cell::or_nothing(party, |party| Cell::text(&party.thread.to_string())),
            shown::label(party),
            Cell::or_nothing(waiter.waited_for, Cell::time),
            Cell::text(&shown::wants(waiter.wants)),
        ]
    };
    seen.waiters
        .iter()
        .for_each(|waiter| table.push(row(waiter)));
    table
}
