//! Sets of servers.

use std::path::Path;

use super::*;
use support::{
    Cluster, Member, Replicated, SentinelSet, Setup, slot_of, tag_in, valkey, wait_until,
};

#[test]
fn replicas_follow_until_they_are_cut_off() {
    let set = Setup::new().proxies().replicated(2);
    assert_eq!(set.master(), 0);
    set.cut(0, 1);
    set.member(0).query::<()>(&["SET", "key", "value"]);
    assert_eq!(set.member(0).query::<u64>(&["WAIT", "1", "20000"]), 1);
    assert_eq!(set.member(2).get("key").as_deref(), Some("value"));
    assert_eq!(set.member(1).get("key"), None);
    set.join(0, 1);
    set.wait_until_caught_up();
    assert_eq!(set.member(1).get("key").as_deref(), Some("value"));

    set.member(0).kill();
    set.promote(2);
    set.follow(1, 2);
    set.wait_until_caught_up();
    assert_eq!((set.master(), set.role(0)), (2, None));
    ping(&set.url(2));
}

#[test]
fn replicas_take_passwords_and_tls() {
    let set = Setup::new().password("secret").tls().replicated(1);
    set.member(0).query::<()>(&["SET", "key", "value"]);
    set.wait_until_caught_up();
    assert_eq!(set.member(1).get("key").as_deref(), Some("value"));
    assert!(set.url(1).starts_with("rediss://:secret@127.0.0.1:"));
}

#[test]
fn sentinels_replace_a_master() {
    let set = SentinelSet::start();
    assert_eq!(set.master(), 0);
    let second = set.failover();
    assert_ne!(second, 0);
    set.wait_until_settled();
    set.member(second).kill();
    let third = set.wait_for_other_master(second);
    assert_eq!(set.role(third).as_deref(), Some("master"));
    set.member(second).restart();
    set.wait_until_settled();
    // The sentinels may have made it the master once more.
    let is_master = |member: &usize| set.role(*member).as_deref() == Some("master");
    wait_until("one master", PATIENCE, || {
        (0..3).filter(is_master).eq([set.master()])
    });
    assert!(set.url().starts_with("redis+sentinel://127.0.0.1:"));
}

#[test]
fn sentinels_replace_a_master_that_only_clients_reach() {
    let set = Setup::new().proxies().sentinels();
    let old = set.member(0);
    let rest = || set.members()[1..].iter().chain(set.sentinels());
    rest().for_each(|other| old.cut_from(other));
    set.wait_for_other_master(0);
    let mut wire = Wire::to(old.proxy());
    assert_eq!(wire.ask(&["SET", "key", "value"]), "+OK");
    rest().for_each(|other| old.join(other));
    set.wait_until_settled();
    wait_until("the old master to follow", PATIENCE, || {
        set.role(0).as_deref() == Some("slave")
    });
    // On a busy machine the sentinels may have replaced the new one, too.
    assert_ne!(set.master(), 0);
}

#[test]
fn sentinels_take_passwords_and_tls() {
    let setup = Setup::new().password("one").sentinel_password("two").tls();
    let set = setup.sentinels();
    set.failover();
    let mut wire = Wire(TcpStream::connect(set.sentinel(0).addr()).unwrap());
    assert!(wire.ask(&["PING"]).starts_with("-NOAUTH"));
    let url = set.url();
    assert!(url.starts_with("rediss+sentinel://:one@127.0.0.1:"));
    assert!(url.contains("/mymaster?ca=/") && url.ends_with("&sentinel_password=two"));
}

#[test]
fn cluster_moves_slots_and_masters() {
    let cluster = Cluster::start();
    assert_eq!(cluster.masters(), [0, 1, 2]);
    assert_eq!(cluster.replicas_of(1), [4]);
    let tag = cluster.tag_on(0);
    assert_eq!(cluster.owner(&tag), 0);
    cluster.node(0).query::<()>(&["SET", &tag, "value"]);

    let migration = cluster.migration(slot_of(&tag), 1);
    migration.import();
    migration.migrate();
    assert_eq!(migration.keys(), [tag.as_str()]);
    cluster.fix();
    assert_eq!(cluster.owner(&tag), 1);
    assert_eq!(cluster.node(1).get(&tag).as_deref(), Some("value"));
    cluster.move_slot(slot_of(&tag), 2);
    assert_eq!(cluster.owner(&tag), 2);

    cluster.reshard(2, 0, 20);
    cluster.failover(5);
    assert!(cluster.is_master(5) && !cluster.is_master(2));
    let old = cluster.owner(&tag);
    cluster.node(old).kill();
    let new = cluster.wait_for_other_owner(&tag, old);
    assert_eq!(cluster.node(new).get(&tag).as_deref(), Some("value"));
    cluster.node(old).restart();
    cluster.wait_until_ok();
}

#[test]
fn cluster_grows_and_shrinks() {
    let mut cluster = Cluster::start();
    let new = cluster.add_node();
    cluster.move_slot(0, new);
    assert_eq!(cluster.slots(new), [0]);
    cluster.move_slot(0, 1);
    cluster.remove_node(new);
    cluster.wait_until_ok();
    assert_eq!(cluster.nodes(), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn cluster_replaces_a_master_that_only_clients_reach() {
    let cluster = Setup::new().proxies().cluster();
    let tag = cluster.tag_on(0);
    cluster.isolate(0);
    let mut wire = Wire::to(cluster.node(0).proxy());
    assert_eq!(wire.ask(&["SET", &tag, "value"]), "+OK");
    wait_until("its replica to be a master", PATIENCE, || {
        cluster.is_master(3)
    });
    wait_until("it to refuse", PATIENCE, || {
        wire.ask(&["SET", &tag, "value"])
            .starts_with("-CLUSTERDOWN")
    });
    cluster.join(0);
    cluster.wait_until_ok();
    assert_eq!((cluster.owner(&tag), cluster.is_master(0)), (3, false));
}

#[test]
fn cluster_takes_passwords_and_tls() {
    let cluster = Setup::new().password("secret").tls().proxies().cluster();
    cluster.move_slot(0, 1);
    cluster.reshard(0, 2, 2);
    cluster.failover(3);
    assert!(
        cluster
            .url()
            .starts_with("rediss+cluster://:secret@127.0.0.1:")
    );
}

#[test]
fn sets_run_on_valkey() {
    let Some(program) = valkey() else { return };
    let is_valkey = |member: &Member| member.info("server_name").as_deref() == Some("valkey");
    let set = Setup::new().program(&program).replicated(1);
    assert!(is_valkey(set.member(0)));
    let set = Setup::new().program(&program).sentinels();
    assert!(is_valkey(set.member(0)));
    set.failover();
    let cluster = Setup::new().program(&program).cluster();
    assert!(is_valkey(cluster.node(0)));
    cluster.move_slot(0, 1);
    cluster.reshard(0, 2, 2);
    cluster.node(1).query::<()>(&["SET", &tag_in(0), "value"]);
    cluster.migrate_slots(0, 0, 2);
    assert_eq!(cluster.node(2).get(&tag_in(0)).as_deref(), Some("value"));
    cluster.failover(3);
}

#[test]
fn server_of_a_set_keeps_its_own_settings() {
    let set = Setup::new().each(|index, server| {
        let priority = (100 * index).to_string();
        server.config("replica-priority", &priority)
    });
    let set = set.replicated(2);
    let priority = |index: usize| set.member(index).info("slave_priority").unwrap();
    assert_eq!((priority(1), priority(2)), ("100".into(), "200".into()));
}

#[test]
fn dropped_set_leaves_nothing() {
    let set = Replicated::start(1);
    let left: Vec<_> = set
        .members()
        .iter()
        .map(|one| (one.pid(), one.dir().to_owned()))
        .collect();
    drop(set);
    assert!(
        !left
            .iter()
            .any(|(pid, dir)| is_running(*pid) || Path::exists(dir))
    );
}

#[test]
fn slots_are_those_of_the_server() {
    let server = RedisServer::builder()
        .config("cluster-enabled", "yes")
        .start();
    for key in [
        "",
        "a",
        "{tag}.rest",
        "a{tag}b{c}",
        "{}tag",
        "{tag",
        "ä{ö}ü",
    ] {
        let slot: u16 = server.query(&["CLUSTER", "KEYSLOT", key]);
        assert_eq!(slot_of(key), slot, "{key}");
    }
    for slot in [0, 5_461, 16_383] {
        assert_eq!(slot_of(&tag_in(slot)), slot);
    }
}

fn ping(url: &str) {
    let client = redis::Client::open(url).expect("a URL");
    let mut connection = client.get_connection().expect("it connects");
    cmd("PING").exec(&mut connection).expect("it answers");
}
