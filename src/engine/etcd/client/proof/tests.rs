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

fn of(member: u64) -> MemberTerm {
    MemberTerm { member, term: 5 }
}

fn renewal(member: u64, is_there: bool) -> Renewal {
    let by = Some(of(member));
    Renewal { by, is_there }
}

#[test]
fn lease_is_gone_when_the_member_knows_all_leases() {
    let mut proof = Proof::after(Some(of(1)));
    assert_eq!(proof.judge(renewal(1, false), of(1)), Verdict::Unproven);
    assert_eq!(proof.judge(renewal(1, false), of(1)), Verdict::Gone);
}

#[test]
fn member_that_is_not_known_takes_two_rounds() {
    let mut proof = Proof::after(None);
    for (by, is_there, read, verdict) in [
        (1, true, 1, Verdict::Unproven),
        (1, true, 1, Verdict::Kept),
        (1, false, 1, Verdict::Gone),
        (2, true, 1, Verdict::Unproven),
        (2, true, 2, Verdict::Unproven),
        (2, true, 2, Verdict::Kept),
    ] {
        let found = proof.judge(renewal(by, is_there), of(read));
        assert_eq!(found, verdict, "{by}, {is_there}, then {read}");
    }
}
