//! Says what workers did with each task, and which promise was broken.

use std::collections::BTreeMap;

/// What came of all tasks.
#[derive(Debug, Default)]
pub(super) struct Judged {
    /// How many were taken more than once.
    again: usize,
    /// How many may have been done by a worker that couldn't tell.
    unsure: usize,
    pub(super) violations: Vec<String>,
}

/// What one worker did with one task.
#[derive(Debug, Default)]
struct Try {
    /// The lease was its own from here to there, in microseconds.
    held: Option<(u64, u64)>,
    end: End,
}

#[derive(Debug, Default, PartialEq)]
enum End {
    /// It was killed, or can't tell.
    #[default]
    Unknown,
    Done,
    Lost,
}

/// The tries of a task by their tokens.
type Tries = BTreeMap<u64, Try>;

pub(super) fn judged(said: &[Vec<String>], tasks: u32) -> Judged {
    let mut all: BTreeMap<u32, Tries> = BTreeMap::new();
    let lines = said.iter().flatten();
    for words in lines.map(|line| line.split(' ').collect::<Vec<_>>()) {
        if let [what, value, token, rest @ ..] = &words[..]
            && let (Ok(value), Ok(token)) = (value.parse(), token.parse())
        {
            let one = all.entry(value).or_default().entry(token).or_default();
            one.hear(what, rest.first().and_then(|at| at.parse().ok()));
        }
    }
    let mut judged = Judged::default();
    for task in 0..tasks {
        judged.judge(task, all.get(&task).unwrap_or(&Tries::new()));
    }
    judged
}

impl Try {
    fn hear(&mut self, what: &str, at: Option<u64>) {
        match (what, at) {
            ("took", Some(at)) => self.held = Some((at, at)),
            ("had", Some(at)) => self.held = self.held.map(|(from, _)| (from, at)),
            ("done", _) => self.end = End::Done,
            ("lost", _) => self.end = End::Lost,
            _ => {}
        }
    }
}

impl Judged {
    fn judge(&mut self, task: u32, tries: &Tries) {
        let count = |end| tries.values().filter(|one| one.end == end).count();
        let (done, unknown) = (count(End::Done), count(End::Unknown));
        self.again += usize::from(tries.len() > 1);
        self.unsure += usize::from(done == 0);
        let violation = match done {
            0 if unknown == 0 => Some("is lost"),
            2.. => Some("is done twice"),
            _ => None,
        };
        // By their tokens, one after the other.
        let held: Vec<_> = tries.values().filter_map(|one| one.held).collect();
        let overlap = held.windows(2).any(|two| two[1].0 < two[0].1);
        for what in violation
            .into_iter()
            .chain(overlap.then_some("is two workers'"))
        {
            self.violations
                .push(format!("task {task} {what}: {tries:?}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::judged;

    #[test]
    fn broken_promises_are_found() {
        let said = |lines: &[&str]| vec![lines.iter().map(|line| (*line).to_owned()).collect()];
        let good = [
            "took 0 1 100",
            "had 0 1 200",
            "lost 0 1",
            "took 0 5 300",
            "had 0 5 400",
            "done 0 5",
        ];
        assert!(judged(&said(&good), 1).violations.is_empty());
        assert!(judged(&said(&good[..4]), 1).violations.is_empty());
        for (bad, what) in [
            (&good[..3], "lost"),
            (&["took 0 1 100", "done 0 1", "done 0 5"][..], "twice"),
            (
                &["took 0 1 100", "had 0 1 301", "took 0 5 300", "done 0 5"][..],
                "two workers",
            ),
        ] {
            let violations = judged(&said(bad), 1).violations;
            assert!(
                violations.len() == 1 && violations[0].contains(what),
                "{violations:?}"
            );
        }
    }
}
