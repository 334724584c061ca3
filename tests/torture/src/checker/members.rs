//! C6, where a majority of members has to agree.

use super::{Facts, Rules, Violation, violation};

/// C6: while most members are down, nobody gets a lock, but a thread that another of its process hands it over.
pub(super) fn without_majority(facts: &Facts<'_>, _: &Rules) -> Vec<Violation> {
    let mut found = Vec::new();
    for down in facts.events.iter().filter(|event| event.op == "down") {
        let is_within = |at: u64| down.at < at && at < down.until;
        for holding in &facts.holdings {
            let Some(ask) = holding.ask else { continue };
            let is_let_in = is_within(ask.at) && is_within(holding.from());
            if is_let_in && !holding.was_handed_over() {
                let name = holding.name();
                let text = format!("{name} was given while most members were down");
                found.push(violation("C6", text, &[down, ask, holding.answer]));
            }
        }
    }
    found
}
