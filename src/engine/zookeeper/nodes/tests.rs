use super::*;
use crate::base::name::Namespace;
use crate::base::random::for_any;

const ONE: &str = "01234567-89ab-4def-8123-456789abcdef";

fn path(namespace: &str, name: &str) -> String {
    let namespace = Namespace::new(namespace).expect("it is valid");
    name_path("", &Key::new(&namespace, name).expect("it is valid"))
}

#[test]
fn names_of_all_kinds_have_nodes_of_their_own() {
    for (namespace, name, expected) in [
        ("app", "a", "/app/a"),
        ("", "a", "/%/a"),
        ("..", ".a.b", "/%2E./%2Ea.b"),
        ("zookeeper", "zookeeper", "/%7Aookeeper/zookeeper"),
        ("a", "b/c %\u{1}Ü", "/a/b%2Fc%20%25%01%C3%9C"),
    ] {
        assert_eq!(path(namespace, name), expected);
    }
}

#[test]
fn name_is_read_back_from_its_node() {
    for_any(|random| {
        let name = random.text(1..=60);
        let node = encoded(&name);
        assert!(
            node.bytes()
                .all(|byte| byte.is_ascii_graphic() && byte != b'/')
        );
        assert!(!node.starts_with('.'), "{node}");
        assert_eq!(decoded(&node), Some(name));
    });
    for other in ["%", "%4", "%41", "a b", "%2e", "%FF", ".", "%é"] {
        assert_eq!(decoded(other), None, "{other}");
    }
}

#[test]
fn entries_are_read_back_from_their_nodes() {
    for (mode, tag) in [
        (Mode::Exclusive, "x"),
        (Mode::Shared, "r"),
        (Mode::Permits { count: 2, of: 5 }, "p2of5"),
    ] {
        for number in [0, 7, i32::MAX, i32::MIN] {
            let node = format!("{}{number:010}", unnumbered(mode, ONE));
            assert!(node.starts_with(tag));
            let entry = entry_of(&node).expect("it is one");
            assert_eq!((entry.mode, entry.place), (mode, place_of(number)));
            assert_eq!(entry.owner(), Some(&Owner::from_text(ONE)));
            let kept = entry_of(&kept(&node)).expect("it is one");
            assert_eq!((kept.mode, kept.place), (mode, entry.place));
            assert!(kept.is_kept());
        }
    }
    let others = [MARKER, VALUE, "x", "x-1-2", "y-", "b-", &broken(ONE)];
    for other in others.map(String::from) {
        assert_eq!(entry_of(&other), None, "{other}");
    }
    assert!(place_of(i32::MIN) == 0 && place_of(-1) + 1 == place_of(0));
}

/// By what it sorts the nodes of a lock.
fn as_curator_sorts(node: &str) -> &str {
    let place = node.rfind("lock-");
    place.map_or(node, |place| &node[place + "lock-".len()..])
}

#[test]
fn curators_nodes_stand_in_the_same_line() {
    let curators = format!("_c_{ONE}-lock-0000000012");
    let entry = entry_of(&curators).expect("it is one");
    assert_eq!((entry.who, entry.mode), (Who::Stranger, Mode::Exclusive));
    assert_eq!(entry.place, place_of(12));
    for mode in [Mode::Exclusive, Mode::Permits { count: 2, of: 5 }] {
        let own = format!("{}0000000011", unnumbered(mode, ONE));
        for node in [&own, &kept(&own)] {
            assert_eq!(as_curator_sorts(node), "0000000011");
        }
    }
    for node in [MARKER, VALUE, &broken(ONE), &clock()] {
        assert!(
            as_curator_sorts(node) > as_curator_sorts(&curators),
            "{node}"
        );
    }
}

#[test]
fn place_is_kept_for_no_less_than_was_said() {
    let stat = Stat {
        ctime: 1_000_000,
        ..Stat::default()
    };
    let content = kept_content(Duration::from_micros(99_001));
    assert_eq!(content, b"100");
    for (now, millis) in [
        (1_000_000, 100),
        (999_000, 100),
        (1_000_099, 1),
        (1_000_100, 0),
        (i64::MAX, 0),
    ] {
        let expected = Duration::from_millis(millis);
        assert_eq!(left(&content, &stat, now), expected, "{now}");
    }
    assert_eq!(left(b"x", &stat, 1_000_000), Duration::ZERO);
    let longest = crate::base::limits::LONGEST_KEEP;
    assert_eq!(left(&kept_content(longest), &Stat::default(), 0), longest);
}
