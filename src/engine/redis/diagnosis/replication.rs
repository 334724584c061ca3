//! Whether another server may take this one's place.

use super::facts::{ALLOW_INFO, Facts};
use super::probe::Probe;
use crate::base::diagnosis::Finding;
use crate::base::error::Result;

const CHECK: &str = "replication";

const STARVED: &str = "no lock is granted, and none is renewed";

pub(super) fn replication(probe: &Probe<'_>, facts: &Facts) -> Result<Finding> {
    let replicas = probe.server.settings().replicas;
    let needs = Needs {
        leases: replicas.map_or(0, |replicas| replicas.least.into()),
        writes: probe.setting("min-replicas-to-write")?,
    };
    Ok(finding(facts, &needs))
}

/// How many replicas it takes.
#[derive(Default)]
struct Needs {
    /// To grant a lease: `min_replicas`.
    leases: u64,
    /// To write at all: the server's `min-replicas-to-write`, if it shows it.
    writes: Option<String>,
}

fn finding(facts: &Facts, needs: &Needs) -> Finding {
    let (Some(role), Some(replicas)) = (facts.get("role"), facts.number("connected_slaves")) else {
        let found = "this user may not see whether there are replicas";
        return Finding::unknown(CHECK, found, ALLOW_INFO);
    };
    if role != "master" {
        return Finding::weak(
            CHECK,
            "it is a replica",
            "a replica takes no locks",
            "name its primary, or promote it",
        );
    }
    let found = described(facts, replicas);
    if let Some(starved) = starved(facts, needs, &found) {
        return starved;
    }
    match needs.leases {
        _ if replicas == 0 => Finding::fine(
            CHECK,
            format!("{found}: there is no failover that could lose locks"),
        ),
        0 => Finding::weak(
            CHECK,
            found,
            "replication is asynchronous: a failover frees the newest locks, although their holders live, which find out at \
             their next renewal; fencing tokens go on increasing, by the servers' clocks",
            format!(
                "min_replicas={replicas} in the URL{}; or have storage check the fencing token",
                or_to_write(needs)
            ),
        ),
        least if least < replicas => Finding::weak(
            CHECK,
            format!("{found}, of which {least} must have each lease (min_replicas)"),
            "a failover to one that hasn't a lease frees its lock, although its holder lives",
            format!("min_replicas={replicas} in the URL{}", or_to_write(needs)),
        ),
        _ => Finding::fine(
            CHECK,
            format!("{found}, and each lease is on all of them (min_replicas)"),
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
fn starved(facts: &Facts, needs: &Needs, found: &str) -> Option<Finding> {
    let (online, least) = (online(facts), needs.leases);
    if online < least {
        return Some(Finding::weak(
            CHECK,
            format!("{found}; connected are {online}, and min_replicas is {least}"),
            STARVED,
            "start the others and see whether they follow it, or lower min_replicas",
        ));
    }
    let good = facts.number("min_slaves_good_slaves")?;
    let writes: u64 = needs.writes.as_ref()?.parse().ok()?;
    (good < writes).then(|| {
        Finding::weak(
            CHECK,
            format!("{found}; in time are {good}, and min-replicas-to-write is {writes}"),
            STARVED,
            "see whether the replicas follow it, and how fast",
        )
    })
}

/// A primary that is cut off from its replicas ought not to go on.
fn or_to_write(needs: &Needs) -> &'static str {
    match needs.writes.as_deref() {
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
mod tests {
    use super::*;

    const TWO: &str = "role:master\nconnected_slaves:2\nslave0:ip=1.1.1.1,port=1,state=online,offset=9,lag=0\n\
                       slave1:ip=1.1.1.2,port=1,state=online,offset=9,lag=3\n";

    fn found(facts: &str, leases: u64, writes: &str) -> (String, String) {
        let needs = Needs {
            leases,
            writes: Some(writes.to_owned()),
        };
        let finding = finding(&Facts::of(facts), &needs);
        let text = format!("{finding:?}");
        assert!(!text.contains("1.1.1"));
        (finding.verdict.to_string(), text)
    }

    #[test]
    fn slowest_replica_is_told() {
        let (verdict, text) = found(TWO, 0, "0");
        assert!(text.contains("a primary with 2 replicas, the slowest 3 s behind"));
        assert_eq!(verdict, "weak");
        assert!(text.contains("min_replicas=2") && text.contains("min-replicas-to-write 1"));
    }

    #[test]
    fn leases_on_all_replicas_outlive_a_failover_and_those_on_some_do_not() {
        assert_eq!(found(TWO, 2, "1").0, "fine");
        let (verdict, text) = found(TWO, 1, "1");
        assert_eq!(verdict, "weak");
        assert!(
            text.contains("of which 1 must have each lease") && text.contains("min_replicas=2")
        );
        assert!(!text.contains("min-replicas-to-write"));
    }

    #[test]
    fn too_few_replicas_are_told() {
        let (verdict, text) = found(TWO, 3, "0");
        assert_eq!(verdict, "weak");
        assert!(
            text.contains("connected are 2, and min_replicas is 3"),
            "{text}"
        );
        assert!(text.contains(STARVED));
        let syncing = TWO.replace(
            "state=online,offset=9,lag=3",
            "state=wait_bgsave,offset=0,lag=3",
        );
        assert!(found(&syncing, 2, "0").1.contains("connected are 1"));
        let slow = format!("{TWO}min_slaves_good_slaves:1\n");
        assert!(
            found(&slow, 0, "2")
                .1
                .contains("min-replicas-to-write is 2")
        );
        assert!(
            found("role:master\nconnected_slaves:0", 1, "0")
                .1
                .contains(STARVED)
        );
    }

    #[test]
    fn single_server_has_nothing_to_lose_by_a_failover() {
        assert_eq!(found("role:master\nconnected_slaves:0", 0, "0").0, "fine");
        assert_eq!(found("", 0, "0").0, "unknown");
    }
}
