//! Judges a history by rules that a late machine can't break.
//!
//! | rule | |
//! |---|---|
//! | C1 | holders of a name who may not share it don't have it at the same time |
//! | C2 | the value that a lock protects is what its last holder left |
//! | C3 | tokens are unique, and increase in the order of holding, but among those that share |
//! | C5 | in the end nobody is left in a lock or its line, and no thread or socket in a process |
//! | C7 | all calls end, and in the end each thread gets each lock |
//! | C8 | calls give no errors but those that a fault allows |
//! | C9 | the run was no idle one |
//! | C10 | a command under `crosslock run` is dead before another has its lock |

mod commands;
mod ends;
mod errors;
mod exclusion;
mod facts;
mod tokens;
mod values;
mod work;

use std::fmt;

use crate::history::Event;
pub(crate) use facts::Facts;

/// A rule that was broken, and the events that show it.
#[derive(Clone, Debug)]
pub struct Violation {
    pub rule: &'static str,
    pub text: String,
    pub events: Vec<Event>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.text)?;
        let shown = self
            .events
            .iter()
            .filter_map(|event| serde_json::to_string(event).ok());
        shown
            .into_iter()
            .try_for_each(|event| write!(f, "\n    {event}"))
    }
}

/// Judges a history, which is in the order of time.
pub fn judge(events: &[Event]) -> Vec<Violation> {
    let facts = Facts::of(events);
    let judges = [
        exclusion::judge,
        values::judge,
        tokens::judge,
        ends::judge,
        errors::judge,
        work::judge,
        commands::judge,
    ];
    judges.iter().flat_map(|judge| judge(&facts)).collect()
}

fn violation(rule: &'static str, text: String, events: &[&Event]) -> Violation {
    let events = events.iter().map(|event| (*event).clone()).collect();
    Violation { rule, text, events }
}
