//! What a server tells of itself, and what that comes to where no other server matters.

use std::collections::HashMap;

use ::redis::Value;

use super::{ALLOW_INFO, Probe};
use crate::base::defects::{self, Defect};
use crate::base::diagnosis::Finding;
use crate::base::error::Result;
use crate::engine::redis::reply::text_of;

/// The fields of INFO, the answer to HELLO, and settings; what the server doesn't show isn't there.
#[derive(Debug, Default)]
pub(super) struct Facts {
    fields: HashMap<String, String>,
    /// How many replicas must have a lease: `min_replicas`.
    pub(super) min_replicas: u64,
}

/// What is asked besides INFO. HELLO may be sent by any user.
const QUESTIONS: [&str; 4] = [
    "HELLO",
    "CONFIG GET append*",
    "CONFIG GET save",
    "CONFIG GET min-replicas-to-write",
];

impl Facts {
    pub(super) fn ask(probe: &Probe<'_>) -> Result<Self> {
        let info = probe.text("INFO")?;
        let mut facts = Facts::of(&info.unwrap_or_default());
        let replicas = probe.server.settings().replicas;
        facts.min_replicas = replicas.map_or(0, |replicas| replicas.least.into());
        for question in QUESTIONS {
            if let Some(Value::Array(pairs)) = probe.answer(question)? {
                facts.add(&pairs);
            }
        }
        Ok(facts)
    }

    pub(super) fn of(info: &str) -> Self {
        let pairs = info.lines().filter_map(|line| line.split_once(':'));
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Facts {
            fields: pairs.collect(),
            min_replicas: 0,
        }
    }

    /// Adds pairs of names and values. What INFO has said goes before.
    fn add(&mut self, pairs: &[Value]) {
        for pair in pairs.chunks_exact(2) {
            if let (Some(name), Some(value)) = (text_of(&pair[0]), text_of(&pair[1])) {
                let field = self.fields.entry(name.to_owned());
                field.or_insert_with(|| value.to_owned());
            }
        }
    }

    pub(super) fn get(&self, field: &str) -> Option<&str> {
        self.fields.get(field).map(String::as_str)
    }

    pub(super) fn number(&self, field: &str) -> Option<u64> {
        self.get(field)?.parse().ok()
    }
}

const VERSION: &str = "version";

/// Since 6.2 scripts may read the time before they write, and PEXPIRE and SET know all that they use.
const DEFECTS: [Defect; 1] = [Defect {
    mended: &[[6, 2, 0]],
    since: [0, 0, 0],
    what: "the scripts need commands that this version doesn't have, so locks fail",
    better: "use Redis 6.2 or later, or Valkey",
}];

/// By HELLO, or by INFO. Valkey has a version of its own besides that of the Redis whose protocol it speaks.
pub(super) fn version(facts: &Facts) -> Option<Finding> {
    let told = facts.get("server").zip(facts.get("version"));
    let valkey = || Some(("valkey", facts.get("valkey_version")?));
    let redis = || Some(("redis", facts.get("redis_version")?));
    Some(match told.or_else(valkey).or_else(redis) {
        Some((name @ ("redis" | "valkey"), version)) => {
            defects::version(name, vec![version], &DEFECTS)
        }
        Some((name, version)) => Finding::unknown(
            VERSION,
            format!("{name} {version}"),
            "crosslock is tested with Redis and Valkey: test what you rely on",
        ),
        None => Finding::unknown(VERSION, "it doesn't say what it is", ALLOW_INFO),
    })
}

const PERSISTENCE: &str = "persistence";

const TOKENS_GO_ON: &str = "fencing tokens go on increasing, by the server's clock";

pub(super) fn persistence(facts: &Facts) -> Option<Finding> {
    let enabled = facts.get("aof_enabled").map(|enabled| enabled == "1");
    let appends = enabled.or_else(|| Some(facts.get("appendonly")? == "yes"));
    Some(match (refusing(facts), appends) {
        (Some(refusing), _) => refusing,
        (None, Some(true)) => with_log(facts.get("appendfsync")),
        (None, Some(false)) => without_log(facts.get("save")),
        (None, None) => Finding::unknown(
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

const EVICTION: &str = "eviction";

/// Each key of a lock expires, so every other policy may take it.
pub(super) fn eviction(facts: &Facts) -> Option<Finding> {
    let limit = facts.number("maxmemory");
    Some(match facts.get("maxmemory_policy").zip(limit) {
        None => {
            let found = "this user may not see maxmemory-policy";
            Finding::unknown(EVICTION, found, ALLOW_INFO)
        }
        Some(("noeviction", 0)) => Finding::fine(EVICTION, "noeviction, and no limit of memory"),
        Some(("noeviction", _)) => Finding::fine(EVICTION, "noeviction"),
        Some((policy, 0)) => {
            let found = format!("{policy}, but no limit of memory, so nothing is evicted");
            Finding::fine(EVICTION, found)
        }
        Some((policy, limit)) => Finding::weak(
            EVICTION,
            format!("{policy} at {}", mebibytes(limit)),
            "a full server evicts locks: they are free, although their holders live",
            "maxmemory-policy noeviction",
        ),
    })
}

pub(super) fn memory(facts: &Facts) -> Option<Finding> {
    let (used, limit) = used(facts, ["used_memory", "maxmemory"])?;
    let found = format!("{} of {} used", mebibytes(used), mebibytes(limit));
    Some(if is_scarce(used, limit) {
        let consequence = "a full server refuses locks, or evicts them";
        Finding::weak(
            "memory",
            found,
            consequence,
            "more maxmemory, or fewer keys",
        )
    } else {
        Finding::fine("memory", found)
    })
}

pub(super) fn clients(facts: &Facts) -> Option<Finding> {
    let (connected, limit) = used(facts, ["connected_clients", "maxclients"])?;
    let found = format!("{connected} of {limit} connections in use");
    Some(if is_scarce(connected, limit) {
        let consequence =
            "a server with too many connections refuses further ones, so locks fail and leases end";
        let advice = "a higher maxclients, or fewer clients";
        Finding::weak("clients", found, consequence, advice)
    } else {
        Finding::fine("clients", found)
    })
}

/// How much is used, and of how much; `None` where there is no limit, or the server doesn't tell of it.
fn used(facts: &Facts, [used, limit]: [&str; 2]) -> Option<(u64, u64)> {
    let limit = facts.number(limit).filter(|limit| *limit > 0)?;
    Some((facts.number(used)?, limit))
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
    fn old_and_foreign_servers_are_told_from_known_ones() {
        for (name, version, verdict) in [
            ("redis", "6.2.0", "fine"),
            ("redis", "7.0.15", "fine"),
            ("redis", "10.0.0", "fine"),
            ("valkey", "8.1.0-rc1", "fine"),
            ("redis", "6.0.16", "weak"),
            ("redis", "x", "weak"),
            ("dragonfly", "7.4.0", "unknown"),
        ] {
            let facts = Facts::of(&format!("server:{name}\nversion:{version}"));
            let finding = super::version(&facts).unwrap();
            assert_eq!(finding.verdict.to_string(), verdict, "{name} {version}");
        }
        let finding = super::version(&Facts::default()).unwrap();
        assert_eq!(finding.verdict.to_string(), "unknown");
    }

    #[test]
    fn valkeys_own_version_counts() {
        let facts = Facts::of("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1");
        assert_eq!(version(&facts).unwrap().found, "valkey 8.0.1");
    }

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
                eviction(&facts).unwrap().verdict.to_string(),
                verdict,
                "{policy} {limit}"
            );
        }
        assert_eq!(
            eviction(&Facts::default()).unwrap().verdict.to_string(),
            "unknown"
        );
    }

    #[test]
    fn what_is_nearly_full_is_weak() {
        for (used, verdict) in [(100, "fine"), (899, "fine"), (900, "weak"), (1000, "weak")] {
            let facts = format!(
                "maxmemory:{0}\nused_memory:{used}\nmaxclients:{0}\nconnected_clients:{used}",
                1000
            );
            let facts = Facts::of(&facts);
            for finding in [memory(&facts), clients(&facts)] {
                assert_eq!(finding.unwrap().verdict.to_string(), verdict, "{used}");
            }
        }
        assert!(memory(&Facts::of("maxmemory:0\nused_memory:5")).is_none());
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
