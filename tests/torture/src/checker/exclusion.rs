//! C1: one at a time, unless they share.

use std::time::Duration;

use super::facts::{Facts, Holding};
use super::{Violation, violation};
use crate::history::Mode;
use crate::names::MOST_PERMITS;

pub(super) fn judge(facts: &Facts<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for (name, holdings) in facts.by_name() {
        let mut inside: Vec<&Holding<'_>> = Vec::new();
        for next in holdings {
            inside.retain(|before| before.until > next.from());
            for before in in_the_way(next, &inside) {
                let overlap = Duration::from_nanos(before.until.min(next.until) - next.from());
                let text = format!("{name}: two hold it for {overlap:?}");
                let events = [before.held, before.last, next.held];
                found.push(violation("C1", text, &events));
            }
            inside.push(next);
        }
    }
    found
}

/// Those that should not be inside with the next. A command that lives on beside one with a larger token is another
/// rule's.
fn in_the_way<'a, 'b>(next: &Holding<'_>, inside: &[&'b Holding<'a>]) -> Vec<&'b Holding<'a>> {
    let used = inside.iter().map(|one| permits(one.mode)).sum::<u32>() + permits(next.mode);
    let fits = |one: &Holding<'_>| match (one.mode, next.mode) {
        (Mode::Read, Mode::Read) => true,
        (Mode::Permits(_), Mode::Permits(_)) => used <= MOST_PERMITS,
        (Mode::Command, _) => one.token < next.token,
        (_, Mode::Command) => next.token < one.token,
        _ => false,
    };
    inside.iter().copied().filter(|one| !fits(one)).collect()
}

fn permits(mode: Mode) -> u32 {
    match mode {
        Mode::Permits(count) => count,
        _ => 0,
    }
}
