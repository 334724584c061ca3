//! C9: the run was no idle one.

use super::facts::Facts;
use super::{Violation, violation};
use crate::history::What;

/// Each second somebody had a lock, and a command ran. That all kinds of locks were had is another rule's, by which
/// each thread has all of them in the end.
pub(super) fn judge(facts: &Facts<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut at_least = |what: &str, least: u64, count: usize| {
        if count < usize::try_from(least).expect("no ages") {
            let text = format!("{what}: {count}, and {least} were due");
            found.push(violation("C9", text, &[]));
        }
    };
    let runs = facts.events.iter().filter_map(|event| match event.what {
        What::Run { seconds, .. } => Some(seconds),
        _ => None,
    });
    let all = &facts.holdings;
    at_least(
        "locks held",
        runs.sum(),
        all.iter().filter(|one| !one.is_command()).count(),
    );
    at_least(
        "commands",
        1,
        all.iter().filter(|one| one.is_command()).count(),
    );
    found
}
