//! `break`: takes a lock from whoever has it.

use std::io::{BufRead as _, IsTerminal as _, Write as _, stderr, stdin};

use clap::{ArgMatches, Command};
use crosslock::{Holder, Inspection, LockState, Locker, Party};

use crate::args::{self, Globals};
use crate::output::visible;
use crate::status::{Failure, OK, Outcome, TAKEN};
use crate::{output, show, time};

pub(crate) fn command() -> Command {
    let yes = args::flag(
        "yes",
        "Don't ask: needed where standard input is no terminal",
    )
    .short('y');
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
    let before = if asks {
        let Some(wanted) = wanted(&locker, name)? else {
            return Ok(TAKEN);
        };
        Some(wanted)
    } else {
        // Who may break a lock need not be allowed to look at it.
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

/// `before` is how the lock stood, if that is known.
fn told(name: &str, broken: &[Holder], before: Option<&Inspection>) -> String {
    let name = visible(name);
    if !broken.is_empty() {
        return format!("broke {name}, held by {}", show::holders(broken));
    }
    match before.and_then(kept_for) {
        Some(kept) => format!("broke {name}, {kept}"),
        None => format!("{name} is free: nobody had it"),
    }
}

/// Asks until those who have the lock are those who were asked about. Of a lock that is free there is nothing to ask.
/// Gives how the lock stands that is to be broken.
fn wanted(locker: &Locker, name: &str) -> Result<Option<Inspection>, Failure> {
    let mut seen = locker.inspect(name)?;
    loop {
        if seen.state == LockState::Free {
            return Ok(Some(seen));
        }
        if !answers_yes(&question(&seen)) {
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

fn question(seen: &Inspection) -> String {
    let name = visible(&seen.name);
    let how = kept_for(seen).unwrap_or_else(|| format!("held by {}", show::holders(&seen.holders)));
    format!("break {name}, {how}? [y/N] ")
}

/// What is said of a lock that stays taken without a holder.
fn kept_for(seen: &Inspection) -> Option<String> {
    let is_kept = matches!(seen.state, LockState::Kept { .. });
    let long = show::kept(seen).map(|remaining| format!(" for {} more", time::text(remaining)));
    is_kept.then(|| format!("held by nobody and kept{}", long.unwrap_or_default()))
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
