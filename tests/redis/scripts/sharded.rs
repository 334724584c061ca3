//! Waiters whose inbox is a sharded channel, and waiters that hear at a server which another may follow.

use super::ask::Ask;
use super::bench::Bench;
use super::seen::{Ears, is_full};
use super::{FULL, TTL};
use support::RedisServer;

/// The inbox of a waiter on a cluster: the tag is that of the slot.
const INBOX: &str = "test:inbox:1:{a}";

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
