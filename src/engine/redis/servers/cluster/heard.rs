//! What the nodes have said in one look-up: whom to believe, and when enough of them have answered.
//!
//! | the best that was said | the others have |
//! |---|---|
//! | nothing | the time of the look-up |
//! | that the cluster is down | 500 ms, and 50 ms when a majority has answered |
//! | that it isn't | 50 ms, and none when a majority has answered |
//! | that another has a slot than was known | 500 ms, but only masters |
//! | nothing of the kind | 50 ms, but only masters: one of them may take a slot over |
//!
//! The best is what has the highest epoch of any claim to slots. Where several have it, and one of them says that the cluster is
//! down, it is down: a replica may be about to take a master's place, and that master, cut off, doesn't know yet. Whom to
//! believe of each slot is decided when all was heard: see `map.rs`.

use std::time::Duration;

use super::view::View;
use crate::base::clock::Deadline;
use crate::engine::redis::failure::Failure;

/// For how long the others may go on when the first has answered: one of them may know something newer.
pub(super) const OTHERS: Duration = Duration::from_millis(50);

/// The same where the cluster is down as the first has it: it may be cut off from the others, and nearer than they. So may a
/// node that says something new, which masters have to confirm.
pub(super) const OTHERS_OF_A_LONER: Duration = Duration::from_millis(500);

/// What the nodes have said so far.
#[derive(Debug)]
pub(super) struct Heard {
    majority: usize,
    count: usize,
    /// The highest epoch, and whether none that has it says that the cluster is down.
    best: Option<(u64, bool)>,
    views: Vec<View>,
    failed: Option<Failure>,
    /// Answers that come later don't count.
    until: Deadline,
}

impl Heard {
    /// Of so many that are asked.
    pub(super) fn nothing(asked: usize, until: Deadline) -> Self {
        Heard {
            majority: asked / 2 + 1,
            count: 0,
            best: None,
            views: Vec::new(),
            failed: None,
            until,
        }
    }

    /// For how long to listen on; `None`: it is enough.
    pub(super) fn until(&self) -> Option<&Deadline> {
        let is_enough = self.is_of_majority() && self.best.is_some_and(|(_, is_up)| is_up);
        (!is_enough).then_some(&self.until)
    }

    pub(super) fn add(&mut self, answer: Result<View, Failure>) {
        self.count += 1;
        match answer {
            Ok(view) if view.is_usable() => {
                let patience = if view.is_up {
                    OTHERS
                } else {
                    OTHERS_OF_A_LONER
                };
                // Each may shorten the wait, and none makes it longer.
                self.until = self.until.within(patience);
                self.best = Some(match self.best {
                    Some((epoch, is_up)) if epoch == view.newest() => (epoch, is_up && view.is_up),
                    best => best
                        .max(Some((view.newest(), view.is_up)))
                        .unwrap_or_default(),
                });
                self.views.push(view);
            }
            Ok(_) => {}
            Err(failure) => self.failed = worse(self.failed.take(), failure),
        }
        if self.is_of_majority() && self.best.is_some() {
            self.until = self.until.within(OTHERS);
        }
    }

    /// What was said so far that is of use.
    pub(super) fn views(&self) -> &[View] {
        &self.views
    }

    /// The same.
    ///
    /// # Errors
    ///
    /// When there is nothing.
    pub(super) fn into_views(self) -> Result<Vec<View>, Failure> {
        if !self.views.is_empty() {
            return Ok(self.views);
        }
        Err(self.failed.unwrap_or_else(|| {
            let cause = "none of the nodes that were asked knows where any slot is";
            Failure::ClusterDown(cause.into())
        }))
    }

    fn is_of_majority(&self) -> bool {
        self.count >= self.majority
    }
}

/// The failure that says more of why a cluster can't be used.
pub(super) fn worse(one: Option<Failure>, other: Failure) -> Option<Failure> {
    let weight = |failure: &Failure| match failure {
        Failure::Denied(_) => 3,
        Failure::Other(_) | Failure::Conflict(_) => 2,
        Failure::Closed(_) => 1,
        _ => 0,
    };
    match one {
        Some(one) if weight(&one) >= weight(&other) => Some(one),
        _ => Some(other),
    }
}

#[cfg(test)]
mod tests {
    use super::super::view::Range;
    use super::*;
    use crate::engine::net::address::HostPort;
    use std::time::Instant;

    /// Of a node that has all slots at that port.
    fn view(epoch: u64, is_up: bool, port: u16) -> View {
        let host = "a".to_owned();
        let all = Range {
            first: 0,
            last: 16_383,
            master: HostPort { host, port },
            epoch,
            replicas: Vec::new(),
        };
        View {
            is_up,
            ranges: vec![all],
            ..View::default()
        }
    }

    fn heard(asked: usize, views: &[(u64, bool, u16)]) -> Heard {
        let mut heard = Heard::nothing(asked, Deadline::after(Duration::from_secs(60)));
        for (epoch, is_up, port) in views {
            heard.add(Ok(view(*epoch, *is_up, *port)));
        }
        heard
    }

    /// Whether it is listened to for so long, counted from before or from now.
    fn is_for(heard: &Heard, before: Instant, time: Duration) -> bool {
        let until = heard.until().and_then(Deadline::instant);
        until.is_some_and(|until| (before + time..=Instant::now() + time).contains(&until))
    }

    #[test]
    fn majority_to_whom_the_cluster_is_down_is_not_enough() {
        // The old master, which is cut off, and three that wait for the end of the failover.
        let behind = [(6, true, 1), (6, false, 1), (6, false, 1), (6, false, 1)];
        let before = Instant::now();
        let mut heard = heard(6, &behind);
        assert!(is_for(&heard, before, OTHERS));
        heard.add(Ok(view(7, true, 2)));
        assert!(heard.until().is_none());
        assert_eq!(heard.into_views().unwrap().len(), 5);
    }

    #[test]
    fn others_have_more_time_where_only_loners_have_answered() {
        let before = Instant::now();
        let failed = || Err(Failure::Closed("it isn't there".into()));
        let mut loner = heard(6, &[(6, false, 1)]);
        (0..2).for_each(|_| loner.add(failed()));
        assert!(is_for(&loner, before, OTHERS_OF_A_LONER));
        loner.add(failed());
        assert!(is_for(&loner, before, OTHERS));
        assert!(is_for(&heard(6, &[(7, true, 2)]), before, OTHERS));
        let both = heard(3, &[(7, true, 2), (7, true, 2)]);
        assert!(both.until().is_none());
    }
}
