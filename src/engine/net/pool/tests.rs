use super::*;

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
