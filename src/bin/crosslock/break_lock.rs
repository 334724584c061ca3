//! `break`: takes a lock from whoever has it.

use std::io::{BufRead as _, IsTerminal as _, Write as _, stderr, stdin};

use clap::{ArgMatches, Command};
use crosslock::{Holder, Inspection, LockState, Locker};

use crate::args::{self, Globals};
use crate::status::{Failure, OK, Outcome, TAKEN};
use crate::visible::visible;
use crate::{duration, results, shown};

pub(crate) fn command() -> Command {
    let yes = args::flag("yes")
        .short('y')
        .long("yes")
        .help("Don't ask: needed where standard input is no terminal");
    Command::new("break")
        .about("Take a lock from whoever has it, and give it to the first that waits")
        .args([args::name(), yes])
}

pub(crate) fn run(globals: &Globals, matches: &ArgMatches) -> Outcome {
    let name = args::text(matches, "name").unwrap_or_default();
    let asks = !matches.get_flag("yes");
    if asks && !stdin().is_terminal() {
        let text =
            "nobody can be asked: use --yes to break it, or crosslock show to see who has it";
        return Err(Failure::usage(text));
    }
    let locker = globals.locker()?;
    if asks && !is_wanted(&locker, name)? {
        return Ok(TAKEN);
    }
    let broken = locker.break_lock(name)?;
    let text = if globals.json {
        let told = serde_json::json!({"name": name, "broken": broken});
        results::json_lines(&[told])?
    } else {
        told(name, &broken) + "\n"
    };
    results::print(&text)?;
    Ok(OK)
}

fn told(name: &str, broken: &[Holder]) -> String {
    let name = visible(name);
    if broken.is_empty() {
        return format!("{name} is free: nobody had it");
    }
    format!("broke {name}, held by {}", shown::holders(broken))
}

/// Asks until those who have the lock are those who were asked about. Of a lock that is free there is nothing to ask.
fn is_wanted(locker: &Locker, name: &str) -> Result<bool, Failure> {
    let mut seen = locker.inspect(name)?;
    loop {
        if seen.state == LockState::Free || !answers_yes(&question(&seen)) {
            return Ok(seen.state == LockState::Free);
        }
        let now = locker.inspect(name)?;
        if is_with_the_same(&seen, &now) {
            return Ok(true);
        }
        seen = now;
    }
}

fn is_with_the_same(before: &Inspection, now: &Inspection) -> bool {
    let who = |seen: &Inspection| {
        let holders = seen.holders.iter();
        let mut who: Vec<_> = holders
            .map(|holder| {
                (
                    holder.token,
                    holder.party.as_ref().map(|it| (it.pid, it.thread)),
                )
            })
            .collect();
        who.sort_unstable();
        who
    };
    now.state != LockState::Free && who(before) == who(now)
}

fn question(seen: &Inspection) -> String {
    let name = visible(&seen.name);
    match seen.state {
        LockState::Kept {
            remaining: Some(remaining),
            ..
        } => {
            let remaining = duration::text(remaining);
            format!("break {name}, held by nobody and kept for {remaining} more? [y/N] ")
        }
        _ => format!(
            "break {name}, held by {}? [y/N] ",
            shown::holders(&seen.holders)
        ),
    }
}

fn answers_yes(question: &str) -> bool {
    let mut err = stderr().lock();
    // Without a question there is no answer.
    if err.write_all(question.as_bytes()).is_err() {
        return false;
    }
    let mut answer = String::new();
    let read = stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}
