//! Slots that move while locks in them are held, waited for and renewed.

use std::thread;
use std::time::Duration;

use crosslock::{Error, Locker};
use support::{slot_of, within};

use super::{LONG, PATIENCE, cause, held, held_soon, key, millis, name_on, open, slot, start};

#[test]
fn held_lock_goes_on_at_the_node_that_its_slot_moved_to() {
    let cluster = start();
    let locker = open(&cluster);
    let name = name_on(&cluster, 0, 0);
    let guard = held(&locker, &name);
    let token = guard.fencing_token();
    cluster.move_slot(slot(&name), 1);
    guard.verify().expect("it is held");
    assert!(locker.try_lock(&name).expect("try_lock").is_none());
    assert!(open(&cluster).try_lock(&name).expect("try_lock").is_none());
    assert!(guard.unlock().is_ok());
    assert!(!cluster.node(1).query::<bool>(&["EXISTS", &key(&name)]));
    // It knows the scripts by now, or is given them anew.
    cluster.node(1).query::<()>(&["SCRIPT", "FLUSH"]);
    assert!(held(&locker, &name).fencing_token() > token);
}

#[test]
fn free_lock_is_asked_for_at_the_pace_of_retries_until_its_slot_has_moved() {
    let cluster = start();
    let locker = open(&cluster);
    let name = name_on(&cluster, 0, 0);
    let migration = cluster.migration(slot(&name), 1);
    migration.import();
    migration.migrate();
    // The name was never used: the old node sends to the new one, which misses keys, too.
    let refused = || cluster.node(1).rejected_calls("evalsha");
    let (before, limit) = (refused(), Duration::from_secs(1));
    let failed = within(limit, || locker.try_lock_for(&name, limit));
    let told = cause(&failed.expect_err("no node has all keys"));
    assert!(told.contains("TRYAGAIN"), "{told}");
    let asked = refused() - before;
    assert!((5..200).contains(&asked), "{asked} questions in 1 s");
    migration.finish();
    drop(held_soon(&locker, &name));
}

#[test]
fn leases_are_renewed_for_as_long_as_their_slot_moves() {
    let cluster = start();
    let locker = Locker::builder(&cluster.url()).ttl(Duration::from_secs(4));
    let locker = locker.build().expect("open");
    // As a slot with many other keys does for seconds.
    let on_its_way = |number: usize| name_on(&cluster, 0, number);
    let permits = locker.semaphore(&on_its_way(1), 2).expect("a semaphore");
    let guards = [
        held(&locker, &on_its_way(0)),
        permits.acquire().expect("acquire"),
        locker.read(&on_its_way(2)).expect("read"),
    ];
    let migrations: Vec<_> = (0..3)
        .map(|number| cluster.migration(slot(&on_its_way(number)), 1))
        .collect();
    let is_held = |when: &str| {
        thread::sleep(Duration::from_secs(6));
        for guard in &guards {
            let lost = guard.lost().try_recv();
            assert!(lost.is_err(), "{when}: {}: {lost:?}", guard.name());
            guard.verify().expect(when);
        }
    };
    for migration in &migrations {
        migration.import();
        migration.migrate();
    }
    is_held("before they move");
    migrations
        .iter()
        .for_each(|migration| migration.move_keys());
    is_held("behind ASKING");
    migrations.iter().for_each(|migration| migration.finish());
    for guard in guards {
        guard.unlock().expect("it was held");
    }
}

#[test]
fn migration_left_half_done_ends_calls_in_time_until_it_is_mended() {
    let cluster = start();
    let locker = Locker::builder(&cluster.url()).ttl(Duration::from_secs(2));
    let locker = locker.build().unwrap();
    let name = name_on(&cluster, 0, 0);
    let guard = held(&locker, &name);
    let token = guard.fencing_token();
    let migration = cluster.migration(slot(&name), 1);
    migration.import();
    migration.migrate();
    // Some of its keys are here, and some there.
    migration.move_key(&key(&name));
    for limit in [0, 100, 700] {
        let limit = millis(limit);
        let got = within(limit, || locker.try_lock_for(&name, limit));
        assert!(!matches!(got, Ok(Some(_))), "{got:?}");
    }
    // It can't be renewed.
    let lost = guard.lost();
    lost.recv_timeout(PATIENCE).expect("it is lost by its ttl");
    within(millis(500), || drop(guard));
    cluster.fix();
    assert!(held_soon(&locker, &name).fencing_token() > token);
}

#[test]
fn reshard_of_many_slots_loses_no_lock() {
    let cluster = start();
    let locker = open(&cluster);
    let names: Vec<_> = (0..20).map(|number| name_on(&cluster, 0, number)).collect();
    let guards: Vec<_> = names.iter().map(|name| held(&locker, name)).collect();
    thread::scope(|scope| {
        let resharding = scope.spawn(|| cluster.reshard(0, 2, 300));
        while !resharding.is_finished() {
            for guard in &guards {
                guard.verify().expect("it is held");
            }
        }
    });
    for guard in guards {
        guard.unlock().expect("it was held");
    }
    for name in &names {
        drop(held(&locker, name));
    }
}

#[test]
fn nodes_that_send_to_each_other_end_a_call() {
    let cluster = start();
    let locker = open(&cluster);
    let name = name_on(&cluster, 0, 0);
    let slot = slot(&name).to_string();
    // Neither has it: each believes the other.
    for (node, other) in [(0, 1), (1, 0), (2, 1)] {
        let id = cluster.id(other);
        cluster
            .node(node)
            .query::<()>(&["CLUSTER", "SETSLOT", &slot, "NODE", &id]);
    }
    let failed = within(LONG / 10, || locker.try_lock(&name));
    let told = cause(&failed.expect_err("nobody has it"));
    assert!(told.contains("from one to the other"), "{told}");
    // Other slots of the same nodes are as before.
    drop(held(&locker, &name_on(&cluster, 0, 1)));
    drop(held(&locker, &name_on(&cluster, 1, 0)));
}

#[test]
fn key_that_is_there_already_is_asked_for_there_this_once() {
    let cluster = start();
    let locker = open(&cluster).with_namespace("").expect("a namespace");
    let name = (0..).map(|number| format!("name-{number}"));
    let mut here = name.filter(|name| cluster.slots(0).contains(&slot_of(name)));
    let name = here.next().expect("there is one");
    let guard = held(&locker, &name);
    let migration = cluster.migration(slot_of(&name), 1);
    migration.import();
    migration.migrate();
    migration.move_key(&name);
    // Its counter is at the old node still, so neither may be able to say whether its token is the last.
    let may_be_held = || matches!(guard.verify(), Ok(()) | Err(Error::Unavailable { .. }));
    assert!(may_be_held());
    // A script of one key, which the new node doesn't know: its answer to that uses ASKING up.
    cluster.node(1).query::<()>(&["SCRIPT", "FLUSH"]);
    let listed: Vec<_> = locker.list("").expect("list").collect();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0].as_ref().expect("a name"), &name);
    // The slot is still the old node's: other names of it are asked for there.
    let before = cluster.node(1).rejected_calls("evalsha");
    assert!(may_be_held());
    assert_eq!(cluster.node(1).rejected_calls("evalsha"), before);
    migration.move_keys();
    migration.finish();
    guard.unlock().expect("it was held");
}
