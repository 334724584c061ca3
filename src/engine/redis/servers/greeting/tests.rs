use super::*;

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
