//! What the nodes have said in one look-up: whom to believe, and when enough of them have answered.
//!
//! | the best that was said | the others have |
//! |---|---|
//! | nothing | the time of the look-up |
//! | that the cluster is down | 500 ms, and 50 ms when a majority has answered |
//! | that it isn't | 50 ms, and none when a majority has answered |
//!
//! The best is what has the highest epoch. Of two with the same, one is behind: the epoch of a failover is known to all
//! from when the replica asks for their votes, and who has its slots only a little later. Until then the others say that
//! the cluster is down, and the new master doesn't.

use std::time::Duration;

use super::view::View;
use crate::base::clock::Deadline;
use crate::engine::redis::failure::Failure;

/// For how long the others may go on when the first has answered: one of them may know something newer.
const OTHERS: Duration = Duration::from_millis(50);

/// The same where the cluster is down as the first has it: it may be cut off from the others, and nearer than they.
const OTHERS_OF_A_LONER: Duration = Duration::from_millis(500);

/// What the nodes have said so far.
#[derive(Debug)]
pub(super) struct Heard {
    majority: usize,
    count: usize,
    best: Option<View>,
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
            failed: None,
            until,
        }
    }

    /// For how long to listen on; `None`: it is enough.
    pub(super) fn until(&self) -> Option<&Deadline> {
        let is_enough = self.is_of_majority() && self.best.as_ref().is_some_and(|best| best.is_up);
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
                if self.best.as_ref().is_none_or(|best| is_better(&view, best)) {
                    self.best = Some(view);
                }
            }
            Ok(_) => {}
            Err(failure) => self.failed = worse(self.failed.take(), failure),
        }
        if self.is_of_majority() && self.best.is_some() {
            self.until = self.until.within(OTHERS);
        }
    }

    /// The view to believe.
    pub(super) fn best(self) -> Result<View, Failure> {
        self.best.ok_or_else(|| {
            self.failed.unwrap_or_else(|| {
                let cause = "none of the nodes that were asked knows where any slot is";
                Failure::ClusterDown(cause.into())
            })
        })
    }

    fn is_of_majority(&self) -> bool {
        self.count >= self.majority
    }
}

fn is_better(view: &View, than: &View) -> bool {
    (view.epoch, view.is_up) > (than.epoch, than.is_up)
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
            replicas: Vec::new(),
        };
        View {
            epoch,
            is_up,
            ranges: vec![all],
        }
    }

    fn heard(asked: usize, views: &[(u64, bool, u16)]) -> Heard {
        let mut heard = Heard::nothing(asked, Deadline::after(Duration::from_secs(60)));
        for (epoch, is_up, port) in views {
            heard.add(Ok(view(*epoch, *is_up, *port)));
        }
        heard
    }

    fn believed(asked: usize, views: &[(u64, bool, u16)]) -> u16 {
        heard(asked, views).best().unwrap().ranges[0].master.port
    }

    /// Whether it is listened to for so long, counted from before or from now.
    fn is_for(heard: &Heard, before: Instant, time: Duration) -> bool {
        let until = heard.until().and_then(Deadline::instant);
        until.is_some_and(|until| (before + time..=Instant::now() + time).contains(&until))
    }

    #[test]
    fn newest_is_believed_and_of_two_as_new_the_one_that_has_a_master_for_all() {
        assert_eq!(believed(6, &[(6, true, 1), (7, false, 2)]), 2);
        assert_eq!(believed(6, &[(7, false, 2), (6, true, 1)]), 2);
        assert_eq!(believed(6, &[(7, false, 1), (7, true, 2)]), 2);
        assert_eq!(believed(6, &[(7, true, 2), (7, false, 1)]), 2);
    }

    #[test]
    fn majority_to_whom_the_cluster_is_down_is_not_enough() {
        // The old master, which is cut off, and three that know of the failover, and not yet of its end.
        let behind = [(6, false, 1), (7, false, 1), (7, false, 1), (7, false, 1)];
        let before = Instant::now();
        let mut heard = heard(6, &behind);
        assert!(is_for(&heard, before, OTHERS));
        heard.add(Ok(view(7, true, 2)));
        assert!(heard.until().is_none());
        assert_eq!(heard.best().unwrap().ranges[0].master.port, 2);
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
