use super::*;

/// What is found in facts, by a check that finds something.
fn verdict(check: fn(&Facts) -> Option<Finding>, facts: &str) -> String {
    check(&Facts::of(facts)).unwrap().verdict.to_string()
}

#[test]
fn old_and_foreign_servers_are_told_from_known_ones() {
    for (name, number, expected) in [
        ("redis", "6.2.0", "fine"),
        ("redis", "10.0.0", "fine"),
        ("valkey", "8.1.0-rc1", "fine"),
        ("redis", "6.0.16", "weak"),
        ("redis", "x", "weak"),
        ("dragonfly", "7.4.0", "unknown"),
    ] {
        let found = verdict(version, &format!("server:{name}\nversion:{number}"));
        assert_eq!(found, expected, "{name} {number}");
    }
    assert_eq!(verdict(version, ""), "unknown");
    // Valkey's own version counts.
    let facts = Facts::of("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1");
    assert_eq!(version(&facts).unwrap().found, "valkey 8.0.1");
}

#[test]
fn memory_that_may_run_out_and_connections_that_do_are_weak() {
    for (policy, limit, expected) in [
        ("noeviction", 1 << 30, "fine"),
        ("allkeys-lru", 0, "fine"),
        ("allkeys-lru", 1 << 30, "weak"),
        ("volatile-ttl", 1 << 30, "weak"),
    ] {
        let facts = format!("maxmemory:{limit}\nmaxmemory_policy:{policy}");
        assert_eq!(verdict(eviction, &facts), expected, "{policy} {limit}");
    }
    assert_eq!(verdict(eviction, ""), "unknown");
    for (used, expected) in [(899, "fine"), (900, "weak")] {
        let memory_facts = format!("maxmemory:1000\nused_memory:{used}");
        assert_eq!(verdict(memory, &memory_facts), expected, "{used}");
        let clients_facts = format!("maxclients:1000\nconnected_clients:{used}");
        assert_eq!(verdict(clients, &clients_facts), expected, "{used}");
    }
    assert!(memory(&Facts::of("maxmemory:0\nused_memory:5")).is_none());
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
fn replicas_are_weak_but_where_all_of_them_have_each_lease() {
    let one_syncing = TWO.replace(
        "state=online,offset=9,lag=3",
        "state=wait_bgsave,offset=0,lag=3",
    );
    let one_slow = format!("{TWO}min_slaves_good_slaves:1\n");
    let none = "role:master\nconnected_slaves:0";
    let nearest = "a primary with 2 replicas, the slowest 3 s behind";
    for (facts, leases, writes, expected, words) in [
        (TWO, 0, "0", "weak", [nearest, "min_replicas=2"]),
        (TWO, 0, "0", "weak", ["min-replicas-to-write 1", ""]),
        (TWO, 2, "1", "fine", ["", ""]),
        (
            TWO,
            1,
            "1",
            "weak",
            ["1 must confirm each", "min_replicas=2"],
        ),
        (TWO, 3, "0", "weak", ["min_replicas is 3", STARVED]),
        (&one_syncing, 2, "0", "weak", ["1 are connected", ""]),
        (&one_slow, 0, "2", "weak", ["to-write is 2", ""]),
        (none, 1, "0", "weak", [STARVED, ""]),
        (none, 0, "0", "fine", ["", ""]),
        ("", 0, "0", "unknown", ["", ""]),
    ] {
        let (verdict, text) = found(facts, leases, writes);
        assert_eq!(verdict, expected, "{text}");
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    }
}
