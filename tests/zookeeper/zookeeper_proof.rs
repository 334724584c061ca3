//! A lease lasts no longer than the leader is known to keep the session, and waiters whose servers have lost their
//! majority cost little.

use super::*;
use std::sync::mpsc;
use std::thread;
use support::Thread;

/// Servers that are cut off from each other notice that late, and serve meanwhile.
fn slow_to_notice() -> Ensemble {
    let setup = setup().proxies();
    setup.config("syncLimit", "100").ensemble(3)
}

#[test]
fn server_that_is_cut_off_from_its_leader_extends_no_lease() {
    let ensemble = slow_to_notice();
    let leader = ensemble.leader();
    let follower = (leader + 1) % 3;
    let locker = open(&ensemble.member(follower).url());
    let other = open(&ensemble.member(leader).url());
    let guard = held(&locker);
    // A write that it can't have done once it is cut off would keep back all answers of the session, which proves
    // nothing then. The locker writes last that it has looked for garbage.
    let mut session = ensemble.member(follower).session();
    wait_until("a look for garbage", PATIENCE, || {
        session.version("/crosslock").expect("it was made") > 0
    });
    session.close();
    ensemble.cut(follower, leader);
    // It goes on serving those that it has.
    assert_eq!(ensemble.member(follower).sessions().len(), 1);
    thread::scope(|scope| {
        let waits = scope.spawn(|| held(&other));
        while !waits.is_finished() {
            thread::sleep(millis(1));
        }
        // Looked at after the other has it: at no moment do both.
        assert!(!guard.is_held());
        let next = waits.join().expect("no panic");
        assert!(next.fencing_token() > guard.fencing_token());
        assert_eq!(
            ensemble.member(follower).mode().as_deref(),
            Some("follower")
        );
    });
    ensemble.join(follower, leader);
}

/// A leader that was stopped takes sessions up, and answers a `sync`, until it looks whether it has its followers: that
/// is a tick. It doesn't hear that they have closed their connections.
#[test]
fn replaced_leader_that_goes_on_extends_no_lease() {
    const TICK: Duration = Duration::from_secs(1);
    let setup = setup().tick(TICK).proxies().config("syncLimit", "2");
    let ensemble = setup.ensemble(3);
    let old = ensemble.leader();
    // A member's first session takes it longer than others: it loads its classes.
    for member in [old, (old + 1) % 3] {
        assert_works(&super::open(&ensemble.member(member).url()));
    }
    // Longer than an election on a busy machine. Connections are made anew often: one before the leader looks.
    let open = |index: usize| {
        let builder = builder(&ensemble.member(index).url()).ttl(12 * TICK);
        builder.connect_timeout(TICK).build().expect("open")
    };
    let (locker, other) = (open(old), open((old + 1) % 3));
    let guard = held(&locker);
    ensemble.isolate(old);
    ensemble.stop(old);
    ensemble.wait_for_other_leader(old);
    // Time that sessions have had with the other leader.
    thread::sleep(TICK * 4);
    ensemble.go_on(old);
    let next = held(&other);
    assert!(!guard.is_held(), "{:?} are left", guard.remaining());
    assert!(next.fencing_token() > guard.fencing_token());
    ensemble.take_back(old);
}

#[test]
fn session_leaves_a_server_that_is_cut_off_from_its_leader() {
    let ensemble = slow_to_notice();
    let leader = ensemble.leader();
    let locker = open(&ensemble.url());
    let guard = held(&locker);
    for _ in 0..2 {
        let at = with_session(&ensemble);
        if at == leader {
            ensemble.member(leader).proxy().set(support::Fault::Refuse);
            assert_outlasts_ttl(&guard);
            ensemble.member(leader).proxy().set(support::Fault::None);
            continue;
        }
        ensemble.cut(at, leader);
        assert_outlasts_ttl(&guard);
        return;
    }
    panic!("the session stays at the leader");
}

#[test]
fn guard_outlives_the_leader() {
    let ensemble = setup().ensemble(3);
    let leader = ensemble.leader();
    let url = ensemble.member((leader + 1) % 3).url();
    let locker = open(&url);
    let guard = held(&locker);
    ensemble.kill(leader);
    assert_outlasts_ttl(&guard);
    drop(guard);
    assert_works(&locker);
}

#[test]
fn reader_after_a_downgrade_counts_no_longer_than_the_session_is_proven() {
    let tick = millis(500);
    let server = ZooKeeper::setup().tick(tick).start();
    let ttl = tick * 8;
    let locker = builder(&server.url()).ttl(ttl).build().expect("open");
    let writing = locker.write(NAME).expect("write");
    // A new session counts at once. What is proven later is more than a tick old.
    thread::sleep(tick * 4);
    let reading = writing.downgrade().expect("downgrade");
    let left = reading.remaining();
    assert!(left <= ttl - tick, "{left:?}");
    assert!(reading.is_held());
}

const WAITERS: usize = 20;

/// Longer than an election takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// How many connections clients have made so far.
fn connects(ensemble: &Ensemble) -> u64 {
    let members = ensemble.members().iter();
    members.map(|member| member.proxy().accepted()).sum()
}

fn patient(ensemble: &Ensemble, ttl: Duration) -> Locker {
    let url = ensemble.url().replace("127.0.0.1", "localhost") + "?tick=200ms";
    let builder = builder(&url).ttl(ttl).outage_timeout(2 * LONG);
    builder.build().expect("open")
}

/// Kills all but the leader, which hangs up on its clients then.
fn kill_the_majority(ensemble: &Ensemble) -> Vec<usize> {
    let leader = ensemble.leader();
    let others: Vec<_> = (0..3).filter(|index| *index != leader).collect();
    others.iter().for_each(|index| ensemble.kill(*index));
    others
}

/// Their session ends, and there is nobody to ask.
#[test]
fn waiters_without_a_majority_cost_little() {
    let setup = setup().proxies().config("maxSessionTimeout", "60000");
    let ensemble = setup.ensemble(3);
    let (holder, waiter) = (patient(&ensemble, LONG), patient(&ensemble, TTL));
    let names: Vec<_> = (0..WAITERS).map(|number| format!("n{number}")).collect();
    let holding: Vec<_> = names.iter().map(|name| held_in(&holder, name)).collect();
    let guard = held(&waiter);
    thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        for name in &names {
            let (waiter, tell) = (&waiter, tell.clone());
            scope.spawn(move || {
                tell.send(Thread::current()).expect("the test goes on");
                let guard = waiter.try_lock_for(name, 4 * LONG).expect("try_lock_for");
                guard.expect("it becomes free").unlock().expect("unlock");
            });
        }
        let threads: Vec<_> = told.iter().take(WAITERS).collect();
        wait_until("all to wait", PATIENCE, || {
            threads.iter().all(Thread::is_asleep)
        });
        let killed = kill_the_majority(&ensemble);
        loss(&guard);
        let ran = || threads.iter().map(Thread::ran_for).sum::<Duration>();
        let (began, before, connected) = (Instant::now(), ran(), connects(&ensemble));
        thread::sleep(millis(3_000));
        let (took, ran) = (began.elapsed(), ran() - before);
        let connected = connects(&ensemble) - connected;
        println!("in {took:?}: {connected} connections, {ran:?} of processor time");
        assert!(ran < took / 20, "{ran:?} of processor time in {took:?}");
        assert!(
            connected < 60 * took.as_secs(),
            "{connected} connections in {took:?}"
        );
        for index in killed {
            ensemble.member(index).launch_again();
        }
        ensemble.leader();
        drop(holding);
    });
}
