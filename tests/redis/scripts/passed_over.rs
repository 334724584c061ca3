//! Waiters in line that are passed over, because nobody hears of their grant or their heartbeat is overdue.

use super::TTL;
use super::ask::Ask;
use super::bench::Bench;
use super::seen::Ears;
use support::RedisServer;
use support::scripts::Acquired;

const INBOX: &str = "an inbox";
/// The same as in `lua/lib/constants.lua`.
const MOST_DROPPED: usize = 64;

/// Whoever is told to ask, and is let in then, before any heartbeat. The dead stand before and behind it.
fn assert_served_behind_the_dead(bench: &mut Bench, ears: &mut Ears, ask: Ask<'_>) {
    for _ in 0..3 {
        let heard = ears.heard(bench);
        assert_eq!(heard, [(INBOX.to_owned(), "b 0".to_owned())]);
        for _ in 0..3 {
            match bench.ask(ask) {
                Acquired::Token(_) => return,
                Acquired::Taken { remaining, .. } => {
                    assert_eq!(remaining, 0, "it asks at its next heartbeat");
                }
                other => panic!("{other:?}"),
            }
        }
    }
    panic!("it isn't served");
}

#[test]
fn waiter_behind_and_before_many_dead_ones_is_served_without_a_heartbeat() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let mut ears = Ears::on(&server, &[INBOX]);
    let token = bench.token("a");
    for number in 0..=MOST_DROPPED {
        bench.wait(&format!("dead {number}"), "closed");
    }
    bench.wait("b", INBOX);
    for owner in ["last", "very last"] {
        bench.wait(owner, "closed");
    }
    assert!(bench.release("a", Some(token)));
    let ask = Ask::waiting("b", TTL, INBOX);
    assert_served_behind_the_dead(&mut bench, &mut ears, ask);
}
