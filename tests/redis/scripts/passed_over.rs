//! Waiters in line that are passed over, because nobody hears of their grant or their heartbeat is overdue.

use super::TTL;
use super::ask::Ask;
use super::bench::Bench;
use super::seen::{Ears, is_full};
use support::RedisServer;
use support::scripts::Acquired;

const INBOX: &str = "an inbox";
/// The same as in `lua/lib/constants.lua`.
const MOST_DROPPED: usize = 64;

#[test]
fn one_script_drops_a_bounded_number_of_waiters() {
    const DEAD: usize = 3 * MOST_DROPPED;
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let mut ears = Ears::on(&server, &[INBOX]);
    for inbox in ["closed", ""] {
        let token = bench.token("a");
        let dead: Vec<_> = (0..DEAD).map(|number| format!("dead {number}")).collect();
        for owner in &dead {
            let promise = if inbox.is_empty() { 1 } else { TTL };
            let mut pipe = redis::pipe();
            let waiter = format!("{} {TTL} x {inbox}", bench.micros() / 1_000 + promise);
            pipe.hset(&bench.waiters, owner, waiter)
                .rpush(&bench.queue, owner);
            pipe.query::<()>(&mut bench.connection).expect("they wait");
        }
        bench.set_counter(&format!("{token}q"));
        bench.wait("b", INBOX);
        assert!(bench.release("a", Some(token)));
        assert_eq!(bench.seen().line().len(), DEAD + 1 - MOST_DROPPED);
        // Whoever came last lives: it is told to go on.
        assert_eq!(
            ears.heard(&mut bench),
            [(INBOX.to_owned(), "b 0".to_owned())]
        );
        for left in [DEAD + 1 - 2 * MOST_DROPPED, 1] {
            let answer = bench.ask(Ask::waiting("b", TTL, INBOX));
            assert!(
                matches!(answer, Acquired::Taken { remaining: 0, .. }),
                "{answer:?}"
            );
            assert_eq!(bench.seen().line().len(), left);
        }
        let token = bench.granted(Ask::waiting("b", TTL, INBOX));
        assert!(bench.release("b", Some(token)));
    }
}

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

#[test]
fn waiter_for_a_permit_behind_many_dead_ones_is_served_without_a_heartbeat() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let mut ears = Ears::on(&server, &[INBOX]);
    let ask = |owner| Ask::once(owner).with_mode("1/2");
    let token = bench.granted(ask("a"));
    bench.granted(ask("stays"));
    bench.wait_to("1/2", "b", INBOX);
    // Each that came later would have dropped those that were dead by then.
    for number in 0..=MOST_DROPPED {
        let waiter = format!("{} {TTL} 1/2 closed", bench.micros() / 1_000 + TTL);
        let mut pipe = redis::pipe();
        pipe.hset(&bench.waiters, number, waiter)
            .lpush(&bench.queue, number);
        pipe.query::<()>(&mut bench.connection).expect("they wait");
    }
    assert!(bench.release_as("1/2", "a", Some(token)));
    let ask = Ask::waiting("b", TTL, INBOX).with_mode("1/2");
    assert_served_behind_the_dead(&mut bench, &mut ears, ask);
}

#[test]
fn overdue_waiter_that_hears_elsewhere_has_time_to_come() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.token("a");
    bench.refused(Ask::waiting("b", 0, "elsewhere").hearing_at("01234567"));
    bench.wait("c", "");
    bench.forget_holder();
    bench.wait("c", "");
    let seen = bench.seen();
    assert_eq!(seen.holder.as_deref(), Some("b"), "its turn is kept for it");
    assert!(is_full(seen.pttls[0], TTL as i64 / 2), "{seen:?}");
    assert_eq!(seen.line(), ["c"]);
}
