//! What nodes are together: whether each slot has one, whether slots are on their way, how long a failover takes.

use std::time::Duration;

use super::facts::Facts;
use super::probe::Probe;
use crate::base::diagnosis::Finding;
use crate::base::error::Result;
use crate::base::options::Options;
use crate::engine::redis::servers::node_lines::{NodeLine, node_lines};
use crate::engine::redis::servers::slots::SLOTS;

const COVERAGE: &str = "slots";
const FAILOVER: &str = "failover";

/// What an election takes, once a master counts as failed.
const ELECTION: Duration = Duration::from_secs(1);

/// Of the masters of a cluster.
pub(super) fn cluster(masters: &[Probe<'_>], options: &Options) -> Result<Vec<Finding>> {
    let (mut moving, mut longest) = (Vec::new(), Some(Duration::ZERO));
    let mut covered = None;
    for master in masters {
        let [mut info, mut nodes] = [(); 2].map(|()| ::redis::cmd("CLUSTER"));
        info.arg("INFO");
        nodes.arg("NODES");
        let info = master.text(&info)?.map(|text| Facts::of(&text));
        covered = covered.max(info.and_then(|info| info.number("cluster_slots_ok")));
        let nodes = master.text(&nodes)?;
        moving.push(nodes.as_deref().map(on_their_way));
        let timeout = master.setting("cluster-node-timeout")?;
        let timeout = timeout.and_then(|millis| millis.parse().ok());
        longest = longest
            .zip(timeout.map(Duration::from_millis))
            .map(|(one, other)| one.max(other));
    }
    let moving: Option<Vec<_>> = moving.into_iter().collect();
    let moving = moving.map(|each| each.concat());
    Ok(vec![slots(covered, moving), failover(longest, options)])
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
