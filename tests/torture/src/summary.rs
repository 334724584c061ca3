//! What a run did, as a table.

use std::collections::BTreeMap;
use std::fmt;

use super::checker::Facts;
use super::history::{Event, Mode, What};

/// What a run did, as a table.
#[derive(Debug, Default)]
pub(crate) struct Summary(BTreeMap<String, usize>);

impl Summary {
    pub(crate) fn of(events: &[Event]) -> Self {
        let mut rows = BTreeMap::new();
        let mut count = |row: String| *rows.entry(row).or_default() += 1;
        for holding in &Facts::of(events).holdings {
            count(match holding.mode {
                Mode::Exclusive => "locks held".to_owned(),
                Mode::Read => "locks held to read".to_owned(),
                Mode::Permits(number) => format!("locks held, {number} permits"),
                Mode::Command => "commands under a lock".to_owned(),
            });
        }
        for event in events {
            match &event.what {
                What::Failed(error) => count(format!("calls failed: {error}")),
                What::Released(outcome) => count(format!("releases: {outcome}")),
                What::Fault(fault) => count(format!("fault: {fault}")),
                _ => {}
            }
        }
        Summary(rows)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows = self.0.iter();
        rows.try_for_each(|(row, count)| writeln!(f, "| {row} | {count} |"))
    }
}
