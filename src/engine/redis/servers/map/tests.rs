use super::super::view::Range;
use super::*;
use crate::engine::redis::settings_of;

fn at(port: u16) -> HostPort {
    HostPort {
        host: "a".into(),
        port,
    }
}

fn map() -> Map {
    Map::new(settings_of("redis+cluster://a:1,a:9").0)
}

/// By the seeds at 1 and 9.
fn take_over(map: &mut Map, views: &[View], asked: usize, began: Instant) -> Vec<Arc<Server>> {
    map.take_over((views, asked), &[at(1), at(9)], began)
}

fn hear(map: &mut Map, views: &[View], asked: usize) -> Vec<Arc<Server>> {
    take_over(map, views, asked, Instant::now())
}

fn view(ranges: &[(u16, u16, u16, &[u16])]) -> [View; 1] {
    let range = |(first, last, master, replicas): &(u16, u16, u16, &[u16])| Range {
        first: *first,
        last: *last,
        master: at(*master),
        epoch: 1,
        replicas: replicas.iter().copied().map(at).collect(),
    };
    [View {
        is_up: true,
        ranges: ranges.iter().map(range).collect(),
        ..View::default()
    }]
}

/// What a node says to which one slot is at that port, by a claim of that epoch.
fn claim((port, epoch): (u16, u64), is_up: bool) -> View {
    let [mut view] = view(&[(5, 5, port, &[])]);
    view.ranges[0].epoch = epoch;
    View { is_up, ..view }
}

/// Where a slot is that was at 1 by a claim of epoch 8, in a cluster of five nodes, and of a seed.
fn after(views: &[View]) -> Vec<u16> {
    let (mut map, [mut before]) = (map(), view(&[(5, 5, 1, &[2, 3, 4, 5])]));
    before.ranges[0].epoch = 8;
    hear(&mut map, &[before], 1);
    hear(&mut map, views, 6);
    let master = map.master(5).cloned();
    ports(master.as_slice())
}

fn ports(nodes: &[Arc<Server>]) -> Vec<u16> {
    let port = |node: &Arc<Server>| (1..10).find(|port| is_at(node, &at(*port))).unwrap();
    nodes.iter().map(port).collect()
}

#[test]
fn highest_claim_is_believed_whoever_answers_first() {
    let (old, new) = (claim((1, 8), true), claim((2, 9), false));
    assert_eq!(after(&[claim((2, 9), true)]), [2]);
    assert_eq!(after(&[claim((1, 8), true), claim((2, 9), false)]), [2]);
    assert_eq!(after(&[new, old]), [2]);
    // Nodes that were cut off answer first, and alone.
    assert_eq!(after(&[claim((2, 7), true), claim((2, 7), true)]), [1]);
    // Without epochs, the node to which the cluster is down isn't believed.
    let mut map = map();
    hear(&mut map, &[claim((1, 0), false), claim((2, 0), true)], 2);
    assert_eq!(ports(&map.masters()), [2]);
    hear(&mut map, &[claim((1, 0), true), claim((2, 0), false)], 2);
    assert_eq!(ports(&map.masters()), [1]);
}

#[test]
fn slots_of_ranges_that_overlap_are_of_the_highest_claim() {
    let [low] = view(&[(10, 100, 1, &[]), (200, 200, 1, &[])]);
    let [mut high] = view(&[(50, 150, 2, &[])]);
    high.ranges[0].epoch = 2;
    for views in [[low.clone(), high.clone()], [high, low]] {
        let mut map = map();
        hear(&mut map, &views, 2);
        let owner = |slot| ports(map.master(slot).cloned().as_slice());
        let mut free = [9, 151, 199, 201].into_iter();
        assert!(free.all(|slot| map.master(slot).is_none()));
        assert_eq!([10, 49, 200].map(owner).concat(), [1, 1, 1]);
        assert_eq!([50, 100, 150].map(owner).concat(), [2, 2, 2]);
    }
}

#[test]
fn slot_that_moves_alone_leaves_its_neighbours() {
    let (mut map, views) = (map(), view(&[(0, SLOTS - 1, 1, &[])]));
    hear(&mut map, &views, 1);
    for slot in [0, 7, SLOTS - 1] {
        map.set(slot, &at(2));
    }
    let owner = |slot| ports(map.master(slot).cloned().as_slice());
    assert_eq!([0, 7, SLOTS - 1].map(owner).concat(), [2, 2, 2]);
    assert_eq!([1, 6, 8, SLOTS - 2].map(owner).concat(), [1, 1, 1, 1]);
    hear(&mut map, &views, 1);
    assert_eq!((ports(&map.masters()), map.runs.len()), (vec![1], 1));
}

/// Of a set behind sentinels, whose master was at 1 since failover 8 as all three said that long ago.
fn set(ago: Duration) -> Map {
    let mut map = Map::new(settings_of("redis+sentinel://a:1,a:2,a:3/mymaster").0);
    let began = Instant::now().checked_sub(ago).unwrap();
    take_over(&mut map, &named(&[(1, 8); 3]), 3, began);
    map
}

/// What sentinels say of a master at that port and the epoch of its failover.
fn named(views: &[(u16, u64)]) -> Vec<View> {
    let view = |(port, epoch): &(u16, u64)| View::of_master(at(*port), *epoch);
    views.iter().map(view).collect()
}

#[test]
fn sentinels_that_are_behind_are_not_believed() {
    let soon = Duration::from_secs(1);
    let is_newer = |port, epoch| set(soon).is_newer(&named(&[(port, epoch)])[0]);
    assert_eq!(
        (is_newer(2, 9), is_newer(2, 8), is_newer(2, 7)),
        (true, false, false)
    );
    let after = |mut map: Map, views: &[(u16, u64)]| {
        let found = map.looked_up();
        hear(&mut map, &named(views), 3);
        (ports(&map.masters())[0], map.looked_up() > found)
    };
    assert_eq!(after(set(soon), &[(2, 7), (2, 9), (2, 7)]), (2, true));
    assert_eq!(after(set(soon), &[(2, 7)]), (1, false));
    assert_eq!(after(set(soon), &[(2, 7), (2, 7)]), (1, false));
    // They were set up anew.
    assert_eq!(after(set(soon), &[(2, 7), (2, 7), (2, 7)]), (2, true));
    assert_eq!(after(set(SPREAD), &[(2, 7), (2, 7)]), (2, true));
    assert_eq!(after(set(2 * SPREAD), &[(2, 7)]), (1, false));
    let mut failed = set(soon);
    let master = failed.master(0).unwrap().clone();
    failed.suspect(&master);
    assert_eq!(after(failed, &[(2, 7), (2, 7)]), (2, true));
}
