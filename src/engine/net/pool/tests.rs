use super::*;
use crate::base::random::for_any;

fn idle(pool: &Pool<u32>) -> Vec<u32> {
    pool.0.lock().iter().map(|idle| idle.connection).collect()
}

#[test]
fn connections_that_are_too_old_are_closed_when_one_is_put_back() {
    let (pool, start) = (Pool::default(), Instant::now());
    (0..20).for_each(|n| pool.put(n, start));
    pool.put(20, start + Duration::from_secs(1));
    pool.put(21, start + IDLE + Duration::from_millis(1));
    assert_eq!(idle(&pool), [20, 21]);
    pool.put(22, start + 3 * IDLE);
    assert_eq!(idle(&pool), [22]);
    assert_eq!(pool.take(start + 5 * IDLE, |_| true), None);
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn from_the_first(hosts: usize, most: u64) -> Turns {
    let rotation = Rotation::new(hosts);
    rotation.answered(0);
    rotation.turns(millis(most))
}

#[test]
fn each_host_gets_its_share_within_what_remains() {
    for_any(|random| {
        let hosts = random.usize(1..9);
        let mut remaining = millis(random.u64(0..5_000));
        let mut turns = from_the_first(hosts, random.u64(0..5_000));
        for _ in 0..random.usize(0..40) {
            let share = turns.next(remaining).1;
            assert!(share <= remaining);
            remaining -= share;
            // The last of a round may take what is left, but for the bounds.
            assert!(turns.is_round_over() || hosts == 1 || remaining >= share);
        }
        // No overflow, however often.
        turns.taken = usize::MAX / 2;
        assert!(turns.next(Duration::MAX).1 <= Duration::MAX);
    });
}
