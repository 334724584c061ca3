//! Waiters whose servers have lost their majority.

use super::*;
use std::sync::mpsc;
use std::thread;
use support::Thread;

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
