use super::*;

/// A node whose id is as its port.
fn at(host: &str, port: i64) -> Value {
    let host = match host {
        "nil" => Value::Nil,
        host => bulk(host),
    };
    let id = bulk(&format!("id{port}"));
    Value::Array(vec![host, Value::Int(port), id, Value::Array(Vec::new())])
}

fn bulk(text: &str) -> Value {
    Value::BulkString(text.into())
}

fn part(first: i64, last: i64, nodes: Vec<Value>) -> Value {
    let slots = vec![Value::Int(first), Value::Int(last)];
    Value::Array([slots, nodes].concat())
}

fn answer(first: i64, last: i64, nodes: Vec<Value>) -> Option<Range> {
    range(&part(first, last, nodes), "asked", &|_| 0)
}

fn info(state: &str, epoch: u64) -> Value {
    bulk(&format!(
        "cluster_state:{state}\r\ncluster_current_epoch:{epoch}\r\ncluster_my_epoch:2\r\n"
    ))
}

fn denied() -> Value {
    let line = b"-NOPERM this user has no permissions\r\n";
    ::redis::parse_redis_value(line).unwrap()
}

#[test]
fn node_without_a_host_is_where_the_one_asked_is() {
    for (host, found) in [("10.0.0.1", "10.0.0.1"), ("", "asked"), ("nil", "asked")] {
        let range = answer(0, 5, vec![at(host, 7000), at("b", 7001)]).unwrap();
        assert_eq!(range.master.to_string(), format!("{found}:7000"));
        assert_eq!(range.replicas[0].to_string(), "b:7001");
    }
}

#[test]
fn what_no_cluster_answers_is_no_range() {
    assert_eq!(answer(0, 5, vec![at("?", 7000)]), None);
    assert_eq!(answer(0, 5, vec![at("a", 0)]), None);
    assert_eq!(answer(0, 5, vec![at("a", 65_536)]), None);
    assert_eq!(answer(0, 16_384, vec![at("a", 7000)]), None);
    assert_eq!(answer(6, 5, vec![at("a", 7000)]), None);
    assert_eq!(answer(-1, 5, vec![at("a", 7000)]), None);
    assert_eq!(answer(0, 5, vec![]), None);
    assert_eq!(answer(0, 5, vec![Value::Int(1)]), None);
    assert_eq!(range(&Value::Nil, "asked", &|_| 0), None);
}

#[test]
fn epoch_is_that_of_the_claim_and_a_replica_has_none() {
    const NODES: &str = "\
        id1 a:1@9 myself,master - 0 0 3 connected 0-5 [4->-id3] [8-<-id4]\n\
        id2 a:2@9 slave id3 0 0 8 connected\n\
        id3 a:3@9 master - 0 0 8 connected\n\
        id4 a:4@9 master,fail - 0 0 2 disconnected 8\n";
    let slots = [(0, 5, 1), (6, 7, 2), (8, 8, 4)];
    let slots = slots.map(|(first, last, port)| part(first, last, vec![at("b", port)]));
    let answers = vec![info("fail", 12), bulk(NODES), Value::Array(slots.into())];
    let view = View::of(answers, "asked").unwrap();
    let epochs: Vec<_> = view.ranges.iter().map(|range| range.epoch).collect();
    assert_eq!(
        (epochs, view.newest(), view.is_up),
        (vec![3, 0, 2], 3, false)
    );
    // The one that may answer is where CLUSTER SLOTS has it, if it has slots.
    let masters: Vec<_> = view.masters.iter().map(HostPort::to_string).collect();
    assert_eq!(masters, ["b:1", "a:3"]);
    assert_eq!(view.coming, [8]);
}

#[test]
fn without_the_right_to_see_epochs_the_clusters_counts_unless_it_is_down() {
    for (info, epoch, up) in [
        (info("ok", 7), 7, true),
        (info("fail", 12), 0, false),
        (denied(), 0, true),
    ] {
        let slots = Value::Array(vec![part(0, 5, vec![at("a", 1)])]);
        let view = View::of(vec![info, denied(), slots], "asked").unwrap();
        assert_eq!((view.newest(), view.is_up), (epoch, up));
        assert!(view.masters.is_empty());
    }
    let none = View::of(vec![info("ok", 7), denied(), denied()], "asked");
    assert!(matches!(none, Err(Failure::Denied(_))), "{none:?}");
}

/// As Redis 7.0 answers, and in part Valkey 9.
const NODES: &str = "\
    a1 10.0.0.1:7000@17000,one.example myself,master - 0 0 7 connected 0-5 9 [93->-b2] [77-<-b2]\n\
    b2 10.0.0.2:7001@17001,,shard-id=5f slave a1 0 1 7 connected\n\
    c3 :7002@17002 master,fail - 0 1 3 disconnected 6-8\n\
    d4 :0@0 master,noaddr - 0 1 0 disconnected\n\
    what is this\n";

#[test]
fn lines_say_who_is_what_and_where() {
    let lines: Vec<_> = node_lines(NODES).collect();
    let epochs: Vec<_> = lines.iter().map(NodeLine::config_epoch).collect();
    assert_eq!(epochs, [Some(7), None, Some(3), Some(0)]);
    let live: Vec<_> = lines.iter().map(NodeLine::is_live_master).collect();
    assert_eq!(live, [true, false, false, false]);
    let at = |line: usize, by_name| lines[line].at(by_name, "asked").map(|at| at.to_string());
    assert_eq!(at(0, false).as_deref(), Some("10.0.0.1:7000"));
    assert_eq!(at(0, true).as_deref(), Some("one.example:7000"));
    assert_eq!(at(1, true).as_deref(), Some("10.0.0.2:7001"));
    assert_eq!(at(2, false).as_deref(), Some("asked:7002"));
    assert_eq!(at(3, false), None);
}
