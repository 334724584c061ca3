//! What a server tells of itself, and what that comes to; also where another server may take its place.

use ::redis::Value;

use super::{ALLOW_INFO, Probe};
use crate::base::sys::collections::HashMap;
use crate::base::{Finding, Result, diagnosis::Defect};
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
    what: "locks fail, because the scripts need commands that this version lacks",
    better: "use Redis 6.2 or later, or Valkey",
}];

/// By HELLO, or by INFO. Valkey has a version of its own besides that of the Redis whose protocol it speaks.
pub(super) fn version(facts: &Facts) -> Option<Finding> {
    let told = facts.get("server").zip(facts.get("version"));
    let valkey = || Some(("valkey", facts.get("valkey_version")?));
    let redis = || Some(("redis", facts.get("redis_version")?));
    Some(match told.or_else(valkey).or_else(redis) {
        Some((name @ ("redis" | "valkey"), version)) => {
            Finding::version(name, vec![version], &DEFECTS)
        }
        Some((name, version)) => Finding::unknown(
            VERSION,
            format!("{name} {version}"),
            "crosslock is tested with Redis and Valkey: test what you rely on",
        ),
        None => Finding::unknown(
            VERSION,
            "it doesn't report its name and version",
            ALLOW_INFO,
        ),
    })
}

const PERSISTENCE: &str = "persistence";

const TOKENS_GO_ON: &str = "fencing tokens still increase, because they follow the server's clock";

pub(super) fn persistence(facts: &Facts) -> Option<Finding> {
    let enabled = facts.get("aof_enabled").map(|enabled| enabled == "1");
    let appends = enabled.or_else(|| Some(facts.get("appendonly")? == "yes"));
    Some(match (refusing(facts), appends) {
        (Some(refusing), _) => refusing,
        (None, Some(true)) => with_log(facts.get("appendfsync")),
        (None, Some(false)) => without_log(facts.get("save")),
        (None, None) => Finding::unknown(
            PERSISTENCE,
            "this user isn't allowed to see the persistence settings",
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
        format!("the last write to disk failed ({field})"),
        "the server may refuse all locks, and a restart loses locks",
        "check the server's log and disk",
    ))
}

fn with_log(fsync: Option<&str>) -> Finding {
    let found = |when: &str| format!("an append-only file, {when}");
    match fsync {
        Some("always") => Finding::fine(PERSISTENCE, found("written to disk before each answer")),
        Some(every) => Finding::weak(
            PERSISTENCE,
            found(match every {
                "everysec" => "written to disk every second",
                _ => "written to disk when the system decides",
            }),
            format!(
                "a power failure or a crash of the machine loses the newest delayed tasks and frees the newest locks, \
                 although their holders are alive; a restart of the server alone loses nothing; {TOKENS_GO_ON}"
            ),
            "set appendfsync always, or let storage check the fencing token",
        ),
        None => Finding::unknown(
            PERSISTENCE,
            found("but this user isn't allowed to see when it is written to disk"),
            "allow this user CONFIG GET (ACL SETUSER: +config|get), or ask the server's operator about appendfsync",
        ),
    }
}

fn without_log(save: Option<&str>) -> Finding {
    let found = match save {
        Some("") => "no persistence",
        Some(_) => "snapshots only, no append-only file",
        None => "no append-only file",
    };
    Finding::weak(
        PERSISTENCE,
        found,
        format!(
            "a restart of the server loses delayed tasks and frees locks whose holders are alive; they notice at \
             their next renewal; {TOKENS_GO_ON}"
        ),
        "set appendonly yes and appendfsync always, or let storage check the fencing token",
    )
}

const EVICTION: &str = "eviction";

/// Each key of a lock expires, so every other policy may take it.
pub(super) fn eviction(facts: &Facts) -> Option<Finding> {
    let limit = facts.number("maxmemory");
    Some(match facts.get("maxmemory_policy").zip(limit) {
        None => {
            let found = "this user isn't allowed to see maxmemory-policy";
            Finding::unknown(EVICTION, found, ALLOW_INFO)
        }
        Some(("noeviction", 0)) => Finding::fine(EVICTION, "noeviction, and no memory limit"),
        Some(("noeviction", _)) => Finding::fine(EVICTION, "noeviction"),
        Some((policy, 0)) => {
            let found = format!("{policy}, but no memory limit, so nothing is evicted");
            Finding::fine(EVICTION, found)
        }
        Some((policy, limit)) => Finding::weak(
            EVICTION,
            format!("{policy} at {}", mebibytes(limit)),
            "a full server loses delayed tasks and frees locks, although their holders are alive",
            "set maxmemory-policy noeviction",
        ),
    })
}

pub(super) fn memory(facts: &Facts) -> Option<Finding> {
    let (used, limit) = used(facts, ["used_memory", "maxmemory"])?;
    let found = format!("{} of {} used", mebibytes(used), mebibytes(limit));
    let consequence = "a full server refuses locks or evicts them";
    let advice = "raise maxmemory, or store fewer keys";
    Some(match is_scarce(used, limit) {
        true => Finding::weak("memory", found, consequence, advice),
        false => Finding::fine("memory", found),
    })
}

pub(super) fn clients(facts: &Facts) -> Option<Finding> {
    let (connected, limit) = used(facts, ["connected_clients", "maxclients"])?;
    let found = format!("{connected} of {limit} connections in use");
    let consequence =
        "at the limit the server refuses new connections, so locks fail and leases end";
    let advice = "raise maxclients, or use fewer clients";
    Some(match is_scarce(connected, limit) {
        true => Finding::weak("clients", found, consequence, advice),
        false => Finding::fine("clients", found),
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

const REPLICATION: &str = "replication";

const STARVED: &str = "no lock is granted or renewed";

/// Whether another server may take this one's place.
pub(super) fn replication(facts: &Facts) -> Option<Finding> {
    let (Some(role), Some(replicas)) = (facts.get("role"), facts.number("connected_slaves")) else {
        let found = "this user isn't allowed to see the replicas";
        return Some(Finding::unknown(REPLICATION, found, ALLOW_INFO));
    };
    if role != "master" {
        return Some(Finding::weak(
            REPLICATION,
            "it is a replica",
            "a replica grants no locks",
            "use the URL of its primary, or promote it",
        ));
    }
    let found = described(facts, replicas);
    let starved = starved(facts, &found);
    Some(starved.unwrap_or_else(|| failover(facts, replicas, &found)))
}

/// What a failover of a primary with that many replicas may lose.
fn failover(facts: &Facts, replicas: u64, found: &str) -> Finding {
    match facts.min_replicas {
        _ if replicas == 0 => Finding::fine(
            REPLICATION,
            format!("{found}, so no failover can lose locks"),
        ),
        0 => Finding::weak(
            REPLICATION,
            found,
            "replication is asynchronous: a failover frees the newest locks, although their holders are alive; they \
             notice at their next renewal; fencing tokens still increase, because they follow the servers' clocks",
            format!(
                "set min_replicas={replicas} in the URL{}, or let storage check the fencing token",
                or_to_write(facts)
            ),
        ),
        least if least < replicas => Finding::weak(
            REPLICATION,
            format!("{found}; {least} must confirm each lease (min_replicas)"),
            "a failover to a replica without a lease frees its lock, although its holder is alive",
            format!(
                "set min_replicas={replicas} in the URL{}",
                or_to_write(facts)
            ),
        ),
        _ => Finding::fine(
            REPLICATION,
            format!("{found}, and all of them confirm each lease (min_replicas)"),
        ),
    }
}

fn described(facts: &Facts, replicas: u64) -> String {
    let lag = slowest(facts).map_or(String::new(), |lag| format!(", the slowest {lag} s behind"));
    match replicas {
        0 => "a primary without replicas".to_owned(),
        1 => format!("a primary with 1 replica{lag}"),
        many => format!("a primary with {many} replicas{lag}"),
    }
}

/// Of a primary with too few replicas for what is asked of it.
fn starved(facts: &Facts, found: &str) -> Option<Finding> {
    let (online, least) = (online(facts), facts.min_replicas);
    if online < least {
        return Some(Finding::weak(
            REPLICATION,
            format!("{found}; {online} are connected, and min_replicas is {least}"),
            STARVED,
            "start the other replicas and check that they follow the primary, or lower min_replicas",
        ));
    }
    let good = facts.number("min_slaves_good_slaves")?;
    let writes = facts.number("min-replicas-to-write")?;
    (good < writes).then(|| {
        Finding::weak(
            REPLICATION,
            format!("{found}; {good} are in time, and min-replicas-to-write is {writes}"),
            STARVED,
            "check whether the replicas follow the primary, and how fast",
        )
    })
}

/// A primary that is cut off from its replicas ought not to go on.
fn or_to_write(facts: &Facts) -> &'static str {
    match facts.get("min-replicas-to-write") {
        Some("0") => ", and min-replicas-to-write 1 on the servers",
        _ => "",
    }
}

/// How many replicas are connected and have the data.
fn online(facts: &Facts) -> u64 {
    let is_online = |replica: &&str| replica.contains("state=online");
    let count = replicas(facts).filter(is_online).count();
    count.try_into().unwrap_or(u64::MAX)
}

fn replicas(facts: &Facts) -> impl Iterator<Item = &str> {
    (0..).map_while(|number| facts.get(&format!("slave{number}")))
}

/// The lag of the replica that is furthest behind, in seconds: `slave0:ip=..,port=..,state=online,offset=..,lag=1`.
fn slowest(facts: &Facts) -> Option<u64> {
    let lag = |replica: &str| {
        let mut fields = replica.split(',');
        fields.find_map(|field| field.strip_prefix("lag=")?.parse().ok())
    };
    replicas(facts).filter_map(lag).max()
}

#[cfg(test)]
mod tests;
