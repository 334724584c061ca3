use super::*;

const TICK: Duration = Duration::from_millis(400);

fn at(millis: u64) -> BootInstant {
    BootInstant::START.plus(Duration::from_millis(1_000_000 + millis))
}

#[test]
fn nothing_counts_before_a_transaction_on_the_connection() {
    let mut proof = Proof::new(TICK, at(0), at(0));
    proof.taken_up(at(100), at(110));
    for sent in (410..4_000).step_by(300) {
        proof.synced(at(sent), at(sent));
    }
    assert_eq!(proof.since(), at(0));
    proof.committed();
    assert_eq!(proof.since(), at(100));
    proof.synced(at(4_300), at(4_300));
    assert!(proof.since() > at(3_000));
}
