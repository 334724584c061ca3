//! C11: two meet at a barrier, of which one leads.

use std::collections::HashMap;

use super::{Facts, Rules, Violation, violation};
use crate::history::Event;
use crate::kinds::Class;

/// Each that passes has met another that passes at the same time, or that didn't live to tell, or was told an error.
pub(super) fn of_two(facts: &Facts<'_>, rules: &Rules) -> Vec<Violation> {
    if rules.class == Class::Unsafe {
        // The server forgets who has come.
        return Vec::new();
    }
    let calls = calls(facts);
    let passed = |call: &Call<'_>| matches!(call.outcome(), "leader" | "follower");
    // Of most only those are looked at that began a short while before: no other lasts longer.
    let (ended, others): (Vec<_>, Vec<_>) = calls.iter().partition(|call| call.ended.is_some());
    let longest = ended.iter().map(|call| call.end() - call.begun.at).max();
    let mut found = Vec::new();
    for call in ended.iter().filter(|call| passed(call)) {
        let earliest = call.begun.at.saturating_sub(longest.unwrap_or(0));
        let from = ended.partition_point(|other| other.begun.at < earliest);
        let until = ended.partition_point(|other| other.begun.at <= call.end());
        let may_meet = |other: &&Call<'_>| {
            let is_unknown = other.outcome() != "none" && !passed(other);
            let is_other = passed(other) && other.outcome() != call.outcome();
            (is_unknown || is_other) && other.begun.at <= call.end() && call.begun.at <= other.end()
        };
        let mut near = ended[from..until].iter().chain(&others);
        if !near.any(may_meet) {
            let text = format!("a {} has met nobody", call.outcome());
            let events: Vec<_> = [Some(call.begun), call.ended]
                .into_iter()
                .flatten()
                .collect();
            found.push(violation("C11", text, &events));
        }
    }
    let count = |outcome: &str| {
        calls
            .iter()
            .filter(|call| call.outcome() == outcome)
            .count()
    };
    let (leaders, followers) = (count("leader"), count("follower"));
    let unknown = calls.len() - leaders - followers - count("none");
    if leaders.abs_diff(followers) > unknown {
        let text = format!("{leaders} led {followers}, and of {unknown} nothing is known");
        found.push(violation("C11", text, &[]));
    }
    found
}

struct Call<'a> {
    begun: &'a Event,
    /// `None` of one that didn't live to tell.
    ended: Option<&'a Event>,
}

impl Call<'_> {
    fn outcome(&self) -> &str {
        self.ended.map_or("killed", |ended| &ended.outcome)
    }

    fn end(&self) -> u64 {
        self.ended.map_or(u64::MAX, |ended| ended.at)
    }
}

fn calls<'a>(facts: &Facts<'a>) -> Vec<Call<'a>> {
    let of = |op: &'static str| facts.events.iter().filter(move |event| event.op == op);
    let ended: HashMap<u64, &Event> = of("met").map(|event| (event.id, event)).collect();
    let begun = of("meet").map(|begun| Call {
        begun,
        ended: ended.get(&begun.id).copied(),
    });
    begun.collect()
}
