//! `ls`: lists the taken locks and their holders.

use clap::{Arg, ArgMatches, Command};
use crosslock::{Inspection, LockState, Locker};

use crate::args::{self, Globals};
use crate::status::{Failure, OK, Outcome};
use crate::table::{Cell, Style, Table};
use crate::{output, show};

pub(crate) fn command() -> Command {
    let prefix = Arg::new("prefix")
        .value_name("PREFIX")
        .help("List only names that begin with PREFIX");
    Command::new("ls")
        .about("List taken locks and their holders")
        .arg(prefix)
}

pub(crate) fn run(globals: &Globals, matches: &ArgMatches) -> Outcome {
    let prefix = args::text(matches, "prefix").unwrap_or_default();
    let locks = taken(&globals.locker()?, prefix)?;
    let text = if globals.words.json {
        output::json_lines(&locks)?
    } else if !output::is_terminal() {
        table(&locks).for_programs()
    } else if locks.is_empty() {
        String::new()
    } else {
        table(&locks).for_people(Style::of_terminal()).join("\n") + "\n"
    };
    output::print(&text)?;
    Ok(OK)
}

/// The taken locks, ordered by name. A lock that is released meanwhile is left out.
pub(crate) fn taken(locker: &Locker, prefix: &str) -> Result<Vec<Inspection>, Failure> {
    let mut names = locker.list(prefix)?.collect::<Result<Vec<_>, _>>()?;
    names.sort_unstable();
    let mut locks = Vec::with_capacity(names.len());
    for name in names {
        let seen = locker.inspect(&name)?;
        if is_taken(&seen) {
            locks.push(seen);
        }
    }
    Ok(locks)
}

pub(crate) fn is_taken(seen: &Inspection) -> bool {
    seen.state != LockState::Free || !seen.waiters.is_empty()
}

/// One row for each lock.
pub(crate) fn table<'a>(locks: impl IntoIterator<Item = &'a Inspection>) -> Table {
    const HEAD: &[&str] = &[
        "NAME", "KIND", "HOLDER", "LABEL", "HELD", "TTL", "TOKEN", "WAITERS",
    ];
    Table::new(HEAD, locks.into_iter().map(row))
}

/// If several processes hold the lock, the row shows the one that has held it longest.
fn row(seen: &Inspection) -> Vec<Cell> {
    let holder = seen.holders.iter().max_by_key(|holder| holder.held_for);
    let party = holder.and_then(|holder| holder.party.as_ref());
    let remaining = holder.and_then(|holder| holder.remaining);
    vec![
        Cell::text(&seen.name),
        Cell::text(&show::kind(seen)),
        holder.map_or_else(Cell::nothing, |_| show::party_cell(party)),
        show::label_cell(party),
        Cell::time(holder.and_then(|holder| holder.held_for)),
        Cell::time(remaining.or(show::kept(seen))),
        Cell::of(holder.and_then(|holder| holder.token)),
        Cell::of(Some(seen.waiters.len())),
    ]
}
