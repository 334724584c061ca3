//! Names on several masters, all or none.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use crosslock::{CancelToken, Error, Locker};
use support::puppet::Puppet;
use support::scripts::{ACQUIRE, digest};
use support::{Cluster, Setup, wait_until, within};

use super::{LONG, PATIENCE, held, held_soon, key, millis, name_on, open, shared, slot, start};

/// A name on each master, in the order of their slots: others each time.
pub(super) fn names(cluster: &Cluster) -> [String; 3] {
    static NEXT: AtomicUsize = AtomicUsize::new(10);
    let number = NEXT.fetch_add(1, SeqCst);
    [0, 1, 2].map(|node| name_on(cluster, node, number))
}

fn is_free(locker: &Locker, name: &str) -> bool {
    locker.try_lock(name).expect("try_lock").is_some()
}

/// Whether nobody has the name and nobody waits for it.
pub(super) fn is_left_alone(locker: &Locker, name: &str) -> bool {
    let seen = locker.inspect(name).expect("inspect");
    seen.holders.is_empty() && seen.waiters.is_empty()
}

#[track_caller]
pub(super) fn wait_for_waiter(locker: &Locker, name: &str) {
    wait_until("a waiter", PATIENCE, || {
        !locker.inspect(name).expect("inspect").waiters.is_empty()
    });
}

/// What one thread does: it takes the names and looks whether it is alone there, with a token above all earlier ones.
fn work(locker: &Locker, names: &[&str], last: &HashMap<String, (Mutex<()>, AtomicU64)>) {
    let guard = locker.lock_all(names).expect("lock_all");
    let inside: Vec<_> = names
        .iter()
        .map(|name| last[*name].0.try_lock().expect("nobody else is inside"))
        .collect();
    for name in names {
        let before = last[*name].1.swap(guard.fencing_token(), SeqCst);
        assert!(before < guard.fencing_token(), "{name}");
    }
    drop(inside);
    // A master that hands over lets commands wait, for longer than a release may: it is tried again then.
    let released = guard.unlock();
    let is_late = matches!(released, Err(Error::Unavailable { .. }));
    assert!(released.is_ok() || is_late, "{released:?}");
}

/// Threads take some of the names each, in another order each time, while `meanwhile` happens.
fn cross(cluster: &Cluster, names: &[String], rounds: usize, meanwhile: impl FnOnce()) {
    let last: HashMap<_, _> = names
        .iter()
        .map(|name| (name.clone(), (Mutex::new(()), AtomicU64::new(0))))
        .collect();
    let (done, watch) = (AtomicU64::new(0), Instant::now());
    thread::scope(|scope| {
        for worker in 0..5 {
            let (last, done) = (&last, &done);
            scope.spawn(move || {
                // Each is as a process of its own.
                let locker = open(cluster);
                for round in 0..rounds {
                    let first = (worker * 7 + round) % names.len();
                    let count = if worker == 4 { 1 } else { 2 + round % 3 };
                    let wanted = (0..count).map(|n| &*names[(first + n * 5) % names.len()]);
                    work(&locker, &wanted.collect::<Vec<_>>(), last);
                    done.fetch_add(1, SeqCst);
                }
            });
        }
        meanwhile();
    });
    println!("{} in {:?}", done.load(SeqCst), watch.elapsed());
    let locker = open(cluster);
    wait_until("all to be free", PATIENCE, || {
        names.iter().all(|name| is_left_alone(&locker, name))
    });
}

#[test]
fn crossing_calls_go_on_while_slots_move_and_masters_hand_over() {
    let cluster = start();
    let names = [(); 2].map(|()| names(&cluster)).concat();
    cross(&cluster, &names, 60, || {
        for (number, name) in names.iter().enumerate() {
            cluster.move_slot(slot(name), (number + 1) % 3);
        }
        cluster.failover(4);
        cluster.move_slot(slot(&names[0]), 0);
    });
}

/// Has a master give tokens that are far above those of the others, and returns the least of them.
fn put_ahead(cluster: &Cluster, node: usize, name: &str) -> u64 {
    let locker = open(cluster);
    let ahead = held(&locker, name).fencing_token() + 4_000_000_000;
    let (counter, text) = (format!("{}:fence", key(name)), (ahead + 1).to_string());
    cluster.node(node).query::<()>(&["SET", &counter, &text]);
    ahead
}

#[test]
fn token_is_above_those_of_a_master_that_is_ahead_and_is_so_everywhere() {
    let cluster = shared();
    let short = Locker::builder(&cluster.url())
        .ttl(millis(300))
        .renew(false);
    let (locker, short) = (open(&cluster), short.build().expect("open"));
    let [a, b, c] = &names(&cluster);
    let ahead = put_ahead(&cluster, 1, b);
    // It isn't released: that would tell of its token.
    let lost = short.lock_all(&[a, b, c]).expect("lock_all");
    let token = lost.fencing_token();
    assert!(token > ahead && !lost.was_abandoned());
    std::mem::forget(lost);
    for name in [a, b, c] {
        let next = held_soon(&locker, name);
        assert!(
            next.fencing_token() > token && next.was_abandoned(),
            "{name}"
        );
    }
}

#[test]
fn abandonment_on_one_master_is_told_of_all() {
    let cluster = shared();
    let short = Locker::builder(&cluster.url())
        .ttl(millis(1_000))
        .renew(false);
    let locker = open(&cluster);
    let [a, b, c] = &names(&cluster);
    std::mem::forget(held(&short.build().expect("open"), c));
    let all = locker.lock_all(&[a, b, c]).expect("lock_all");
    assert!(all.was_abandoned() && all.fencing_token() % 4 == 3);
}

#[test]
fn waiter_keeps_what_is_in_front_and_nothing_behind() {
    let cluster = shared();
    let builder = Locker::builder(&cluster.url()).ttl(millis(1_500));
    let (locker, other) = (open(&cluster), builder.build().expect("open"));
    let [a, b, c] = &names(&cluster);
    let middle = held(&locker, b);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| other.try_lock_all_for(&[c, b, a], PATIENCE));
        wait_for_waiter(&locker, b);
        // For longer than its leases last without a renewal.
        let until = Instant::now() + Duration::from_secs(3);
        while Instant::now() < until {
            assert!(!is_free(&locker, a) && is_free(&locker, c));
            thread::sleep(millis(50));
        }
        middle.unlock().expect("it was held");
        let all = waiting.join().unwrap().expect("lock_all").expect("it came");
        all.verify().expect("it is held");
        assert!([a, b, c].iter().all(|name| !is_free(&locker, name)));
    });
    assert!([a, b, c].iter().all(|name| is_left_alone(&locker, name)));
}

#[test]
fn part_of_a_question_that_comes_late_leaves_nothing_taken() {
    let cluster = Setup::new().calm().proxies().cluster();
    let proxy = cluster.node(1).proxy();
    let builder = Locker::builder(&cluster.url()).ttl(3 * PATIENCE);
    let locker = builder.build().expect("open");
    let mut wanted = names(&cluster);
    // Connections are there, and the servers know the scripts.
    drop(locker.lock_all(&wanted).expect("lock_all"));
    proxy.pass_late(&digest(ACQUIRE), |_| {
        wanted = names(&cluster);
        let token = CancelToken::new();
        let call = || locker.with_cancel(&token).lock_all(&wanted);
        let (outcome, ended) = proxy.end_held(call, || token.cancel());
        assert!(matches!(outcome, Err(Error::Cancelled { .. })));
        ended
    });
    wait_until("all to be left alone", PATIENCE, || {
        wanted.iter().all(|name| is_left_alone(&locker, name))
    });
    assert!(!locker.lock_all(&wanted).expect("lock_all").was_abandoned());
}

#[test]
fn what_a_killed_waiter_kept_is_free_after_its_ttl() {
    let cluster = shared();
    let locker = open(&cluster);
    let names = names(&cluster);
    let [a, b, c] = &names;
    let last = held(&locker, c);
    let mut waiter = Puppet::start(&cluster.url(), Duration::from_secs(2));
    waiter.tell(&format!("all {}", names.join(" ")));
    wait_for_waiter(&locker, c);
    assert!(!is_free(&locker, a) && !is_free(&locker, b));
    waiter.kill();
    let both = locker.try_lock_all_for(&[a, b], LONG).expect("try");
    assert!(both.is_some_and(|both| both.fencing_token() > 0));
    last.unlock().expect("it was held");
    assert!(is_free(&locker, c));
}

#[test]
fn waiter_begins_anew_where_it_lost_what_it_kept() {
    let cluster = shared();
    let builder = Locker::builder(&cluster.url()).ttl(millis(900));
    let (locker, other) = (open(&cluster), builder.build().expect("open"));
    let [a, b, c] = &names(&cluster);
    let last = held(&locker, c);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| other.try_lock_all_for(&[a, b, c], PATIENCE));
        wait_for_waiter(&locker, c);
        cluster.node(0).query::<()>(&["DEL", &key(a)]);
        let first = held(&locker, a);
        // It stands in the queue of the first, and has nothing behind that.
        wait_for_waiter(&locker, a);
        wait_until("the rest to be free", PATIENCE, || is_free(&locker, b));
        last.unlock().expect("it was held");
        assert!(is_free(&locker, c));
        first.unlock().expect("it was held");
        let all = waiting.join().unwrap().expect("lock_all").expect("it came");
        all.verify().expect("it is held");
    });
}

#[test]
fn waiter_whose_kept_lock_was_broken_goes_on_by_another_owner() {
    let cluster = shared();
    let builder = Locker::builder(&cluster.url()).ttl(millis(900));
    let (locker, other) = (open(&cluster), builder.build().expect("open"));
    let [a, b, c] = &names(&cluster);
    let last = held(&locker, c);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| other.try_lock_all_for(&[a, b, c], PATIENCE));
        wait_for_waiter(&locker, c);
        locker.break_lock(a).expect("break");
        last.unlock().expect("it was held");
        let all = waiting.join().unwrap().expect("lock_all").expect("it came");
        all.verify().expect("it is held");
        all.unlock().expect("it was held");
    });
    assert!([a, b, c].iter().all(|name| is_left_alone(&locker, name)));
}

#[test]
fn guard_of_which_one_part_is_broken_or_gone_is_lost_and_frees_the_rest() {
    let cluster = shared();
    let builder = Locker::builder(&cluster.url()).ttl(millis(900));
    let (locker, other) = (open(&cluster), builder.build().expect("open"));
    let names = names(&cluster);
    for which in 0..3 {
        let all = other.lock_all(&names).expect("lock_all");
        if which == 0 {
            locker.break_lock(&names[which]).expect("break");
        } else {
            let gone = &["DEL", &key(&names[which])];
            cluster.node(which).query::<()>(gone);
        }
        assert!(matches!(all.verify(), Err(Error::Lost { .. })));
        wait_until("the loss", PATIENCE, || !all.is_held());
        assert!(matches!(all.unlock(), Err(Error::Lost { .. })));
        wait_until("all to be free", PATIENCE, || {
            names.iter().all(|name| is_free(&locker, name))
        });
    }
}

#[test]
fn calls_end_in_time_while_a_master_is_stopped() {
    let cluster = start();
    let builder = Locker::builder(&cluster.url()).ttl(Duration::from_secs(2));
    let (locker, other) = (builder.build().expect("open"), open(&cluster));
    let [a, b, c] = &names(&cluster);
    locker
        .lock_all(&[a, b, c])
        .expect("lock_all")
        .unlock()
        .unwrap();
    let all = locker.lock_all(&[a, b, c]).expect("lock_all");
    cluster.node(1).stop();
    let tried = within(millis(400), || {
        other.try_lock_all_for(&[a, b, c], millis(400))
    });
    assert!(!matches!(tried, Ok(Some(_))));
    within(millis(500), || drop(all));
    cluster.node(1).cont();
    held_soon(&other, b).unlock().expect("it was held");
    wait_until("all to be free", PATIENCE, || {
        [a, b, c].iter().all(|name| is_left_alone(&other, name))
    });
}

#[test]
fn slots_move_while_all_are_held_renewed_and_waited_for() {
    let cluster = start();
    let builder = Locker::builder(&cluster.url()).ttl(Duration::from_secs(3));
    let (locker, other) = (builder.clone().build().unwrap(), builder.build().unwrap());
    let [a, b, c] = &names(&cluster);
    let all = locker.lock_all(&[a, b, c]).expect("lock_all");
    let token = all.fencing_token();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| other.try_lock_all_for(&[c, a, b], PATIENCE));
        wait_for_waiter(&locker, a);
        cluster.move_slot(slot(a), 2);
        cluster.move_slot(slot(c), 1);
        thread::sleep(Duration::from_secs(4));
        all.verify().expect("it was renewed");
        all.unlock().expect("it was held");
        let next = waiting.join().unwrap().expect("lock_all").expect("it came");
        assert!(next.fencing_token() > token);
        cluster.move_slot(slot(b), 0);
        next.verify().expect("it is held");
    });
    assert!([a, b, c].iter().all(|name| is_left_alone(&locker, name)));
}
