//! Whether another server may take this one's place.

use super::facts::{ALLOW_INFO, Facts};
use crate::base::diagnosis::Finding;

const CHECK: &str = "replication";

pub(super) fn replication(facts: &Facts) -> Finding {
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
    if replicas == 0 {
        let found = "a primary without replicas: there is no failover that could lose locks";
        return Finding::fine(CHECK, found);
    }
    let count = match replicas {
        1 => "1 replica".to_owned(),
        many => format!("{many} replicas"),
    };
    let lag = slowest(facts).map_or(String::new(), |lag| format!(", the slowest {lag} s behind"));
    Finding::weak(
        CHECK,
        format!("a primary with {count}{lag}"),
        "replication is asynchronous: a failover frees the newest locks, although their holders live, which find out at \
         their next renewal; fencing tokens go on increasing, by the servers' clocks",
        "keep those clocks together, and have storage check the fencing token",
    )
}

/// The lag of the replica that is furthest behind, in seconds: `slave0:ip=..,port=..,state=online,offset=..,lag=1`.
fn slowest(facts: &Facts) -> Option<u64> {
    let replicas = (0..).map_while(|number| facts.get(&format!("slave{number}")));
    let lag = |replica: &str| {
        let mut fields = replica.split(',');
        fields.find_map(|field| field.strip_prefix("lag=")?.parse().ok())
    };
    replicas.filter_map(lag).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slowest_replica_is_told() {
        let facts = "role:master\nconnected_slaves:2\nslave0:ip=1.1.1.1,port=1,state=online,offset=9,lag=0\n\
                     slave1:ip=1.1.1.2,port=1,state=online,offset=9,lag=3\n";
        let finding = replication(&Facts::of(facts));
        assert_eq!(
            finding.found,
            "a primary with 2 replicas, the slowest 3 s behind"
        );
        assert_eq!(finding.verdict.to_string(), "weak");
        assert!(!format!("{finding:?}").contains("1.1.1"));
    }

    #[test]
    fn single_server_has_nothing_to_lose_by_a_failover() {
        let facts = Facts::of("role:master\nconnected_slaves:0");
        assert_eq!(replication(&facts).verdict.to_string(), "fine");
        assert_eq!(
            replication(&Facts::default()).verdict.to_string(),
            "unknown"
        );
    }
}
