//! C3: fencing tokens.

use std::collections::HashMap;

use super::facts::{Facts, Holding};
use super::{Violation, violation};

pub(super) fn judge(facts: &Facts<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut seen = HashMap::new();
    for holding in &facts.holdings {
        if let Some(other) = seen.insert((holding.name(), holding.token), holding.held) {
            let text = format!("{}: two have token {}", holding.name(), holding.token);
            found.push(violation("C3", text, &[other, holding.held]));
        }
    }
    for (name, holdings) in facts.by_name() {
        let (mut largest, mut largest_exclusive) = (None, None);
        // A command begins to write when others may have its lock already.
        for next in holdings.into_iter().filter(|one| !one.is_command()) {
            let before = if next.is_exclusive() {
                largest
            } else {
                largest_exclusive
            };
            if let Some(before) = before.filter(|one: &&Holding<'_>| one.token > next.token) {
                let text = format!("{name}: a later holder has a smaller token");
                found.push(violation("C3", text, &[before.held, next.held]));
            }
            largest = larger(largest, next);
            if next.is_exclusive() {
                largest_exclusive = larger(largest_exclusive, next);
            }
        }
    }
    found
}

fn larger<'a, 'b>(one: Option<&'b Holding<'a>>, next: &'b Holding<'a>) -> Option<&'b Holding<'a>> {
    Some(one.filter(|one| one.token > next.token).unwrap_or(next))
}
