//! C8: errors that no fault allows.

use super::facts::Facts;
use super::{Violation, violation};
use crate::history::What;

pub(super) fn judge(facts: &Facts<'_>) -> Vec<Violation> {
    let is_allowed = |what: &What| match what {
        What::Failed(error) => error == "unavailable",
        What::Released(outcome) => {
            ["ok", "dropped", "lost", "unavailable"].contains(&outcome.as_str())
        }
        _ => true,
    };
    let wrong = facts.events.iter().filter(|event| !is_allowed(&event.what));
    let found = wrong.map(|event| {
        let text = "an error that no fault allows".to_owned();
        violation("C8", text, &[event])
    });
    found.collect()
}
