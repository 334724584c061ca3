//! C9: the run was no idle one.

use super::{Facts, Rules, Violation, violation};
use crate::torture::history::Event;

/// C9.
pub(super) fn done(facts: &Facts<'_>, rules: &Rules) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut at_least = |what: &str, least: usize, count: usize| {
        if count < least {
            let text = format!("{what}: {count}, and {least} were due");
            found.push(violation("C9", text, &[]));
        }
    };
    at_least("acquisitions", rules.acquisitions, facts.holdings.len());
    let stale = |event: &&Event| event.op == "register" && event.outcome == "stale";
    let refused = facts.events.iter().filter(stale).count();
    at_least("stale writes refused", rules.stale_writes, refused);
    for (kind, least) in &rules.faults {
        let spans = facts.faults.iter();
        let hits = spans.filter(|span| span.kind.name == *kind && span.hit);
        at_least(kind, *least, hits.count());
    }
    found
}
