//! Whether another server may take this one's place; and how the masters of a cluster have its slots, and how long it takes
//! until one is replaced.

use std::time::Duration;

use ::redis::Value;

use super::facts::Facts;
use super::{ALLOW_INFO, Probe};
use crate::base::diagnosis::Finding;
use crate::base::error::Result;
use crate::base::options::Options;
use crate::engine::redis::keys::SLOTS;
use crate::engine::redis::reply::text_of;
use crate::engine::redis::servers::view::{NodeLine, node_lines};

const REPLICATION: &str = "replication";

const STARVED: &str = "no lock is granted, and none is renewed";

/// Whether another server may take this one's place.
pub(super) fn replication(facts: &Facts) -> Option<Finding> {
    Some(replicated(facts))
}

fn replicated(facts: &Facts) -> Finding {
    let (Some(role), Some(replicas)) = (facts.get("role"), facts.number("connected_slaves")) else {
        let found = "this user may not see whether there are replicas";
        return Finding::unknown(REPLICATION, found, ALLOW_INFO);
    };
    if role != "master" {
        return Finding::weak(
            REPLICATION,
            "it is a replica",
            "a replica takes no locks",
            "name its primary, or promote it",
        );
    }
    let found = described(facts, replicas);
    if let Some(starved) = starved(facts, &found) {
        return starved;
    }
    match facts.min_replicas {
        _ if replicas == 0 => Finding::fine(
            REPLICATION,
            format!("{found}: there is no failover that could lose locks"),
        ),
        0 => Finding::weak(
            REPLICATION,
            found,
            "replication is asynchronous: a failover frees the newest locks, although their holders live, which find out at \
             their next renewal; fencing tokens go on increasing, by the servers' clocks",
            format!(
                "min_replicas={replicas} in the URL{}; or have storage check the fencing token",
                or_to_write(facts)
            ),
        ),
        least if least < replicas => Finding::weak(
            REPLICATION,
            format!("{found}, of which {least} must have each lease (min_replicas)"),
            "a failover to one that hasn't a lease frees its lock, although its holder lives",
            format!("min_replicas={replicas} in the URL{}", or_to_write(facts)),
        ),
        _ => Finding::fine(
            REPLICATION,
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
fn starved(facts: &Facts, found: &str) -> Option<Finding> {
    let (online, least) = (online(facts), facts.min_replicas);
    if online < least {
        return Some(Finding::weak(
            REPLICATION,
            format!("{found}; connected are {online}, and min_replicas is {least}"),
            STARVED,
            "start the others and see whether they follow it, or lower min_replicas",
        ));
    }
    let good = facts.number("min_slaves_good_slaves")?;
    let writes = facts.number("min-replicas-to-write")?;
    (good < writes).then(|| {
        Finding::weak(
            REPLICATION,
            format!("{found}; in time are {good}, and min-replicas-to-write is {writes}"),
            STARVED,
            "see whether the replicas follow it, and how fast",
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

const COVERAGE: &str = "slots";
const FAILOVER: &str = "failover";

/// What an election takes, once a master counts as failed.
const ELECTION: Duration = Duration::from_secs(1);

/// Of the masters of a cluster.
pub(super) fn cluster(masters: &[Probe<'_>], options: &Options) -> Result<Vec<Finding>> {
    let (mut covered, mut moving, mut longest) = (None, Some(Vec::new()), Some(Duration::ZERO));
    for master in masters {
        let info = master.text("CLUSTER INFO")?.map(|text| Facts::of(&text));
        covered = covered.max(info.and_then(|info| info.number("cluster_slots_ok")));
        let nodes = master.text("CLUSTER NODES")?;
        moving = moving.zip(nodes).map(|(mut moving, nodes)| {
            moving.extend(on_their_way(&nodes));
            moving
        });
        let timeout = node_timeout(master)?;
        longest = longest.zip(timeout).map(|(one, other)| one.max(other));
    }
    Ok(vec![slots(covered, moving), failover(longest, options)])
}

fn node_timeout(master: &Probe<'_>) -> Result<Option<Duration>> {
    let Some(Value::Array(pair)) = master.answer("CONFIG GET cluster-node-timeout")? else {
        return Ok(None);
    };
    let millis = pair.get(1).and_then(text_of);
    let millis = millis.and_then(|millis| millis.parse().ok());
    Ok(millis.map(Duration::from_millis))
}

/// The slots that come or go at the node that answered CLUSTER NODES.
fn on_their_way(nodes: &str) -> Vec<u16> {
    let own = node_lines(nodes).filter(NodeLine::is_own);
    own.flat_map(|line| line.on_their_way().collect::<Vec<_>>())
        .collect()
}

fn slots(covered: Option<u64>, moving: Option<Vec<u16>>) -> Finding {
    let (Some(covered), Some(mut moving)) = (covered, moving) else {
        let found = "this user may not see how the cluster is";
        let advice = "allow this user CLUSTER INFO and CLUSTER NODES (ACL SETUSER: +cluster|info +cluster|nodes)";
        return Finding::unknown(COVERAGE, found, advice);
    };
    moving.sort_unstable();
    moving.dedup();
    let missing = u64::from(SLOTS).saturating_sub(covered);
    if missing > 0 {
        return Finding::weak(
            COVERAGE,
            format!("{missing} of {SLOTS} slots have no master that answers"),
            "names in these slots can't be locked, and none at all with cluster-require-full-coverage",
            "give them a master: redis-cli --cluster check, and --cluster fix",
        );
    }
    if moving.is_empty() {
        return Finding::fine(COVERAGE, format!("each of {SLOTS} slots has its master"));
    }
    let shown: Vec<_> = moving.iter().take(5).map(u16::to_string).collect();
    let more = if moving.len() > shown.len() {
        ", …"
    } else {
        ""
    };
    Finding::weak(
        COVERAGE,
        format!("{} on their way: {}{more}", moving.len(), shown.join(", ")),
        "while a slot is between two nodes, no lock in it can be taken or released, and those that have moved are lost if a \
         node fails over meanwhile",
        "finish the migration: redis-cli --cluster fix, if nothing does; fail no node over before",
    )
}

/// A lease has to outlive the time without a master: it was renewed an interval before it, at worst.
fn failover(timeout: Option<Duration>, options: &Options) -> Finding {
    let Some(timeout) = timeout else {
        let found = "this user may not see cluster-node-timeout";
        let advice = "allow this user CONFIG GET (ACL SETUSER: +config|get)";
        return Finding::unknown(FAILOVER, found, advice);
    };
    let found = format!(
        "a master that is gone is replaced after about {:?}",
        timeout + ELECTION
    );
    let (ttl, every) = (options.ttl, options.renew_every());
    if timeout + ELECTION < ttl.saturating_sub(every) {
        return Finding::fine(FAILOVER, found);
    }
    Finding::weak(
        FAILOVER,
        found,
        format!(
            "leases of {ttl:?}, renewed each {every:?}, end meanwhile: their holders lose them, and a master that is cut off \
             grants locks for {timeout:?}"
        ),
        "a longer ttl, or a smaller cluster-node-timeout",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "role:master\nconnected_slaves:2\nslave0:ip=1.1.1.1,port=1,state=online,offset=9,lag=0\n\
                       slave1:ip=1.1.1.2,port=1,state=online,offset=9,lag=3\n";

    fn found(facts: &str, leases: u64, writes: &str) -> (String, String) {
        let mut facts = Facts::of(&format!("{facts}\nmin-replicas-to-write:{writes}"));
        facts.min_replicas = leases;
        let finding = replication(&facts).unwrap();
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

    const NODES: &str = "\
        07c3 127.0.0.1:30004@31004,h slave e7d1 0 1426238317239 4 connected\n\
        67ed 127.0.0.1:30002@31002 master - 0 1426238316232 2 connected 5461-10922 [9-<-e7d1]\n\
        e7d1 127.0.0.1:30001@31001 myself,master - 0 0 1 connected 0-5460 [93->-67ed] [77-<-67ed]\n";

    #[test]
    fn only_what_the_node_itself_moves_is_on_its_way() {
        assert_eq!(on_their_way(NODES), [93, 77]);
        assert!(on_their_way("").is_empty());
    }

    #[test]
    fn slots_without_a_master_and_those_between_two_are_weak() {
        let all = Some(u64::from(SLOTS));
        for (covered, moving, verdict, words) in [
            (all, Some(vec![]), "fine", "each of 16384 slots"),
            (all, Some(vec![9, 3, 9]), "weak", "2 on their way: 3, 9"),
            (Some(16_000), Some(vec![]), "weak", "384 of 16384"),
            (None, Some(vec![]), "unknown", "may not see"),
            (all, None, "unknown", "may not see"),
        ] {
            let finding = slots(covered, moving);
            assert_eq!(finding.verdict.to_string(), verdict);
            assert!(finding.found.contains(words), "{finding:?}");
        }
    }

    #[test]
    fn failover_has_to_be_shorter_than_a_lease_that_is_not_renewed() {
        let options = |seconds| Options {
            ttl: Duration::from_secs(seconds),
            ..Options::default()
        };
        let verdict = |timeout, ttl| {
            let timeout = Some(Duration::from_millis(timeout));
            failover(timeout, &options(ttl)).verdict.to_string()
        };
        assert_eq!(verdict(15_000, 30), "fine");
        assert_eq!(verdict(15_000, 20), "weak");
        assert_eq!(verdict(1_000, 6), "fine");
        assert_eq!(failover(None, &options(30)).verdict.to_string(), "unknown");
    }
}
