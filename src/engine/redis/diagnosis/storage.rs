//! Whether the server may drop locks, or refuse them, for want of memory or of connections.

use super::{ALLOW_INFO, Facts, Probe};
use crate::base::diagnosis::Finding;
use crate::base::error::Result;

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

const PERSISTENCE: &str = "persistence";

const TOKENS_GO_ON: &str = "fencing tokens go on increasing, by the server's clock";

pub(super) fn persistence(probe: &Probe<'_>, facts: &Facts) -> Result<Finding> {
    let appends = match facts.get("aof_enabled") {
        Some(enabled) => Some(enabled == "1"),
        None => probe.setting("appendonly")?.map(|it| it == "yes"),
    };
    if let Some(refusing) = refusing(facts) {
        return Ok(refusing);
    }
    Ok(match appends {
        Some(true) => with_log(probe.setting("appendfsync")?.as_deref()),
        Some(false) => without_log(probe.setting("save")?.as_deref()),
        None => Finding::unknown(
            PERSISTENCE,
            "this user may not see what a restart of the server keeps",
            ALLOW_INFO,
        ),
    })
}

/// Of a server that takes no writes, because it couldn't store the last ones.
fn refusing(facts: &Facts) -> Option<Finding> {
    let failed = |field: &&str| facts.get(field).is_some_and(|status| status != "ok");
    let field = ["aof_last_write_status", "rdb_last_bgsave_status"];
    let field = field.iter().find(|field| failed(field))?;
    Some(Finding::weak(
        PERSISTENCE,
        format!("its last write to disk failed ({field})"),
        "it may refuse all locks, and a restart loses those that it has",
        "look into the server's log, and at its disk",
    ))
}

fn with_log(fsync: Option<&str>) -> Finding {
    let found = |when: &str| format!("an append-only file, {when}");
    match fsync {
        Some("always") => Finding::fine(PERSISTENCE, found("written to disk before each answer")),
        Some(every) => Finding::weak(
            PERSISTENCE,
            found(match every {
                "everysec" => "written to disk each second",
                _ => "written to disk when the system does so",
            }),
            format!(
                "a restart of the server keeps all locks, but one after a power failure or a crash of its machine frees the \
                 newest, although their holders live; {TOKENS_GO_ON}"
            ),
            "appendfsync always; or have storage check the fencing token",
        ),
        None => Finding::unknown(
            PERSISTENCE,
            found("but this user may not see when it is written to disk"),
            "allow this user CONFIG GET (ACL SETUSER: +config|get), or ask who runs the server for appendfsync",
        ),
    }
}

fn without_log(save: Option<&str>) -> Finding {
    let found = match save {
        Some("") => "nothing is kept",
        Some(_) => "snapshots now and then, no append-only file",
        None => "no append-only file",
    };
    Finding::weak(
        PERSISTENCE,
        found,
        format!(
            "a restart of the server frees locks, although their holders live, which find out at their next renewal; \
             {TOKENS_GO_ON}"
        ),
        "appendonly yes, appendfsync always; or have storage check the fencing token",
    )
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

    #[test]
    fn only_a_log_that_is_written_at_once_keeps_all() {
        assert_eq!(with_log(Some("always")).verdict.to_string(), "fine");
        assert_eq!(with_log(Some("everysec")).verdict.to_string(), "weak");
        assert_eq!(with_log(None).verdict.to_string(), "unknown");
        for save in [None, Some(""), Some("3600 1")] {
            assert_eq!(without_log(save).verdict.to_string(), "weak");
        }
    }

    #[test]
    fn server_that_cannot_write_is_told() {
        let facts = "aof_last_write_status:ok\r\nrdb_last_bgsave_status:err";
        assert!(refusing(&Facts::of(facts)).is_some());
        assert!(refusing(&Facts::of("aof_last_write_status:ok")).is_none());
        assert!(refusing(&Facts::default()).is_none());
    }
}
