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
    assert!(text.contains("of which 1 must have each lease") && text.contains("min_replicas=2"));
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
