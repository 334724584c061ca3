//! `ls`: which locks are taken, and by whom.

use clap::{Arg, ArgMatches, Command};
use crosslock::{Inspection, LockState, Locker};

use crate::args::{self, Globals};
use crate::status::{Failure, OK, Outcome};
use crate::table::{Cell, Style, Table};
use crate::{output, show};

pub(crate) const HEAD: &[&str] = &[
    "NAME", "KIND", "HOLDER", "LABEL", "HELD", "TTL", "TOKEN", "WAITERS",
];

pub(crate) fn command() -> Command {
    let prefix = Arg::new("prefix")
        .value_name("PREFIX")
        .help("Only those whose names begin so");
    Command::new("ls")
        .about("List the locks that are taken, and who has them")
        .arg(prefix)
}

pub(crate) fn run(globals: &Globals, matches: &ArgMatches) -> Outcome {
    let prefix = args::text(matches, "prefix").unwrap_or_default();
    let locks = taken(&globals.locker()?, prefix)?;
    let text = if globals.words.json {
        output::json_lines(&locks)?
    } else {
        text(&locks)
    };
    output::print(&text)?;
    Ok(OK)
}

/// The locks that are taken, by name. One that is released meanwhile isn't among them.
pub(crate) fn taken(locker: &Locker, prefix: &str) -> Result<Vec<Inspection>, Failure> {
    let mut names = locker.list(prefix)?.collect::<Result<Vec<_>, _>>()?;
    names.sort_unstable();
    let mut locks = Vec::with_capacity(names.len());
    for name in names {
        let seen = locker.inspect(&name)?;
        if seen.state != LockState::Free || !seen.waiters.is_empty() {
            locks.push(seen);
        }
    }
    Ok(locks)
}

fn text(locks: &[Inspection]) -> String {
    let mut table = Table::new(HEAD);
    for lock in locks {
        table.push(row(lock));
    }
    if !output::is_terminal() {
        return table.for_programs();
    }
    if locks.is_empty() {
        return String::new();
    }
    let style = Style::of_terminal();
    table.for_people(style).join("\n") + "\n"
}

/// Of several holders the one that has it for longest stands for all.
pub(crate) fn row(seen: &Inspection) -> Vec<Cell> {
    let holder = seen.holders.iter().max_by_key(|holder| holder.held_for);
    let party = holder.and_then(|holder| holder.party.as_ref());
    let kept = match seen.state {
        LockState::Kept { remaining, .. } => remaining,
        _ => None,
    };
    let remaining = holder.and_then(|holder| holder.remaining).or(kept);
    vec![
        Cell::text(&seen.name),
        Cell::text(&show::kind(seen)),
        Cell::or_nothing(holder, |holder| show::party_cell(holder.party.as_ref())),
        show::label_cell(party),
        Cell::or_nothing(holder.and_then(|holder| holder.held_for), Cell::time),
        Cell::or_nothing(remaining, Cell::time),
        token(holder.and_then(|holder| holder.token)),
        Cell::text(&seen.waiters.len().to_string()),
    ]
}

pub(crate) fn token(token: Option<u64>) -> Cell {
    Cell::or_nothing(token, |token| Cell::text(&token.to_string()))
}
