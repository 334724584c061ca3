//! What looks show of real servers, to which the lines of some names were written by hand.

use super::*;
use support::{Etcd, ZooKeeper};

const FIRST: &str = "11111111-89ab-4def-8123-456789abcdef";
const SECOND: &str = "22222222-89ab-4def-8123-456789abcdef";

fn owner(id: &str) -> String {
    format!("{id}/host/7/1")
}

fn line<'a>(view: &'a View, name: &str) -> &'a Line {
    let mut lines = view.lines.iter();
    lines
        .find(|line| line.name == name)
        .expect("each has a line")
}

/// What is told of the line of a name: who holds it, who waits, and who was broken.
fn told(view: &View, name: &str) -> [String; 3] {
    line(view, name).events(0).map(|event| event.detail)
}

#[test]
fn lines_of_etcd_are_shown() {
    let server = Etcd::start();
    let put = |key: &str, text: &str| server.put(&format!("{NAMESPACE}/{key}"), text);
    put(
        &format!("long/w/{SECOND}"),
        &format!("x since=1\n{}", owner(SECOND)),
    );
    put(
        &format!("long/w/{FIRST}"),
        &format!("x since=1 token=77\n{}", owner(FIRST)),
    );
    put(&format!("long/b/{FIRST}"), "");
    put(
        &format!("permits/w/{FIRST}"),
        &format!("p 2/3 since=1\n{}", owner(FIRST)),
    );
    put(
        &format!("permits/w/{SECOND}"),
        &format!("p 2/3 since=1\n{}", owner(SECOND)),
    );
    put("counter/value", "17");
    let view = view_of_etcd(&server);
    assert_eq!(line(&view, "long").places[1].token, 77);
    // Whoever came first holds it.
    let expected = [owner(SECOND), owner(FIRST), format!("0:{FIRST}")];
    assert_eq!(told(&view, "long"), expected);
    assert_eq!(
        told(&view, "permits"),
        [SHARED.to_owned(), owner(SECOND), String::new()]
    );
    assert_eq!(told(&view, "patient"), ["", "", ""]);
    assert_eq!(view.owned.len(), 4);
    // None of them has a lease.
    assert_eq!(view.bare.len(), 5);
    assert!(view.term > 0);
    assert_eq!(value_at(server.own_addr(), "counter").ok(), Some(17));
    delete(server.own_addr(), &line(&view, "long").places[0].key).expect("it is there");
    assert_eq!(told(&view_of_etcd(&server), "long")[0], owner(FIRST));
    compact(server.own_addr()).expect("it answers");
    server.kill();
    assert!(EtcdLook::open(server.own_addr()).look().is_none());
}

fn view_of_etcd(server: &Etcd) -> View {
    EtcdLook::open(server.own_addr())
        .look()
        .expect("it answers")
}

#[test]
fn short_leases_of_etcd_are_found() {
    let server = Etcd::start();
    let grant = |seconds: u64| {
        let answer = server.call("/v3/lease/grant", &serde_json::json!({ "TTL": seconds }));
        answer["ID"].as_str().expect("a lease").to_owned()
    };
    let (short, _long) = (grant(60), grant(86_400));
    let found = short_leases(server.own_addr()).expect("it answers");
    assert_eq!(found, [format!("\"{short}\"")]);
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table")]
fn lines_of_zookeeper_are_shown() {
    let server = ZooKeeper::start();
    let mut session = server.session();
    let mut create = |path: &str, data: &str, flags| {
        let path = format!("/{NAMESPACE}{path}");
        session.create(&path, data, flags).expect("it isn't there");
    };
    for node in ["", "/long", "/shared", "/counter"] {
        create(node, "", 0);
    }
    create(&format!("/long/x-{SECOND}-"), &owner(SECOND), 3);
    create(
        &format!("/long/x-{FIRST}-"),
        &format!("{}\n1000\n77", owner(FIRST)),
        2,
    );
    create("/long/held", SECOND, 0);
    create(&format!("/long/b-{FIRST}"), "", 0);
    create(&format!("/shared/r-{FIRST}-"), &owner(FIRST), 3);
    create(&format!("/shared/x-{SECOND}-"), &owner(SECOND), 3);
    create("/counter/value", "17", 0);
    let mut look = ZooKeeperLook::at(server.own_addr());
    let view = look.look().expect("it answers");
    let expected = [owner(SECOND), owner(FIRST), format!("0:{FIRST}")];
    assert_eq!(told(&view, "long"), expected);
    assert_eq!(
        told(&view, "shared"),
        [SHARED.to_owned(), owner(SECOND), String::new()]
    );
    assert_eq!(told(&view, "patient"), ["", "", ""]);
    assert_eq!(view.owned.len(), 4);
    // It doesn't end with its session.
    assert_eq!(view.bare.len(), 1);
    assert_eq!(look.value("counter").ok(), Some(17));
    let places = &line(&view, "long").places;
    let first = places[0].revision * TOKENS_OF_REVISION + 1;
    assert_eq!([places[0].token, places[1].token], [first, 77]);
    look.delete(&line(&view, "long").places[0].key)
        .expect("it is there");
    let view = look.look().expect("it answers");
    assert_eq!(told(&view, "long")[0], owner(FIRST));
    server.kill();
    assert!(look.look().is_none());
}
