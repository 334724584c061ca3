//! When a lease counts as kept alive.
//!
//! Only the leader of a cluster keeps leases alive. A member passes the request on to whom it takes for the leader, and that may
//! be one of the past, which doesn't know it yet. A linearizable read after the request, by the same member, tells of the
//! leader that there is. Each answer has a term, in which there is one leader at most, and which the member knew when it
//! answered. So if it knew before the request of the term in which it read afterwards, it has asked the leader of that term,
//! which was the leader all the while.

/// A member, and the term that it has answered in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) member: u64,
    pub(crate) term: u64,
}

/// What a member has answered when a lease was to be kept alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Renewal {
    /// Which, and in which term it knew itself to be; `None`: it didn't say so.
    pub(super) by: Option<Seen>,
    /// Whether there is such a lease.
    pub(super) is_there: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The lease lasts from before the renewal was sent.
    Kept,
    /// There is no such lease any more.
    Gone,
    /// Nothing is certain: the lease has to be kept alive, and the keys to be read, once more.
    Unproven,
}

/// What is known about a member. It never forgets a term: also when it starts again it follows no leader of an earlier one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proof {
    known: Option<Seen>,
    /// Whether it has answered a read of this proof: then it knows of all leases that were granted before.
    has_read: bool,
}

impl Proof {
    /// By its last linearizable answer, if there was one.
    pub(super) fn after(seen: Option<Seen>) -> Self {
        Proof {
            known: seen,
            has_read: false,
        }
    }

    /// Judges a renewal by the linearizable read that was sent after its answer had come.
    pub(super) fn judge(&mut self, renewal: Renewal, read: Seen) -> Verdict {
        let known = self.known.replace(read);
        let has_read = std::mem::replace(&mut self.has_read, true);
        let by_same = renewal.by.is_none_or(|by| by.member == read.member);
        if known != Some(read) || !by_same {
            Verdict::Unproven
        } else if renewal.is_there {
            Verdict::Kept
        } else if has_read {
            Verdict::Gone
        } else {
            Verdict::Unproven
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::{Random, for_cases};

    const MEMBERS: usize = 3;

    /// Members of a cluster, each of which may hear late of the leader that there is.
    struct Cluster {
        leader: usize,
        term: u64,
        members: [Member; MEMBERS],
    }

    #[derive(Clone, Copy)]
    struct Member {
        /// Whom it takes for the leader, and of which term.
        leader: usize,
        term: u64,
    }

    impl Cluster {
        fn new() -> Self {
            let member = Member { leader: 0, term: 1 };
            Cluster {
                leader: 0,
                term: 1,
                members: [member; MEMBERS],
            }
        }

        /// Elects another leader, or has a member hear of the one that there is.
        fn step(&mut self, random: &mut Random) {
            let at = random.usize(..MEMBERS);
            if random.bool() {
                (self.leader, self.term) = (at, self.term + 1);
            }
            let (leader, term) = (self.leader, self.term);
            self.members[at] = Member { leader, term };
        }

        /// Whether the leader has kept the lease alive, when a member was asked to.
        fn keep_alive(&self, member: usize) -> bool {
            let asked = self.members[member];
            asked.leader == self.leader && asked.term == self.term
        }

        /// What that member says of itself.
        fn answer(&self, member: usize) -> Seen {
            let term = self.members[member].term;
            Seen {
                member: member as u64,
                term,
            }
        }

        /// A linearizable read, by which the member hears of the leader.
        fn read(&mut self, member: usize) -> Seen {
            let (leader, term) = (self.leader, self.term);
            self.members[member] = Member { leader, term };
            Seen {
                member: member as u64,
                term,
            }
        }
    }

    #[test]
    fn what_is_proven_was_done_by_the_leader() {
        let mut proven = 0;
        for_cases(5_000, |random| {
            let mut cluster = Cluster::new();
            let member = random.usize(..MEMBERS);
            let mut proof = Proof::after(random.option(|_| cluster.read(member)));
            for _ in 0..6 {
                (0..random.usize(..3)).for_each(|_| cluster.step(random));
                let is_kept = cluster.keep_alive(member);
                let by = Some(cluster.answer(member));
                let renewal = Renewal { by, is_there: true };
                (0..random.usize(..3)).for_each(|_| cluster.step(random));
                if proof.judge(renewal, cluster.read(member)) == Verdict::Kept {
                    assert!(is_kept);
                    proven += 1;
                }
            }
        });
        assert!(proven > 0);
    }

    /// What is said when a lease is touched, and read long afterwards.
    #[test]
    fn what_a_later_read_confirms_was_done_by_the_leader() {
        let mut confirmed = 0;
        for_cases(5_000, |random| {
            let mut cluster = Cluster::new();
            let member = random.usize(..MEMBERS);
            let known = cluster.read(member);
            (0..random.usize(..3)).for_each(|_| cluster.step(random));
            let (is_kept, said) = (cluster.keep_alive(member), cluster.answer(member));
            (0..random.usize(..3)).for_each(|_| cluster.step(random));
            if known == said && cluster.read(member) == known {
                assert!(is_kept);
                confirmed += 1;
            }
        });
        assert!(confirmed > 0);
    }

    #[test]
    fn lease_is_gone_when_the_member_knows_all_leases() {
        let read = Seen { member: 1, term: 5 };
        let mut proof = Proof::after(Some(read));
        let by = Some(read);
        let renewal = Renewal {
            by,
            is_there: false,
        };
        assert_eq!(proof.judge(renewal, read), Verdict::Unproven);
        assert_eq!(proof.judge(renewal, read), Verdict::Gone);
    }

    #[test]
    fn member_that_is_not_known_takes_two_rounds() {
        let read = Seen { member: 1, term: 5 };
        let by = Some(read);
        let mut proof = Proof::after(None);
        let renewal = Renewal { by, is_there: true };
        assert_eq!(proof.judge(renewal, read), Verdict::Unproven);
        assert_eq!(proof.judge(renewal, read), Verdict::Kept);
        assert_eq!(
            proof.judge(
                Renewal {
                    by,
                    is_there: false
                },
                read
            ),
            Verdict::Gone
        );
        let other = Renewal {
            by: Some(Seen { member: 2, term: 5 }),
            is_there: true,
        };
        assert_eq!(proof.judge(other, read), Verdict::Unproven);
        let elsewhere = Seen { member: 2, term: 5 };
        assert_eq!(proof.judge(other, elsewhere), Verdict::Unproven);
        assert_eq!(proof.judge(other, elsewhere), Verdict::Kept);
    }
}
