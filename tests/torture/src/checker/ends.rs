//! C5 and C7: what is there when all should have ended.

use super::facts::Facts;
use super::{Violation, violation};
use crate::history::What;

pub(super) fn judge(facts: &Facts<'_>) -> Vec<Violation> {
    let found = facts.events.iter().filter_map(|event| match &event.what {
        What::Left(what) => Some(violation("C5", format!("left behind: {what}"), &[])),
        What::Stuck(what) => Some(violation("C7", format!("it didn't end: {what}"), &[])),
        _ => None,
    });
    found.collect()
}
