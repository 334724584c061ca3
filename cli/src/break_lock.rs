//! `break`: takes a lock from its holder.

use std::io::{BufRead as _, IsTerminal as _, Write as _, stderr, stdin};

use clap::{ArgMatches, Command};
use crosslock::{Holder, Inspection, LockState, Locker, Party};

use crate::args::{self, Globals};
use crate::output::{self, visible};
use crate::show;
use crate::status::{Failure, OK, Outcome, TAKEN};

pub(crate) fn command() -> Command {
    let yes = args::flag(
        "yes",
        "Don't ask; required if standard input isn't a terminal",
    )
    .short('y');
    Command::new("break")
        .about("Take a lock from its holder, and give it to the first waiter")
        .args([args::name(), yes])
}

pub(crate) fn run(globals: &Globals, matches: &ArgMatches) -> Outcome {
    let name = args::text(matches, "name").unwrap_or_default();
    let asks = !matches.get_flag("yes");
    if asks && !stdin().is_terminal() {
        let text = "can't ask for confirmation: use --yes to break the lock, or `crosslock show` to see its holder";
        return Err(Failure::usage(text));
    }
    let locker = globals.locker()?;
    let before = if asks {
        let Some(wanted) = wanted(&locker, name)? else {
            return Ok(TAKEN);
        };
        Some(wanted)
    } else {
        // A user may be allowed to break a lock, but not to look at it.
        locker.inspect(name).ok()
    };
    let broken = locker.break_lock(name)?;
    let text = if globals.words.json {
        let told = serde_json::json!({"name": name, "broken": broken});
        output::json_lines(&[told])?
    } else {
        told(name, &broken, before.as_ref()) + "\n"
    };
    output::print(&text)?;
    Ok(OK)
}

/// `before` is the state of the lock before the break, if known.
fn told(name: &str, broken: &[Holder], before: Option<&Inspection>) -> String {
    let name = visible(name);
    if !broken.is_empty() {
        return format!("broke {name}, held by {}", show::holders(broken));
    }
    match before {
        Some(seen) if matches!(seen.state, LockState::Kept { .. }) => {
            format!("broke {name}, {}", show::held(seen))
        }
        _ => format!("{name} is already free"),
    }
}

/// Asks whether to break the lock, and asks again if its holders changed meanwhile. Returns the state of the lock if
/// the answer was yes, or if the lock is free.
fn wanted(locker: &Locker, name: &str) -> Result<Option<Inspection>, Failure> {
    let mut seen = locker.inspect(name)?;
    loop {
        if seen.state == LockState::Free {
            return Ok(Some(seen));
        }
        let (lock, held) = (visible(name), show::held(&seen));
        if !answers_yes(&format!("break {lock}, {held}? [y/N] ")) {
            return Ok(None);
        }
        let now = locker.inspect(name)?;
        if is_with_the_same(&seen, &now) {
            return Ok(Some(now));
        }
        seen = now;
    }
}

fn is_with_the_same(before: &Inspection, now: &Inspection) -> bool {
    let who = |seen: &Inspection| {
        let party = |it: &Party| (it.host.clone(), it.pid, it.thread);
        let holders = seen.holders.iter();
        let mut who: Vec<_> = holders
            .map(|it| (it.token, it.party.as_ref().map(party)))
            .collect();
        who.sort_unstable();
        who
    };
    now.state != LockState::Free && who(before) == who(now)
}

fn answers_yes(question: &str) -> bool {
    let mut err = stderr().lock();
    // If the question can't be printed, the answer is no.
    if err.write_all(question.as_bytes()).is_err() {
        return false;
    }
    let mut answer = String::new();
    let read = stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}
