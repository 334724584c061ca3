//! What a cluster's URL may name, and what is told when it names something else.

use std::time::Duration;

use crosslock::{Error, Locker};
use support::{BlackHole, RedisServer, Setup, wait_until, within};

use super::{PATIENCE, held, name_on, open, shared, slot};

/// The connect timeout of these tests.
const CONNECT: Duration = Duration::from_millis(600);

fn builder(url: &str) -> crosslock::LockerBuilder {
    Locker::builder(url).connect_timeout(CONNECT)
}

#[test]
fn one_node_of_the_url_that_answers_is_enough() {
    let cluster = shared();
    let (hole, node) = (BlackHole::start(), cluster.node(4).public_addr());
    let url = format!("redis+cluster://{},{node}", hole.addr());
    let locker = within(CONNECT, || builder(&url).build().expect("open"));
    for number in 0..20 {
        within(CONNECT, || drop(held(&locker, &format!("n{number}"))));
    }
}

#[test]
fn servers_that_are_no_nodes_are_told_with_the_url_to_use() {
    let primary = RedisServer::start();
    let replica = RedisServer::builder().replica_of(primary.port()).start();
    wait_until("the replica to follow", PATIENCE, || {
        replica.info("master_link_status").as_deref() == Some("up")
    });
    let sentinel = RedisServer::builder().sentinel().start();
    let port = primary.port().to_string();
    let monitor = ["SENTINEL", "MONITOR", "one", "127.0.0.1", &port, "1"];
    sentinel.query::<()>(&monitor);
    let of_sentinels = format!("redis+sentinel://{}/one", sentinel.addr());
    for (server, instead) in [
        (&primary, primary.url() + "0"),
        (&replica, primary.url() + "0"),
        (&sentinel, of_sentinels),
    ] {
        let url = format!("redis+cluster://{}", server.addr());
        let error = builder(&url).build().expect_err("it is no cluster");
        assert!(matches!(error, Error::Unsupported { .. }), "{error:?}");
        let told = error.to_string();
        assert!(told.ends_with(&format!("use {instead}")), "{told}");
    }
    // One that answers late is no reason to refuse the others.
    let cluster = shared();
    let url = format!("{},{}", cluster.url(), primary.addr());
    drop(held(&builder(&url).build().expect("open"), "any"));
}

#[test]
fn nodes_without_a_known_host_are_where_the_one_asked_is() {
    let setup = Setup::new().calm();
    let setup = setup.config("cluster-preferred-endpoint-type", "unknown-endpoint");
    let cluster = setup.cluster();
    let locker = open(&cluster);
    for node in 0..3 {
        let name = name_on(&cluster, node, 0);
        drop(held(&locker, &name));
        // By a redirection, too.
        cluster.move_slot(slot(&name), (node + 1) % 3);
        drop(held(&locker, &name));
    }
}
