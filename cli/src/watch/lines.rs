//! A line for each event.

use std::time::{Instant, SystemTime};

use serde_json::json;

use super::Watch;
use super::changes::{Change, between};
use super::pause::Signals;
use super::view::{View, look};
use crate::status::{Failure, OK, Outcome, UNAVAILABLE};
use crate::table::{Cell, Table};
use crate::{ls, moment, results, shown};

/// The place can't be reached at the first look: that is told, and ends it. Later it is an event.
pub(super) fn run(watch: &Watch) -> Outcome {
    let signals = Signals::listen()?;
    let mut before: Option<View> = None;
    let mut is_reached = true;
    loop {
        let began = Instant::now();
        let lines = match look(&watch.locker, watch.name.as_deref()) {
            Ok(now) => {
                let mut lines = String::new();
                if !is_reached {
                    lines += &about_the_place(watch, "reachable", "");
                }
                is_reached = true;
                let changes = between(before.as_ref(), &now);
                lines.extend(changes.iter().map(|change| line(watch, change)));
                before = Some(now);
                lines
            }
            Err(failure) if failure.status != UNAVAILABLE || before.is_none() => {
                return Err(failure);
            }
            Err(failure) => unreachable(watch, &failure, &mut is_reached),
        };
        if !lines.is_empty() && !results::print(&lines)? {
            return Ok(OK);
        }
        if let Some(status) = signals.pause_until(watch.next(began)) {
            return Ok(status);
        }
        if watch.is_over() {
            return Ok(OK);
        }
    }
}

/// Told once an outage.
fn unreachable(watch: &Watch, failure: &Failure, is_reached: &mut bool) -> String {
    if !std::mem::take(is_reached) {
        return String::new();
    }
    about_the_place(watch, "unreachable", &failure.text)
}

fn about_the_place(watch: &Watch, event: &str, reason: &str) -> String {
    let time = moment::text(SystemTime::now());
    if watch.json {
        let told = json!({"time": time, "event": event, "reason": reason});
        return told.to_string() + "\n";
    }
    let reason = Some(reason).filter(|reason| !reason.is_empty());
    let mut table = Table::new(&["TIME", "EVENT", "NAME", "WHO", "LABEL", "TOKEN"]);
    table.push(vec![
        Cell::text(&time),
        Cell::text(event),
        Cell::nothing(),
        Cell::nothing(),
        Cell::or_nothing(reason, Cell::text),
        Cell::nothing(),
    ]);
    table.for_programs()
}

fn line(watch: &Watch, change: &Change) -> String {
    let time = moment::text(SystemTime::now());
    let event = change.event.word();
    if watch.json {
        let told = json!({
            "time": time,
            "event": event,
            "name": change.name,
            "party": change.party,
            "token": change.token,
        });
        return told.to_string() + "\n";
    }
    let mut table = Table::new(&["TIME", "EVENT", "NAME", "WHO", "LABEL", "TOKEN"]);
    table.push(vec![
        Cell::text(&time),
        Cell::text(event),
        Cell::text(&change.name),
        shown::party(change.party.as_ref()),
        shown::label(change.party.as_ref()),
        ls::token(change.token),
    ]);
    table.for_programs()
}
