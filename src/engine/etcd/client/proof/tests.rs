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
    fn answer(&self, member: usize) -> MemberTerm {
        let term = self.members[member].term;
        MemberTerm {
            member: member as u64,
            term,
        }
    }

    /// A linearizable read, by which the member hears of the leader.
    fn read(&mut self, member: usize) -> MemberTerm {
        let (leader, term) = (self.leader, self.term);
        self.members[member] = Member { leader, term };
        MemberTerm {
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
