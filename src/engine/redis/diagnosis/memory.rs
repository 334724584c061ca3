//! Whether the server may drop locks, or refuse them, for want of memory or of connections.

use super::facts::{ALLOW_INFO, Facts};
use crate::base::diagnosis::Finding;

const EVICTION: &str = "eviction";
const MEMORY: &str = "memory";
const CLIENTS: &str = "clients";

pub(super) fn memory(facts: &Facts) -> Vec<Finding> {
    let mut findings = vec![eviction(facts)];
    findings.extend(full(facts));
    findings.extend(crowded(facts));
    findings
}

/// Each key of a lock expires, so every other policy may take it.
fn eviction(facts: &Facts) -> Finding {
    let limit = facts.number("maxmemory");
    let (Some(policy), Some(limit)) = (facts.get("maxmemory_policy"), limit) else {
        let found = "this user may not see maxmemory-policy";
        return Finding::unknown(EVICTION, found, ALLOW_INFO);
    };
    match (policy, limit) {
        ("noeviction", 0) => Finding::fine(EVICTION, "noeviction, and no limit of memory"),
        ("noeviction", _) => Finding::fine(EVICTION, "noeviction"),
        (policy, 0) => {
            let found = format!("{policy}, but no limit of memory, so nothing is evicted");
            Finding::fine(EVICTION, found)
        }
        (policy, limit) => Finding::weak(
            EVICTION,
            format!("{policy} at {}", mebibytes(limit)),
            "a full server evicts locks: they are free, although their holders live",
            "maxmemory-policy noeviction",
        ),
    }
}

/// A finding where there is a limit.
fn full(facts: &Facts) -> Option<Finding> {
    let limit = facts.number("maxmemory").filter(|limit| *limit > 0)?;
    let used = facts.number("used_memory")?;
    let found = format!("{} of {} used", mebibytes(used), mebibytes(limit));
    Some(if is_scarce(used, limit) {
        Finding::weak(
            MEMORY,
            found,
            "a full server refuses locks, or evicts them",
            "more maxmemory, or fewer keys",
        )
    } else {
        Finding::fine(MEMORY, found)
    })
}

/// A finding where the server tells of its limit.
fn crowded(facts: &Facts) -> Option<Finding> {
    let limit = facts.number("maxclients").filter(|limit| *limit > 0)?;
    let connected = facts.number("connected_clients")?;
    let found = format!("{connected} of {limit} connections in use");
    Some(if is_scarce(connected, limit) {
        Finding::weak(
            CLIENTS,
            found,
            "a server with too many connections refuses further ones, so locks fail and leases end",
            "a higher maxclients, or fewer clients",
        )
    } else {
        Finding::fine(CLIENTS, found)
    })
}

/// Nine tenths of it are used.
fn is_scarce(used: u64, limit: u64) -> bool {
    used / 9 >= limit / 10
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eviction_is_weak_where_it_can_come_to_it() {
        for (policy, limit, verdict) in [
            ("noeviction", 0, "fine"),
            ("noeviction", 1 << 30, "fine"),
            ("allkeys-lru", 0, "fine"),
            ("allkeys-lru", 1 << 30, "weak"),
            ("volatile-ttl", 1 << 30, "weak"),
        ] {
            let facts = Facts::of(&format!("maxmemory:{limit}\nmaxmemory_policy:{policy}"));
            assert_eq!(
                eviction(&facts).verdict.to_string(),
                verdict,
                "{policy} {limit}"
            );
        }
        assert_eq!(eviction(&Facts::default()).verdict.to_string(), "unknown");
    }

    #[test]
    fn what_is_nearly_full_is_weak() {
        for (used, verdict) in [(100, "fine"), (899, "fine"), (900, "weak"), (1000, "weak")] {
            let facts = format!(
                "maxmemory:{0}\nused_memory:{used}\nmaxclients:{0}\nconnected_clients:{used}",
                1000
            );
            let facts = Facts::of(&facts);
            for finding in [full(&facts), crowded(&facts)] {
                assert_eq!(finding.unwrap().verdict.to_string(), verdict, "{used}");
            }
        }
        assert!(full(&Facts::of("maxmemory:0\nused_memory:5")).is_none());
    }
}
