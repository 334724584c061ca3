//! Several locks at once: all or none.

use super::ask::Ask;
use super::bench::{Bench, KEYS};
use super::counter::EXACT;
use super::seen::{Ears, is_full};
use super::several_bench::Several;
use super::{COUNTER_TTL, FULL, TTL};
use support::RedisServer;
use support::scripts::{Acquired, Verb};

const INBOX: &str = "an inbox";

// Taking

#[test]
fn free_locks_are_all_granted_with_one_token_above_all_earlier_ones() {
    let server = RedisServer::start();
    let mut several = Several::new(&server, 3);
    let ahead = EXACT / 2;
    several.0[0].set_counter("8");
    several.0[1].set_counter(&ahead.to_string());
    let token = several.token(&[0, 1, 2], "a");
    assert!((ahead + 1..ahead + 8).contains(&token), "{token}");
    assert_eq!(token % 4, 1);
    assert_eq!(several.holders(), vec![Some("a".to_owned()); 3]);
    assert_eq!(several.counters(), [Some(token); 3]);
    for bench in &mut several.0 {
        let seen = bench.seen();
        assert!(is_full(seen.pttls[0], FULL), "{seen:?}");
        assert!(is_full(seen.pttls[1], COUNTER_TTL), "{seen:?}");
    }
    assert_eq!(server.keys().len(), 6);
    assert_eq!(several.token(&[0, 1, 2], "a"), token, "repeated");
}

#[test]
fn one_that_is_taken_leaves_the_others_as_they_were() {
    let server = RedisServer::start();
    for taken in 0..3 {
        let mut several = Several::new(&server, 3);
        several.0[taken].token("b");
        several.refused(&[0, 1, 2], Ask::once("a"));
        several.assert_has_none("a");
        for (name, bench) in several.0.iter_mut().enumerate() {
            let seen = bench.seen();
            assert_eq!(seen.holder.is_some(), name == taken);
            assert!(name == taken || seen.counter.unwrap_or(0) % 2 == 0);
            seen.assert_every_key_expires();
        }
    }
}

#[test]
fn abandonment_of_one_is_told_with_the_token_of_all() {
    let server = RedisServer::start();
    for abandoned in 0..3 {
        let mut several = Several::new(&server, 3);
        several.0[abandoned].token("b");
        several.0[abandoned].expire();
        let token = several.token(&[0, 1, 2], "a");
        assert_eq!(token % 8, 3);
        assert_eq!(several.token(&[0, 1, 2], "a"), token, "repeated");
        assert_eq!(several.counters(), [Some(token); 3]);
        assert!(several.release(&[0, 1, 2], "a", Some(token)));
        assert_eq!(several.token(&[0, 1, 2], "c") % 4, 1, "it was told");
    }
}

#[test]
fn abandonment_that_nobody_was_told_stays() {
    let server = RedisServer::start();
    let mut several = Several::new(&server, 2);
    several.0[0].token("b");
    several.0[0].expire();
    several.0[1].token("c");
    several.refused(&[0, 1], Ask::once("a"));
    assert_eq!(several.0[0].contents().0, None);
    assert_eq!(several.0[0].token("d") % 8, 3);
}

#[test]
fn who_waits_has_those_that_are_free_and_a_place_for_the_others() {
    let server = RedisServer::start();
    let mut several = Several::new(&server, 3);
    several.0[1].granted(Ask::once("b").with_ttl(3 * TTL));
    several.0[2].granted(Ask::once("c").with_ttl(2 * TTL));
    for expected in [false, true] {
        match several.ask(&[0, 1, 2], Ask::waiting("a", TTL, INBOX)) {
            Acquired::Taken {
                remaining,
                stood,
                known: true,
                ..
            } => {
                assert!(is_full(remaining, 2 * FULL), "{remaining}");
                assert_eq!(stood, expected);
            }
            other => panic!("{other:?}"),
        }
        let holders = ["a", "b", "c"].map(|owner| Some(owner.to_owned()));
        assert_eq!(several.holders(), holders);
        assert_eq!(several.lines(), [vec![], vec!["a"], vec!["a"]]);
    }
    several.refused(&[0, 1, 2], Ask::once("a"));
    several.assert_has_none("a");
}

#[test]
fn holder_without_a_ttl_is_told_only_when_no_other_comes_free() {
    let server = RedisServer::start();
    let mut several = Several::new(&server, 2);
    let lock = several.0[0].lock.clone();
    several.0[0].query::<()>(&["SET", &lock, "foreign"]);
    let remaining = |several: &mut Several| match several.ask(&[0, 1], Ask::waiting("a", TTL, "")) {
        Acquired::Taken {
            remaining,
            known: false,
            ..
        } => remaining,
        other => panic!("{other:?}"),
    };
    assert_eq!(remaining(&mut several), -1);
    several.refused(&[0, 1], Ask::once("a"));
    several.0[1].token("b");
    assert!(is_full(remaining(&mut several), FULL));
}

#[test]
fn one_holder_that_is_no_program_of_ours_is_told() {
    let server = RedisServer::start();
    for foreign in 0..3 {
        let mut several = Several::new(&server, 3);
        for (name, bench) in several.0.iter_mut().enumerate() {
            if name == foreign {
                let lock = bench.lock.clone();
                bench.query::<()>(&["SET", &lock, "foreign"]);
            } else {
                bench.token("b");
            }
        }
        let answer = several.ask(&[0, 1, 2], Ask::waiting("a", TTL, ""));
        assert!(matches!(answer, Acquired::Taken { known: false, .. }));
    }
}

#[test]
fn locks_that_are_handed_over_one_by_one_are_granted_when_all_are_there() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    let mut ears = Ears::on(&mut connection, &[INBOX]);
    let mut several = Several::new(&server, 2);
    let tokens = [several.0[0].token("b"), several.0[1].token("c")];
    several.wait(&[0, 1], "a", INBOX);
    assert!(several.0[1].release("c", Some(tokens[1])));
    assert_eq!(ears.heard(&mut several.0[0]).len(), 1);
    several.wait(&[0, 1], "a", INBOX);
    assert!(several.0[0].release("b", Some(tokens[0])));
    let largest = several.counters().into_iter().flatten().max().unwrap();
    let token = several.token(&[0, 1], "a");
    assert!(token >= largest && token % 4 == 1);
    assert_eq!(several.counters(), [Some(token); 2]);
}

#[test]
fn whoever_comes_first_is_in_front_wherever_they_meet() {
    let server = RedisServer::start();
    let mut several = Several::new(&server, 3);
    let token = several.0[1].token("x");
    several.wait(&[1, 0], "a", "");
    several.wait(&[2, 1], "b", "");
    several.wait(&[0, 2], "c", "");
    let ends = [("a", [0, 1]), ("b", [1, 2]), ("c", [0, 2])];
    assert!(several.0[1].release("x", Some(token)));
    for (owner, names) in ends {
        let token = several.token(&names, owner);
        assert!(several.release(&names, owner, Some(token)));
    }
    assert_eq!(several.holders(), [None, None, None]);
}

// Losses

#[test]
fn who_lost_a_lock_or_its_place_gives_up_the_others_and_enters_anew() {
    let server = RedisServer::start();
    let lose: [fn(&mut Several); 2] = [
        |several| several.0[0].forget_holder(),
        |several| assert!(!several.0[1].release("a", None)),
    ];
    for lose in lose {
        let mut several = Several::new(&server, 2);
        several.0[1].token("b");
        several.wait(&[0, 1], "a", "");
        several.wait(&[0, 1], "c", "");
        lose(&mut several);
        match several.ask(&[0, 1], Ask::waiting("a", TTL, "")) {
            Acquired::Taken { stood: false, .. } => {}
            other => panic!("{other:?}"),
        }
        assert_eq!(several.0[0].contents().0.as_deref(), Some("c"));
        assert_eq!(several.lines(), [vec!["a"], vec!["c", "a"]]);
    }
}

#[test]
fn error_of_one_leaves_none() {
    let server = RedisServer::start();
    for broken in 0..3 {
        for ask in [Ask::once("a"), Ask::waiting("a", TTL, "")] {
            let mut several = Several::new(&server, 3);
            several.0[2].token("b");
            if broken == 2 {
                several.0[2].forget_holder();
            }
            several.0[broken].set_counter("text");
            let error = several.try_ask(&[0, 1, 2], ask).unwrap_err();
            assert_eq!(error.code(), Some("CONFLICT"), "{error}");
            several.0[broken].set_counter("8");
            if broken == 0 {
                // Those behind it weren't asked for.
                assert_eq!(several.0[1].contents(), (None, None));
            }
            several.assert_has_none("a");
        }
    }
}

#[test]
fn lock_of_another_type_leaves_none_of_the_others() {
    let server = RedisServer::start();
    let mut several = Several::new(&server, 3);
    let queue = several.0[2].queue.clone();
    several.0[2].query::<()>(&["SADD", &queue, "member"]);
    let error = several.try_ask(&[0, 1, 2], Ask::once("a")).unwrap_err();
    assert!(error.to_string().contains("WRONGTYPE"), "{error}");
    several.0[2].delete(&queue);
    several.assert_has_none("a");
}

#[test]
fn line_of_another_type_leaves_none_of_what_was_had_before() {
    let server = RedisServer::start();
    let mut several = Several::new(&server, 2);
    several.0[1].token("b");
    several
        .try_ask(&[0, 1], Ask::waiting("a", TTL, ""))
        .unwrap();
    let queue = several.0[1].queue.clone();
    several.0[1].delete(&queue);
    several.0[1].query::<()>(&["SADD", &queue, "member"]);
    let asked = several.try_ask(&[0, 1], Ask::waiting("a", TTL, ""));
    assert!(asked.unwrap_err().to_string().contains("WRONGTYPE"));
    assert_eq!(several.0[0].contents().0, None);
}

// Releasing and renewing

#[test]
fn all_are_released_and_each_is_handed_on() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    let mut ears = Ears::on(&mut connection, &[INBOX]);
    let mut several = Several::new(&server, 3);
    let token = several.token(&[0, 1, 2], "a");
    several.0[1].wait("b", INBOX);
    assert!(several.release(&[0, 1, 2], "a", Some(token)));
    assert_eq!(several.holders(), [None, Some("b".to_owned()), None]);
    let counters = several.counters();
    assert_eq!([counters[0], counters[2]], [Some(token + 1); 2]);
    let message = format!("b {}", counters[1].unwrap());
    assert_eq!(ears.heard(&mut several.0[0]), [(INBOX.into(), message)]);
    assert!(several.release(&[0, 2], "a", Some(token)), "repeated");
}

#[test]
fn release_of_which_one_was_lost_is_refused_but_frees_the_others() {
    let server = RedisServer::start();
    for lost in 0..3 {
        let mut several = Several::new(&server, 3);
        let token = several.token(&[0, 1, 2], "a");
        several.0[lost].forget_holder();
        several.0[lost].token("b");
        assert!(!several.release(&[0, 1, 2], "a", Some(token)));
        several.assert_has_none("a");
        assert_eq!(several.0[lost].contents().0.as_deref(), Some("b"));
    }
}

#[test]
fn who_gives_up_has_none_and_waits_for_none() {
    let server = RedisServer::start();
    let mut several = Several::new(&server, 3);
    several.0[1].token("b");
    several.wait(&[0, 1, 2], "a", "");
    several.wait(&[0, 1, 2], "c", "");
    assert!(!several.release(&[0, 1, 2], "a", None));
    several.assert_has_none("a");
    let holders = ["c", "b", "c"].map(|owner| Some(owner.to_owned()));
    assert_eq!(several.holders(), holders);
}

#[test]
fn lock_of_another_type_hinders_no_release_of_the_others() {
    let server = RedisServer::start();
    for broken in 0..3 {
        let mut several = Several::new(&server, 3);
        let token = several.token(&[0, 1, 2], "a");
        let lock = several.0[broken].lock.clone();
        several.0[broken].delete(&lock);
        several.0[broken].query::<()>(&["SADD", &lock, "member"]);
        let keys = |bench: &Bench| bench.keys().into_iter().take(KEYS);
        let keys: Vec<_> = several.0.iter().flat_map(keys).collect();
        let arguments = ["a".to_owned(), (token + 1).to_string(), "x".to_owned()];
        let answer = several.0[0].run_on(Verb::ReleaseAll, &keys, &arguments);
        assert_eq!(answer.unwrap(), redis::Value::Int(0));
        let members: Vec<String> = several.0[broken].query(&["SMEMBERS", &lock]);
        assert_eq!(members, ["member"]);
        several.0[broken].delete(&lock);
        several.assert_has_none("a");
    }
}

#[test]
fn all_are_renewed_by_their_owner_only() {
    let server = RedisServer::start();
    let mut several = Several::new(&server, 3);
    several.token(&[0, 1, 2], "a");
    assert!(several.renew(&[0, 1, 2], "a", 2 * TTL));
    assert!(!several.renew(&[0, 1, 2], "b", 9 * TTL));
    let lasts = |several: &mut Several| -> Vec<_> {
        let pttls = several.0.iter_mut().map(|bench| bench.seen().pttls[0]);
        pttls.collect()
    };
    assert!(
        lasts(&mut several)
            .iter()
            .all(|pttl| is_full(*pttl, 2 * FULL))
    );
    for lost in 0..3 {
        several.0[lost].forget_holder();
        several.0[lost].token("b");
        assert!(!several.renew(&[0, 1, 2], "a", 3 * TTL), "one is lost");
        let after = lasts(&mut several);
        for (name, pttl) in after.into_iter().enumerate() {
            let full = if name <= lost { FULL } else { 2 * FULL };
            assert!(is_full(pttl, full), "{name}: {pttl}");
        }
    }
}
