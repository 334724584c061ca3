//! Several locks at once, when a key of one of their lines was lost: evicted, or deleted by somebody.

use super::TTL;
use super::ask::Ask;
use super::several_bench::Several;
use support::RedisServer;

const BOTH: [usize; 2] = [0, 1];
/// Everybody who can be served was served long before.
const HEARTBEATS: usize = 6;

/// Each goes on asking until it has both, in turn, and releases them.
#[track_caller]
fn assert_all_are_served(several: &mut Several, mut waiting: Vec<&str>) {
    for _ in 0..HEARTBEATS {
        waiting.retain(|owner| {
            let answer = several.ask(&BOTH, Ask::waiting(owner, TTL, ""));
            let Some(token) = answer.token() else {
                return true;
            };
            assert!(several.release(&BOTH, owner, Some(token)));
            false
        });
    }
    assert!(waiting.is_empty(), "{waiting:?} wait for ever");
}

#[test]
fn place_that_was_lost_with_its_line_is_taken_anew_in_all_lines() {
    let server = RedisServer::start();
    let mut several = Several::new(&server, 2);
    let token = several.0[1].token("c");
    // It has the first, and waits for the second.
    several.ask(&BOTH, Ask::waiting("a", TTL, ""));
    let queue = several.0[1].queue.clone();
    several.0[1].delete(&queue);
    assert!(several.0[1].release("c", Some(token)));
    // It waits for the first, and has the second, which nobody waits for.
    several.ask(&BOTH, Ask::waiting("b", TTL, ""));
    assert_all_are_served(&mut several, vec!["a", "b"]);
}

#[test]
fn place_that_is_not_known_any_more_is_taken_anew_in_all_lines() {
    let server = RedisServer::start();
    let mut several = Several::new(&server, 2);
    let tokens = [0, 1].map(|name: usize| several.0[name].token("c"));
    for owner in ["a", "b"] {
        several.ask(&BOTH, Ask::waiting(owner, TTL, ""));
    }
    let waiters = several.0[1].waiters.clone();
    several.0[1].delete(&waiters);
    for owner in ["b", "a"] {
        several.ask(&BOTH, Ask::waiting(owner, TTL, ""));
    }
    for (name, token) in tokens.into_iter().enumerate() {
        assert!(several.0[name].release("c", Some(token)));
    }
    assert_all_are_served(&mut several, vec!["a", "b"]);
}

#[test]
fn two_that_wait_for_what_the_other_has_are_both_served() {
    let server = RedisServer::start();
    let mut several = Several::new(&server, 2);
    // As two lines are that were lost and entered anew in another order.
    for (name, (has, waits)) in [("a", "b"), ("b", "a")].into_iter().enumerate() {
        several.0[name].token(has);
        several.0[name].wait(waits, "");
    }
    assert_all_are_served(&mut several, vec!["a", "b"]);
}
