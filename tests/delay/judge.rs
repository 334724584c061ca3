//! Says which promises workers broke.

use std::collections::BTreeMap;

/// What one worker did with one task.
#[derive(Debug, Default)]
struct Try {
    /// The lease was its own from here to there, in microseconds.
    held: Option<(u64, u64)>,
    /// `done`, `lost`, or nothing: it was killed, or can't tell.
    end: Option<String>,
}

/// What workers have said is `took`, `had`, `done` or `lost`, a task, the token of its lease, and when.
pub(super) fn violations(said: &[Vec<String>], tasks: u32) -> Vec<String> {
    // By their tokens, one after the other.
    let mut all: BTreeMap<u32, BTreeMap<u64, Try>> = BTreeMap::new();
    for line in said.iter().flatten() {
        let words: Vec<_> = line.split(' ').collect();
        if let [what, task, token, rest @ ..] = &words[..]
            && let (Ok(task), Ok(token)) = (task.parse(), token.parse())
        {
            let one = all.entry(task).or_default().entry(token).or_default();
            match (*what, rest.first().and_then(|at| at.parse().ok())) {
                ("took", Some(at)) => one.held = Some((at, at)),
                ("had", Some(at)) => one.held = one.held.map(|(from, _)| (from, at)),
                (end, _) => one.end = Some(end.to_owned()),
            }
        }
    }
    let mut violations = Vec::new();
    for task in 0..tasks {
        let tries = all.entry(task).or_default();
        let ends = |end| move |one: &&Try| one.end.as_deref() == end;
        let count = |end| tries.values().filter(ends(end)).count();
        let held: Vec<_> = tries.values().filter_map(|one| one.held).collect();
        let overlap = held.windows(2).any(|two| two[1].0 < two[0].1);
        let (done, unknown) = (count(Some("done")), count(None));
        for (is_broken, what) in [
            (done == 0 && unknown == 0, "is lost"),
            (done > 1, "is done twice"),
            (overlap, "is two workers'"),
        ] {
            if is_broken {
                violations.push(format!("task {task} {what}: {tries:?}"));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::violations;

    #[test]
    fn broken_promises_are_found() {
        let good = [
            "took 0 1 100",
            "had 0 1 200",
            "lost 0 1",
            "took 0 5 300",
            "had 0 5 400",
            "done 0 5",
        ];
        let twice = ["took 0 1 100", "done 0 1", "done 0 5"];
        let both = ["took 0 1 100", "had 0 1 301", "took 0 5 300", "done 0 5"];
        for (said, what) in [
            (&good[..], None),
            (&good[..4], None),
            (&good[..3], Some("lost")),
            (&twice, Some("twice")),
            (&both, Some("two workers")),
        ] {
            let said = said.iter().map(|line| (*line).to_owned()).collect();
            let found = violations(&[said], 1);
            assert_eq!(found.len(), usize::from(what.is_some()), "{found:?}");
            assert!(what.is_none_or(|what| found[0].contains(what)), "{found:?}");
        }
    }
}
