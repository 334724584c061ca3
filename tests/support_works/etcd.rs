//! Servers of etcd.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;

use serde_json::{Value, json};

use super::*;
use support::{Etcd, EtcdCluster, Fault, wait_until};

#[test]
fn server_keeps_keys_until_their_lease_is_revoked() {
    let server = Etcd::start();
    server.put("a/1", "one");
    server.put("b", "two");
    let granted = server.call("/v3/lease/grant", &json!({ "TTL": 1 }));
    assert_eq!(granted["TTL"], "1");
    let id = granted["ID"].as_str().unwrap();
    let leased = json!({ "key": "YS8y", "value": "", "lease": id });
    server.call("/v3/kv/put", &leased);
    assert_eq!(server.keys("a/"), ["a/1", "a/2"]);
    assert_eq!(server.keys(""), ["a/1", "a/2", "b"]);
    let lease = server.lease_of("a/2");
    assert_eq!((server.lease_of("a/1"), server.leases()), (0, vec![lease]));
    server.revoke(lease);
    assert_eq!(server.keys("a/"), ["a/1"]);
    server.delete("a/1");
    server.delete_all("");
    assert_eq!((server.get("a/1"), server.get("b")), (None, None));
}

#[test]
fn stopped_server_is_silent_and_restarted_one_has_its_keys() {
    let server = Etcd::start();
    server.put("key", "value");
    server.stop();
    assert!(!server.is_running() && server.status().is_none());
    TcpStream::connect(server.addr()).expect("the system accepts");
    server.go_on();
    assert_eq!(server.get("key").as_deref(), Some("value"));
    server.kill();
    assert!(TcpStream::connect(server.addr()).is_err());
    server.restart();
    assert_eq!(server.get("key").as_deref(), Some("value"));
}

#[test]
fn old_state_comes_back_and_compaction_forgets() {
    let server = Etcd::start();
    server.put("key", "old");
    let (backup, revision) = (server.back_up(), server.revision());
    server.put("key", "new");
    server.compact();
    let late = json!({ "key": "a2V5", "revision": revision });
    assert_eq!(
        gateway(server.own_addr(), "/v3/kv/range", &late)["code"],
        11
    );
    server.roll_back(&backup);
    assert_eq!(server.get("key").as_deref(), Some("old"));
    assert_eq!(server.revision(), revision);
}

#[test]
fn server_demands_a_password_and_its_tokens_end() {
    let server = Etcd::setup().token_ttl(1).start();
    server.put("key", "value");
    let key = json!({ "key": "a2V5" });
    let addr = server.own_addr();
    assert_ne!(gateway(addr, "/v3/kv/range", &key)["code"], Value::Null);
    assert!(
        server
            .url()
            .starts_with("etcd://locker:swordfish-7c1d@127.")
    );

    let login = json!({ "name": "locker", "password": "swordfish-7c1d" });
    let answer = gateway(addr, "/v3/auth/authenticate", &login);
    let token = answer["token"].as_str().expect("a token").to_owned();
    let ask = || ask(addr, "/v3/kv/range", Some(&token), &key);
    assert_eq!(ask()["kvs"][0]["value"], "dmFsdWU=");
    // Each use puts it off, so that it is left alone.
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(ask()["code"], 16, "unauthenticated");
}

#[test]
fn cluster_elects_another_leader_and_takes_the_old_one_back() {
    let cluster = EtcdCluster::of(3);
    let old = cluster.leader();
    cluster.member(old).put("key", "value");
    cluster.kill(old);
    let new = cluster.wait_for_other_leader(old);
    cluster.member(new).put("key", "other");
    cluster.restart(old);
    assert_eq!(cluster.member(old).get("key").as_deref(), Some("other"));
    cluster.stop(new);
    let third = cluster.wait_for_other_leader(new);
    cluster.go_on(new);
    assert_eq!(cluster.member(third).get("key").as_deref(), Some("other"));
    assert_eq!(cluster.url().matches("127.0.0.1:").count(), 3);
}

#[test]
fn leader_that_only_clients_reach_is_replaced() {
    let cluster = Etcd::setup().proxies().cluster(3);
    let old = cluster.leader();
    cluster.isolate(old);
    let new = cluster.wait_for_other_leader(old);
    cluster.member(new).put("key", "value");
    let member = cluster.member(old);
    // Without the others it can't say what all agree on.
    let stale = json!({ "key": "a2V5", "serializable": true });
    let answer = gateway(member.proxy().addr(), "/v3/kv/range", &stale);
    assert_eq!(answer["kvs"], Value::Null);
    cluster.take_back(old);
    // That may be a third one: the old one has asked for votes meanwhile.
    let leader = |index: usize| cluster.member(index).status().map(|status| status.leader);
    wait_until("all to have one leader", PATIENCE, || {
        leader(old).is_some_and(|id| id != 0) && leader(old) == leader(new)
    });
    assert_eq!(member.get("key").as_deref(), Some("value"));
}

#[test]
fn follower_hears_the_leader_by_another_member_alone() {
    let cluster = Etcd::setup().proxies().cluster(3);
    let leader = cluster.leader();
    let (one, two) = ((leader + 1) % 3, (leader + 2) % 3);
    cluster.cut(one, two);
    cluster.member(leader).put("key", "value");
    for follower in [one, two] {
        let member = cluster.member(follower);
        assert_eq!(member.get("key").as_deref(), Some("value"));
    }
    assert_eq!(cluster.leader(), leader);
}

#[test]
fn proxy_counts_requests_and_loses_a_reply() {
    let server = Etcd::setup().proxies().start();
    let proxy = server.proxy();
    let put = json!({ "key": "a2V5", "value": "dmFsdWU=" });
    gateway(proxy.addr(), "/v3/kv/put", &put);
    assert_eq!((proxy.requests(), server.get("key").is_some()), (1, true));
    proxy.lose_next_reply("/deleterange", true);
    let request = "POST /v3/kv/deleterange HTTP/1.1\r\nHost: a\r\nContent-Length: 14\r\n\r\n\
                   {\"key\":\"a2V5\"}";
    let mut wire = Wire::to(proxy);
    wire.0.write_all(request.as_bytes()).expect("it is open");
    assert!(wire.is_ended());
    assert_eq!((proxy.lost_replies(), server.get("key")), (1, None));
    proxy.set(Fault::Refuse);
    assert!(Wire::to(proxy).is_ended());
}

#[test]
fn tls_is_spoken_with_a_certificate_of_the_authority() {
    let server = Etcd::setup().client_certificates().login().start();
    server.put("key", "value");
    let url = server.url_at("a/b");
    let start = format!("etcds://locker:swordfish-7c1d@{}/a/b?ca=/", server.addr());
    assert!(url.starts_with(&start), "{url}");
    for file in ["ca.pem", "client.pem", "client.key"] {
        assert!(url.contains(file) && Path::exists(&server.dir().join(file)));
    }
}

#[test]
fn dropped_cluster_leaves_nothing() {
    let cluster = EtcdCluster::of(3);
    let members = cluster.members().iter();
    let left: Vec<_> = members
        .map(|one| (one.pid(), one.dir().to_owned()))
        .collect();
    drop(cluster);
    assert!(
        !left
            .iter()
            .any(|(pid, dir)| is_running(*pid) || Path::exists(dir))
    );
}

fn gateway(addr: SocketAddr, path: &str, body: &Value) -> Value {
    ask(addr, path, None, body)
}

fn ask(addr: SocketAddr, path: &str, token: Option<&str>, body: &Value) -> Value {
    let mut stream = TcpStream::connect(addr).expect("it accepts");
    stream
        .set_read_timeout(Some(PATIENCE))
        .expect("set a timeout");
    let token = token.map_or_else(String::new, |token| format!("Authorization: {token}\r\n"));
    let body = body.to_string();
    let length = body.len();
    let request = format!("POST {path} HTTP/1.0\r\n{token}Content-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).expect("it is open");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head");
    serde_json::from_str(body).expect("JSON")
}
