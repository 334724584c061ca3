//! In which order those that wait to read, and those that wait for permits, are let in.

use super::ask::Ask;
use super::bench::Bench;
use super::seen::{Ears, is_full};
use super::{FULL, TTL};
use support::RedisServer;

const INBOX: &str = "an inbox";

fn read(owner: &str) -> Ask<'_> {
    Ask::once(owner).with_mode("r")
}

/// Held by "a", with a reader, a writer, a reader and a writer in this order.
fn crowded(server: &RedisServer, held: &str, writers: &str) -> Bench {
    let mut bench = Bench::new(server);
    bench.granted(Ask::once("a").with_mode(held));
    if held == "x" {
        bench.wait_to("r", "r1", "");
    }
    bench.wait_to(writers, "w1", "");
    bench.wait_to("r", "r2", "");
    bench.wait_to(writers, "w2", "");
    bench
}

#[track_caller]
fn assert_read_by(bench: &mut Bench, owners: &[&str]) {
    let seen = bench.seen();
    let mut members: Vec<_> = owners.iter().map(|owner| format!("1 {owner}")).collect();
    members.sort_unstable();
    assert_eq!(seen.holder.as_deref(), Some("crosslock:readers"));
    assert_eq!(seen.shares(), members);
}

#[track_caller]
fn assert_held_by(bench: &mut Bench, owner: &str) {
    assert_eq!(bench.seen().holder.as_deref(), Some(owner));
}

fn end(bench: &mut Bench, mode: &str, owner: &str) {
    let counter = bench.seen().counter.unwrap();
    assert!(bench.release_as(mode, owner, Some(counter), None));
}

#[test]
fn phases_of_reading_and_writing_take_turns() {
    let server = RedisServer::start();
    let mut bench = crowded(&server, "x", "x");
    end(&mut bench, "x", "a");
    assert_read_by(&mut bench, &["r1", "r2"]);
    // Readers that come now wait for the writer.
    bench.wait_to("r", "r3", "");
    bench.refused(read("r4"));
    end(&mut bench, "r", "r1");
    assert_read_by(&mut bench, &["r2"]);
    end(&mut bench, "r", "r2");
    assert_held_by(&mut bench, "w1");
    end(&mut bench, "x", "w1");
    assert_read_by(&mut bench, &["r3"]);
    end(&mut bench, "r", "r3");
    assert_held_by(&mut bench, "w2");
    end(&mut bench, "x", "w2");
    assert_eq!(bench.contents().0, None);
}

#[test]
fn writers_that_are_preferred_go_before_all_readers() {
    let server = RedisServer::start();
    let mut bench = crowded(&server, "x", "w");
    for (mode, ends, next) in [("x", "a", "w1"), ("w", "w1", "w2")] {
        end(&mut bench, mode, ends);
        assert_held_by(&mut bench, next);
    }
    end(&mut bench, "w", "w2");
    assert_read_by(&mut bench, &["r1", "r2"]);
}

#[test]
fn readers_that_are_preferred_join_those_inside_whoever_waits() {
    let server = RedisServer::start();
    let mut bench = crowded(&server, "r", "x");
    bench.refused(read("r3"));
    bench.granted(Ask::once("r3").with_mode("R"));
    // One that is in line, too, at its next heartbeat.
    bench.granted(Ask::waiting("r2", TTL, "").with_mode("R"));
    assert_read_by(&mut bench, &["a", "r2", "r3"]);
    let seen = bench.seen();
    assert_eq!(seen.line(), ["w1", "w2"]);
    assert!(seen.readers.is_empty());
}

#[test]
fn readers_that_are_preferred_wait_for_the_writer_inside() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.token("a");
    bench.wait_to("x", "w", "");
    bench.wait_to("R", "r", "");
    assert!(bench.seen().waiters["r"].contains(&format!(" {TTL} r ")));
    end(&mut bench, "x", "a");
    assert_read_by(&mut bench, &["r"]);
}

#[test]
fn writer_waits_for_no_more_than_one_phase_of_readers_after_a_crash() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.token("a");
    bench.expire();
    let told = bench.granted(read("r1"));
    assert_eq!(told % 8, 7, "the holder before died");
    bench.wait_to("x", "w", "");
    bench.wait_to("r", "r2", "");
    end(&mut bench, "r", "r1");
    assert_held_by(&mut bench, "w");
    let counter = bench.seen().counter.unwrap();
    assert_eq!(
        counter % 8,
        3,
        "what the first left behind is still to be told"
    );
    end(&mut bench, "x", "w");
    assert_read_by(&mut bench, &["r2"]);
    assert_eq!(bench.seen().counter.unwrap() % 4, 0, "it was told");
}

#[test]
fn crowd_comes_first_after_an_exclusive_lease_that_expired() {
    let server = RedisServer::start();
    for (writers, reads) in [("x", true), ("w", false)] {
        for asks in ["stranger", "r2", "w2"] {
            let mut bench = crowded(&server, "x", writers);
            bench.expire();
            let mode = if asks == "w2" { writers } else { "r" };
            bench.ask(Ask::waiting(asks, TTL, "").with_mode(mode));
            if reads {
                assert_read_by(&mut bench, &["r1", "r2"]);
            } else {
                assert_held_by(&mut bench, "w1");
            }
        }
    }
}

#[test]
fn writer_comes_next_when_the_readers_after_a_crash_have_expired() {
    let server = RedisServer::start();
    for asks in [read("r2"), Ask::waiting("r2", TTL, "").with_mode("r")] {
        let mut bench = Bench::new(&server);
        bench.token("a");
        bench.expire();
        bench.granted(read("r1"));
        bench.wait_to("x", "w", "");
        bench.wait_to("r", "r2", "");
        bench.expire();
        bench.refused(asks);
        assert_held_by(&mut bench, "w");
    }
}

#[test]
fn free_lock_with_a_crowd_goes_to_it_whoever_asks() {
    let server = RedisServer::start();
    for asks in [Ask::once("b"), Ask::waiting("b", TTL, "")] {
        let mut bench = Bench::new(&server);
        bench.token("a");
        bench.wait_to("r", "r1", "");
        bench.forget_holder();
        bench.refused(asks);
        assert_read_by(&mut bench, &["r1"]);
    }
}

#[test]
fn writer_that_gives_up_after_a_crash_lets_in_the_crowd_first() {
    let server = RedisServer::start();
    let mut bench = crowded(&server, "x", "x");
    bench.expire();
    assert!(!bench.release("stranger", None));
    assert_read_by(&mut bench, &["r1", "r2"]);
}

#[test]
fn lease_of_readers_that_expired_lets_in_the_writer() {
    let server = RedisServer::start();
    let mut bench = crowded(&server, "r", "x");
    bench.forget_holder();
    bench.refused(read("stranger"));
    assert_held_by(&mut bench, "w1");
    end(&mut bench, "x", "w1");
    assert_read_by(&mut bench, &["r2"]);
}

#[test]
fn crowd_is_told_each_with_its_own_token() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    let mut ears = Ears::on(&mut connection, &[INBOX, "another"]);
    let mut bench = Bench::new(&server);
    let token = bench.token("a");
    for (owner, inbox) in [("b", INBOX), ("c", "closed"), ("d", "another")] {
        bench.wait_to("r", owner, inbox);
    }
    assert!(bench.release("a", Some(token)));
    assert_read_by(&mut bench, &["b", "d"]);
    let last = bench.seen().counter.unwrap();
    let message = |inbox: &str, owner: &str, token| (inbox.to_owned(), format!("{owner} {token}"));
    let expected = [message(INBOX, "b", last - 4), message("another", "d", last)];
    assert_eq!(ears.heard(&mut bench), expected);
}

// Who leaves, or is gone

#[test]
fn readers_go_on_when_the_last_writer_has_left_the_line() {
    let server = RedisServer::start();
    let leave: [fn(&mut Bench); 2] = [
        |bench| assert!(!bench.release("w", None)),
        |bench| bench.refused(Ask::once("w")),
    ];
    for leave in leave {
        let mut bench = Bench::new(&server);
        bench.granted(read("a"));
        bench.wait("w", "");
        bench.wait_to("r", "b", "");
        leave(&mut bench);
        assert_read_by(&mut bench, &["a", "b"]);
        assert!(bench.seen().line().is_empty());
    }
}

#[test]
fn writer_whose_connection_is_gone_keeps_no_readers_out() {
    let server = RedisServer::start();
    for asks in [read("b"), Ask::waiting("b", TTL, "").with_mode("r")] {
        let mut bench = Bench::new(&server);
        bench.granted(read("a"));
        bench.wait("w", "closed");
        bench.granted(asks);
        assert_read_by(&mut bench, &["a", "b"]);
        assert!(bench.seen().line().is_empty());
    }
}

#[test]
fn writer_whose_heartbeat_is_overdue_keeps_no_readers_out() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.granted(read("a"));
    bench.wait_and_die("w", INBOX);
    bench.wait_and_die("v", "");
    bench.granted(read("b"));
    assert!(bench.seen().line().is_empty());
}

#[test]
fn release_by_a_reader_lets_in_those_behind_a_writer_that_is_gone() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let mut connection = server.connection();
    let mut ears = Ears::on(&mut connection, &[INBOX]);
    for owner in ["a", "b"] {
        bench.granted(read(owner));
    }
    bench.wait("w", INBOX);
    bench.wait_to("r", "c", "");
    ears.close(INBOX);
    end(&mut bench, "r", "a");
    assert_read_by(&mut bench, &["b", "c"]);
}

// Permits

#[test]
fn permits_are_first_come_first_served_whatever_would_fit() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.granted(Ask::once("a").with_mode("1/3"));
    bench.wait_to("3/3", "large", "");
    bench.wait_to("1/3", "small", "");
    bench.refused(Ask::once("try").with_mode("1/3"));
    end(&mut bench, "1/3", "a");
    assert_eq!(bench.seen().shares(), ["3 large"]);
    end(&mut bench, "3/3", "large");
    assert_eq!(bench.seen().shares(), ["1 small"]);
}

#[test]
fn release_of_permits_lets_in_all_that_fit() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let mut connection = server.connection();
    let mut ears = Ears::on(&mut connection, &[INBOX]);
    bench.granted(Ask::once("a").with_mode("3/4"));
    bench.granted(Ask::once("z").with_mode("1/4"));
    for (owner, mode) in [("b", "1/4"), ("c", "2/4"), ("d", "1/4"), ("e", "1/4")] {
        bench.wait_to(mode, owner, INBOX);
    }
    end(&mut bench, "3/4", "a");
    let seen = bench.seen();
    assert_eq!(seen.shares(), ["1 b", "1 z", "2 c"]);
    assert_eq!(seen.line(), ["d", "e"]);
    let heard = ears.heard(&mut bench).len();
    assert_eq!(heard, 2);
}

#[test]
fn large_request_whose_connection_is_gone_keeps_no_small_one_out() {
    let server = RedisServer::start();
    for asks in [Ask::once("small"), Ask::waiting("small", TTL, "")] {
        let mut bench = Bench::new(&server);
        bench.granted(Ask::once("a").with_mode("1/3"));
        bench.wait_to("3/3", "large", "closed");
        bench.granted(asks.with_mode("1/3"));
        assert_eq!(bench.seen().shares(), ["1 a", "1 small"]);
        assert!(bench.seen().line().is_empty());
    }
}

#[test]
fn permits_come_back_when_their_lease_is_over() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    bench.granted(Ask::once("z").with_mode("1/3"));
    bench.granted(Ask::once("a").with_mode("2/3").with_ttl(100));
    bench.wait_to("2/3", "b", "");
    support::wait_until("the lease to end", super::PATIENCE, || {
        bench.refused(Ask::once("stranger").with_mode("3/3"));
        bench.seen().shares() == ["1 z", "2 b"]
    });
}

// Who can't be told

#[test]
fn one_that_shares_and_must_not_be_told_is_in_until_its_next_heartbeat() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    let mut ears = Ears::on(&mut connection, &["forbidden"]);
    for inbox in ["forbidden", ""] {
        for mode in ["r", "1/3"] {
            let mut bench = Bench::new(&server);
            bench.may_publish_only_to("allowed");
            let token = bench.token("a");
            bench.refused(Ask::waiting("b", 30_000, inbox).with_mode(mode));
            assert!(bench.release("a", Some(token)));
            let seen = bench.seen();
            assert_eq!(seen.shares(), ["1 b"]);
            assert!(is_full(seen.lasts("1 b"), 30_000), "{seen:?}");
            let [lock, .., holders, _] = seen.pttls;
            assert!(
                is_full(lock, 30_000) && is_full(holders, 30_000),
                "{seen:?}"
            );
            assert_eq!(ears.heard(&mut bench), []);
            bench.granted(Ask::waiting("b", 30_000, inbox).with_mode(mode));
            assert!(is_full(bench.seen().pttls[0], FULL));
        }
    }
}
