use super::*;
use crate::base::name::Namespace;
use crate::base::random::{WORD, for_any};

fn keys(namespace: &str, name: &str) -> Keys {
    Keys::of(&Key::new(&Namespace::new(namespace).unwrap(), name).unwrap())
}

#[test]
fn keys_are_as_documented() {
    for (namespace, name, lock, tag) in [
        ("app", "counter", "{app:counter}", "{app:counter}"),
        ("", "counter", "counter", "{counter}"),
        ("", "{user}:1", "{user}:1", "{user}:1"),
        ("", "{user}", "{user}", "{user}:"),
        ("", "{}x", "{}x", "{{}x}"),
    ] {
        let kinds = [
            "fence",
            "queue",
            "waiters",
            "read_queue",
            "holders",
            "value",
        ];
        let others = kinds.map(|kind| format!("{tag}:{kind}"));
        let keys = keys(namespace, name);
        assert_eq!(keys.all()[0], lock);
        assert_eq!(keys.all()[1..], others);
    }
}

#[cfg(feature = "delay")]
#[test]
fn keys_of_shards_are_as_documented() {
    let key = Key::new(&Namespace::new("app").unwrap(), "mail").unwrap();
    let queue = Keys::of_tasks(&key);
    assert_eq!(queue.all()[..2], ["{app:mail}:tasks", "{app:mail}:due"]);
    let shards: Vec<_> = key.shards(2).map(|shard| Keys::of_tasks(&shard)).collect();
    let second = ["{app:mail/1/2}:shard:tasks", "{app:mail/1/2}:shard:due"];
    assert_eq!(shards[1].all()[..2], second);
    assert_ne!(slot_of(&shards[0].lock), slot_of(&shards[1].lock));
}

#[test]
fn keys_of_a_name_share_a_slot_and_are_no_other_names() {
    for_any(|random| {
        let [a, b] = [(); 2].map(|()| random.text_of("abc", 1..=2));
        let [x, y] = [(); 2].map(|()| random.text_of("a{}:", 1..=8));
        let [space, name] = [random.text_of(WORD, 1..=64), random.text(1..=99)];
        for keys in [keys(&a, &x), keys(&space, &name)] {
            let slot = |key| slot_of(key);
            assert!(keys.all().iter().all(|key| slot(key) == slot(&keys.lock)));
        }
        let (one, two) = (keys(&a, &x), keys(&b, &y));
        assert!((&a, &x) == (&b, &y) || one.all().iter().all(|key| !two.all().contains(key)));
        // Those of the empty namespace are plain names, of which others may have what stands beside them.
        let [x, y] = [x, y].map(|name| name.replace(':', ""));
        if x != y && !x.is_empty() && !y.is_empty() {
            let (one, two) = (keys("", &x), keys("", &y));
            assert_ne!(&one.lock, &two.lock);
            let beside = &one.all()[1..];
            assert!(beside.iter().all(|key| !two.all().contains(key)), "{x} {y}");
        }
    });
}

#[test]
fn channels_are_as_documented() {
    for (namespace, tag, own, broken) in [
        ("app", None, "app:inbox:1", "app:inbox:broken"),
        ("", None, ":inbox:1", ":inbox:broken"),
        (
            "a.b",
            Some("x1"),
            "a.b:inbox:1:{x1}",
            "a.b:inbox:broken:{x1}",
        ),
        ("", Some("x1"), ":inbox:1:{x1}", ":inbox:broken:{x1}"),
    ] {
        assert_eq!(channel(namespace, "1", tag), own);
        assert_eq!(broken_channel(namespace, tag), broken);
        assert_eq!(broken_channel_beside(own), broken);
        assert!(is_of_broken(broken) && !is_of_broken(own));
    }
}

#[test]
fn slots_are_those_of_the_specification() {
    assert_eq!(crc16(b"123456789"), 0x31c3);
    assert_eq!(crc16(b""), 0);
    // As Redis 7.0 answers to CLUSTER KEYSLOT.
    for (key, slot) in [
        ("foo", 12182),
        ("bar", 5061),
        ("{user1000}.following", 3443),
        ("{user1000}.followers", 3443),
        ("foo{}{bar}", 8363),
        ("foo{{bar}}zap", 4015),
        ("foo{bar}{zap}", 5061),
        ("{open", 7674),
        ("}{", 12793),
        ("ü{ß}", 12625),
    ] {
        assert_eq!(slot_of(key), slot, "{key}");
    }
}

#[test]
fn every_slot_has_a_tag_of_its_own() {
    for slot in 0..SLOTS {
        let tag = tag_of(slot);
        assert_eq!(tag.len(), LENGTH);
        assert!(tag.chars().all(|c| c.is_ascii_alphanumeric()), "{tag}");
        assert_eq!(slot_of(&format!("app:inbox:{{{tag}}}")), slot);
    }
}
