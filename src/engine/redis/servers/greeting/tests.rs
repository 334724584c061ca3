use super::*;
use crate::engine::redis::server_of;

fn hello(mode: &str, server: &str, version_text: &str) -> Hello {
    let answer = answer(&[
        ("server", server),
        ("version", version_text),
        ("mode", mode),
        ("role", "master"),
    ]);
    Hello {
        server: server_of("redis+cluster://a:1"),
        role: Role::of(&answer),
        version: version(&answer),
    }
}

#[test]
fn what_is_no_cluster_of_a_known_version_is_told_with_the_url_to_use() {
    for (mode, server, version, words) in [
        ("cluster", "redis", "7.0.15", ""),
        ("cluster", "redis", "10.1.0", ""),
        ("cluster", "valkey", "8.1.0", ""),
        ("cluster", "other", "1.0.0", ""),
        ("cluster", "redis", "6.2.7", "Redis 7.0 or later"),
        ("standalone", "redis", "7.0.15", "use redis://a:1/0"),
    ] {
        let hello = hello(mode, server, version);
        let told = hello.check().err().map_or(String::new(), |e| e.to_string());
        assert!(told.contains(words), "{told}");
        assert_eq!(
            (told.is_empty(), words.is_empty()),
            (hello.is_usable(), hello.is_usable())
        );
    }
}

fn answer(pairs: &[(&str, &str)]) -> Value {
    let text = |text: &str| Value::BulkString(text.into());
    let pairs = pairs.iter().flat_map(|(name, is)| [text(name), text(is)]);
    Value::Array(pairs.collect())
}

#[test]
fn role_is_what_the_server_says() {
    for (pairs, role) in [
        (&[("mode", "standalone"), ("role", "master")], Role::Primary),
        (
            &[("mode", "standalone"), ("role", "replica")],
            Role::Replica,
        ),
        (
            &[("mode", "cluster"), ("role", "master")],
            Role::ClusterNode,
        ),
        (
            &[("role", "replica"), ("mode", "cluster")],
            Role::ClusterNode,
        ),
        (
            &[("mode", "standalone"), ("role", "active-replica")],
            Role::ActiveReplica,
        ),
        (&[("server", "redis"), ("mode", "sentinel")], Role::Sentinel),
        (&[("mode", "new"), ("role", "new")], Role::Primary),
    ] {
        assert_eq!(Role::of(&answer(pairs)), role, "{pairs:?}");
    }
    for other in [Value::Nil, Value::Okay, Value::Array(vec![Value::Nil])] {
        assert_eq!(Role::of(&other), Role::Primary);
    }
}
