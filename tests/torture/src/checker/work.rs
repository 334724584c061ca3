//! C9: the run was no idle one.

use super::facts::Holding;
use super::{Facts, Rules, Violation, violation};
use crate::history::{Event, Mode};

/// C9.
pub(super) fn done(facts: &Facts<'_>, rules: &Rules) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut at_least = |what: &str, least: usize, count: usize| {
        if count < least {
            let text = format!("{what}: {count}, and {least} were due");
            found.push(violation("C9", text, &[]));
        }
    };
    let answers = facts.answers.values();
    let held = answers.filter(|answer| answer.outcome == "held");
    at_least("acquisitions", rules.acquisitions, held.count());
    let stale = |event: &&Event| event.op == "register" && event.outcome == "stale";
    let refused = facts.events.iter().filter(stale).count();
    at_least("stale writes refused", rules.stale_writes, refused);
    let commands = facts.holdings.iter().filter(|one| one.is_of_command());
    at_least("commands under a lock", rules.commands, commands.count());
    for (sort, count) in sorts(facts) {
        at_least(sort, rules.of_each_sort, count);
    }
    for (kind, least) in &rules.faults {
        let spans = facts.faults.iter();
        let hits = spans.filter(|span| span.kind.name == *kind && span.hit);
        at_least(kind, *least, hits.count());
    }
    found
}

/// How often locks were held in each of the ways that there are, beside the usual one.
pub(crate) fn sorts(facts: &Facts<'_>) -> [(&'static str, usize); 10] {
    let count = |is: &dyn Fn(&Holding<'_>) -> bool| {
        let holdings = facts.holdings.iter();
        holdings.filter(|holding| is(holding)).count()
    };
    let answers = facts.answers.values();
    let mode = |holding: &Holding<'_>| holding.answer.mode;
    let ended = |holding: &Holding<'_>, how| {
        let release = holding.release;
        release.is_some_and(|release| release.detail == how)
    };
    let together = facts.names().into_iter().flat_map(|name| {
        let together = facts.together(name).into_iter();
        together.filter(|(next, inside)| !next.is_exclusive() && !inside.is_empty())
    });
    let (readers, permits): (Vec<_>, Vec<_>) =
        together.partition(|(next, _)| mode(next) == Mode::Read);
    let is_adopted = |one: &Holding<'_>| one.ask.is_some_and(|ask| ask.detail == "adopt");
    let cancelled = answers.filter(|one| one.outcome == "cancelled").count();
    let permits_of = |number| count(&|one| mode(one) == Mode::Permits(number));
    [
        ("to read", count(&|one| mode(one) == Mode::Read)),
        ("to read beside others", readers.len()),
        (
            "to read, after writing",
            count(&|one| ended(one, "downgrade")),
        ),
        ("to change a value", count(&|one| ended(one, "commit"))),
        ("by one permit", permits_of(1)),
        ("by two permits", permits_of(2)),
        ("by permits beside others", permits.len()),
        (
            "with another",
            count(&|one| one.answer.name.contains(' ')) / 2,
        ),
        ("passed on by another process", count(&is_adopted)),
        ("given up because they were cancelled", cancelled),
    ]
}
