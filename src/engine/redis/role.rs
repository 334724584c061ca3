//! What a server says that it is: single or a replica, a node of a cluster, or a Sentinel.

use ::redis::Value;

/// What a server says that it is, in answer to HELLO, which any user may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A primary, or a server that doesn't say what it is: a proxy, or another version.
    Primary,
    Replica,
    /// A KeyDB that takes writes beside others: each of them would grant the same lock.
    ActiveReplica,
    ClusterNode,
    Sentinel,
}

impl Role {
    /// From the answer to HELLO, in which each name is followed by what it names.
    pub(super) fn of(answer: &Value) -> Self {
        let Value::Array(parts) = answer else {
            return Role::Primary;
        };
        let mut role = Role::Primary;
        for pair in parts.chunks_exact(2) {
            match (text(&pair[0]), text(&pair[1])) {
                ("mode", "cluster") => return Role::ClusterNode,
                ("mode", "sentinel") => return Role::Sentinel,
                ("role", "active-replica") => return Role::ActiveReplica,
                ("role", "replica" | "slave") => role = Role::Replica,
                _ => {}
            }
        }
        role
    }
}

fn text(value: &Value) -> &str {
    match value {
        Value::BulkString(bytes) => str::from_utf8(bytes).unwrap_or_default(),
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(pairs: &[(&str, &str)]) -> Value {
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
            assert_eq!(Role::of(&hello(pairs)), role, "{pairs:?}");
        }
        for other in [Value::Nil, Value::Okay, Value::Array(vec![Value::Nil])] {
            assert_eq!(Role::of(&other), Role::Primary);
        }
    }
}
