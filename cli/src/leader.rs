//! `leader`: shows who leads an election, and each change if it is asked to follow.

use std::time::Instant;

use clap::{ArgMatches, Command};
use crosslock::{Leader, crossbeam_channel::RecvTimeoutError};
use serde_json::json;

use crate::args::{self, Globals};
use crate::output::{self, visible};
use crate::status::{Failure, NO, OK, Outcome};
use crate::table::{Cell, Table};
use crate::time;
use crate::watch::{LONGEST, Signals};

pub(crate) fn command() -> Command {
    let follow = args::flag("follow", "Also show each change");
    Command::new("leader")
        .about("Show who leads an election; exit with 1 if nobody does")
        .args([args::name().help("Name of the election"), follow.short('f')])
}

pub(crate) fn run(globals: &Globals, matches: &ArgMatches) -> Outcome {
    let name = args::text(matches, "name").unwrap_or_default();
    let election = globals.locker()?.election(name)?;
    let print = |leader: Option<&Leader>| print(globals, name, leader);
    if !matches.get_flag("follow") {
        let leader = election.leader()?;
        if leader.is_none() {
            let text = format!("nobody leads {}", visible(name));
            globals.words.say("nobody", &[("name", name.into())], &text);
            return Ok(NO);
        }
        return print(leader.as_ref()).map(|_| OK);
    }
    let signals = Signals::listen()?;
    let mut leaders = election.observe()?;
    loop {
        match leaders.recv_timeout(LONGEST) {
            Ok(leader) if !print(leader.as_ref())? => return Ok(OK),
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            // If this user may not look any more, this says so.
            Err(RecvTimeoutError::Disconnected) => leaders = election.observe()?,
        }
        if let Some(status) = signals.pause_until(Instant::now()) {
            return Ok(status);
        }
    }
}

/// One line. Returns `false` if nobody reads it.
fn print(globals: &Globals, name: &str, leader: Option<&Leader>) -> Result<bool, Failure> {
    let since = leader.map(|it| time::moment(it.since));
    if globals.words.json {
        let leader = leader.map(|it| {
            json!({
                "host": it.host, "pid": it.pid, "label": it.label,
                "since": since, "token": it.token, "value": it.value,
            })
        });
        return output::print(&format!("{}\n", json!({"name": name, "leader": leader})));
    }
    let row = vec![
        Cell::of(leader.map(who)),
        Cell::of(leader.and_then(|it| it.label.as_deref())),
        Cell::of(since),
        Cell::of(leader.map(|it| it.token)),
        Cell::of(leader.and_then(|it| it.value.as_deref())),
    ];
    output::print(&Table::new(&[], [row]).for_programs())
}

/// As `show` names a holder.
fn who(leader: &Leader) -> String {
    match &*leader.host {
        "" => "foreign".to_owned(),
        host => format!("{host}/{}", leader.pid),
    }
}
