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
    let mut found = Vec::new();
    for call in calls.iter().filter(|call| passed(call)) {
        let may_meet = |other: &&Call<'_>| {
            let is_unknown = other.outcome() != "none" && !passed(other);
            let is_other = passed(other) && other.outcome() != call.outcome();
            (is_unknown || is_other) && other.begun.at <= call.end() && call.begun.at <= other.end()
        };
        if !calls.iter().any(|other| may_meet(&other)) {
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
