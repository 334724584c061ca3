//! Waiters whose inbox is a sharded channel, and waiters that hear at a server which another may follow.

use redis::Value;

use super::ask::{Ask, owner};
use super::bench::Bench;
use super::inspect::{inspect, shown};
use super::seen::{Ears, is_full};
use super::{FULL, TTL};
use support::RedisServer;
use support::scripts::Verb;

/// The inbox of a waiter on a cluster: the tag is that of the slot.
const INBOX: &str = "test:inbox:1:{a}";
const GONE: &str = "test:inbox:2:{a}";
const ELSEWHERE: &str = "0123abcd";

fn grant(owner: &str, token: Option<u64>) -> [(String, String); 1] {
    let token = token.expect("a counter");
    [(INBOX.to_owned(), format!("{owner} {token}"))]
}

/// The start of the server's run id.
fn here(bench: &mut Bench) -> String {
    let info: String = bench.query(&["INFO", "server"]);
    let (_, behind) = info.split_once("run_id:").expect("a run id");
    behind[..8].to_owned()
}

#[test]
fn waiter_is_told_on_its_sharded_channel_in_every_way_of_a_hand_off() {
    let server = RedisServer::start();
    let mut ears = Ears::sharded(&server, &[INBOX]);
    // The usual one, that after which readers come first, and those of readers and of permits.
    for (mode, others) in [("x", None), ("x", Some("r")), ("r", None), ("2/3", None)] {
        let mut bench = Bench::new(&server);
        let here = here(&mut bench);
        let token = bench.token("a");
        let waiting = |owner| Ask::waiting(owner, TTL, INBOX).hearing_at(&here);
        bench.refused(waiting("b").with_mode(mode));
        if let Some(mode) = others {
            bench.refused(waiting("c").with_mode(mode));
        }
        assert!(bench.release("a", Some(token)));
        let let_in = if others.is_some() { "c" } else { "b" };
        let counter = bench.seen().counter;
        assert_eq!(ears.heard(&mut bench), grant(let_in, counter), "{mode}");
        assert!(is_full(bench.seen().pttls[0], FULL), "{mode}");
    }
}

#[test]
fn usual_hand_off_on_a_sharded_channel_costs_no_more_commands() {
    let server = RedisServer::start();
    let _ears = Ears::sharded(&server, &[INBOX]);
    let mut bench = Bench::new(&server);
    let here = here(&mut bench);
    let token = bench.token("a");
    bench.refused(Ask::waiting("b", TTL, INBOX).hearing_at(&here));
    bench.query::<()>(&["CONFIG", "RESETSTAT"]);
    assert!(bench.release("a", Some(token)));
    let stats: String = bench.query(&["INFO", "commandstats"]);
    for expected in ["pubsub|shardnumsub", "spublish", "lpop"] {
        let once = format!("cmdstat_{expected}:calls=1,");
        assert!(stats.contains(&once), "{stats}");
    }
    for other in ["info", "publish", "llen", "exists"] {
        assert!(!stats.contains(&format!("cmdstat_{other}:")), "{stats}");
    }
}

#[test]
fn waiter_that_heard_here_and_is_gone_is_passed_over() {
    let server = RedisServer::start();
    let mut ears = Ears::sharded(&server, &[INBOX]);
    for mode in ["x", "r"] {
        let mut bench = Bench::new(&server);
        let here = here(&mut bench);
        let token = bench.token("a");
        // The second doesn't know at which server it heard.
        for (owner, hears_at) in [("gone", &*here), ("unknown", "")] {
            let ask = Ask::waiting(owner, TTL, GONE).hearing_at(hears_at);
            bench.refused(ask.with_mode(mode));
        }
        let ask = Ask::waiting("b", TTL, INBOX).hearing_at(&here);
        bench.refused(ask.with_mode(mode));
        assert!(bench.release("a", Some(token)));
        let seen = bench.seen();
        assert!(seen.waiters.is_empty(), "{seen:?}");
        assert_eq!(ears.heard(&mut bench), grant("b", seen.counter), "{mode}");
    }
}

#[test]
fn waiter_that_hears_at_another_server_keeps_its_turn() {
    let server = RedisServer::start();
    let mut ears = Ears::sharded(&server, &[INBOX]);
    // The second inbox is that of a waiter at a master that Sentinel names.
    for inbox in [GONE, "test:inbox:2"] {
        let mut bench = Bench::new(&server);
        let here = here(&mut bench);
        let token = bench.token("a");
        bench.refused(Ask::waiting("moved", 30_000, inbox).hearing_at(ELSEWHERE));
        bench.refused(Ask::waiting("b", TTL, INBOX).hearing_at(&here));
        assert!(bench.release("a", Some(token)));
        let seen = bench.seen();
        assert_eq!(seen.holder.as_deref(), Some("moved"));
        assert!(
            is_full(seen.pttls[0], 30_000),
            "until its heartbeat: {seen:?}"
        );
        assert_eq!(seen.line(), ["b"]);
        assert_eq!(ears.heard(&mut bench), []);
        let again = bench.granted(Ask::waiting("moved", 30_000, inbox).hearing_at(&here));
        assert_eq!(Some(again), seen.counter);
        assert!(is_full(bench.seen().pttls[0], FULL));
    }
}

#[test]
fn where_a_server_may_not_tell_its_id_a_waiter_keeps_its_turn() {
    let server = RedisServer::start();
    let mut bench = Bench::new(&server);
    let here = here(&mut bench);
    let token = bench.token("a");
    bench.refused(Ask::waiting("b", 30_000, GONE).hearing_at(&here));
    let rules = ["on", "nopass", "~*", "&*", "+@all", "-info"];
    bench.query::<()>(&[&["ACL", "SETUSER", "scripts"], &rules[..]].concat());
    bench.query::<()>(&["AUTH", "scripts", "any"]);
    assert!(bench.release("a", Some(token)));
    let seen = bench.seen();
    assert_eq!(seen.holder.as_deref(), Some("b"));
    assert!(is_full(seen.pttls[0], 30_000), "{seen:?}");
}

#[test]
fn waiter_of_several_names_is_told_on_its_sharded_channel() {
    let server = RedisServer::start();
    let mut ears = Ears::sharded(&server, &[INBOX]);
    let mut bench = Bench::new(&server);
    let (here, token) = (here(&mut bench), bench.token("a"));
    let keys: Vec<_> = bench.keys()[..6].to_vec();
    let other: Vec<_> = keys.iter().map(|key| format!("{key}:2")).collect();
    let ttl = TTL.to_string();
    let arguments = ["b", &ttl, "x", &ttl, INBOX, &here].map(str::to_owned);
    let answer = bench.run_on(Verb::AcquireAll, &[keys, other].concat(), &arguments);
    assert!(matches!(answer.expect("acquire"), Value::Array(_)));
    assert!(bench.release("a", Some(token)));
    let counter = bench.seen().counter;
    assert_eq!(ears.heard(&mut bench), grant("b", counter));
}

#[test]
fn waiter_is_woken_and_a_holder_is_told_of_a_break_on_sharded_channels() {
    const BROKEN: &str = "test:inbox:broken:{a}";
    let server = RedisServer::start();
    let mut ears = Ears::sharded(&server, &[INBOX, BROKEN]);
    let mut bench = Bench::new(&server);
    let here = here(&mut bench);
    let token = bench.token("a");
    bench.refused(Ask::waiting("b", TTL, INBOX).hearing_at(&here));
    let counter = (token + 1).to_string();
    let kept = bench.run(Verb::Release, &["a", &counter, "x", "", "50"]);
    assert_eq!(kept.expect("release"), Value::Int(1));
    assert_eq!(
        ears.heard(&mut bench),
        [(INBOX.to_owned(), "b 0".to_owned())]
    );
    bench.delete(&bench.lock.clone());
    let holder = owner(1);
    let waiting = bench.ask(Ask::once(&holder));
    assert!(waiting.token().is_none(), "b is before it");
    ears.heard(&mut bench);
    bench.release("b", None);
    bench.token(&holder);
    bench.run(Verb::Break, &[BROKEN]).expect("break");
    let counter = bench.seen().counter.expect("it is counted");
    let told = [(BROKEN.to_owned(), format!("{holder} {counter}"))];
    assert_eq!(ears.heard(&mut bench), told);
}

#[test]
fn waiters_are_shown_that_hear_here_or_elsewhere_but_not_those_that_are_gone() {
    let server = RedisServer::start();
    let _ears = Ears::sharded(&server, &[INBOX]);
    let mut bench = Bench::new(&server);
    let here = here(&mut bench);
    bench.token("a");
    for (number, inbox, hears_at) in [(1, INBOX, &*here), (2, GONE, &here), (3, GONE, ELSEWHERE)] {
        let owner = owner(number);
        bench.refused(Ask::waiting(&owner, TTL, inbox).hearing_at(hears_at));
    }
    let queue = [("host/12/1", "x"), ("host/12/3", "x")];
    assert_eq!(shown(&inspect(&mut bench).queue), queue);
}
