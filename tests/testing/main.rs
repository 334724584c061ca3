//! Programs that lock, tested as their authors would: by a fake, without a server and without sleeping.

use std::sync::{Arc, Mutex as StdMutex};
use std::thread;
use std::time::Duration;

use crosslock::testing::Fake;
use crosslock::{Error, Event, LeaseTicket, LockState, Locker, LostReason, Observer, Result};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// A leader does its work until it isn't one any more.
struct Leader {
    guard: crosslock::LockGuard,
    terms: u32,
}

impl Leader {
    fn elect(locker: &Locker) -> Result<Option<Leader>> {
        let guard = locker.try_lock("leader")?;
        Ok(guard.map(|guard| Leader { guard, terms: 0 }))
    }

    fn work(&mut self) -> Result<u32> {
        self.guard.check()?;
        self.terms += 1;
        Ok(self.terms)
    }
}

#[test]
fn leader_goes_on_for_hours_and_another_takes_over_when_it_is_cut_off() {
    let fake = Fake::new();
    let [first, second] = [fake.locker(), fake.locker()];
    let mut leader = Leader::elect(&first).unwrap().expect("nobody else is");
    for term in 1..=24 {
        fake.advance(HOUR);
        assert_eq!(leader.work().unwrap(), term);
        assert!(Leader::elect(&second).unwrap().is_none());
    }
    fake.set_outage(true);
    fake.advance(HOUR);
    let ended = leader.work();
    assert!(matches!(ended, Err(Error::Lost { .. })), "{ended:?}");
    fake.set_outage(false);
    let next = Leader::elect(&second).unwrap().expect("the first is none");
    assert!(next.guard.was_abandoned());
    assert!(next.guard.fencing_token() > leader.guard.fencing_token());
}

#[test]
fn child_goes_on_with_the_lock_of_its_parent() {
    let fake = Fake::new();
    let secret = fake
        .locker()
        .lock("job")
        .unwrap()
        .into_ticket()
        .expect("a ticket")
        .to_secret();
    assert!(fake.locker().try_lock("job").unwrap().is_none());
    let child = fake.locker();
    let ticket: LeaseTicket = secret.parse().unwrap();
    fake.delay(SECOND);
    let guard = child.adopt(&ticket).unwrap();
    assert_eq!(fake.elapsed(), SECOND);
    fake.advance(HOUR);
    guard.unlock().unwrap();
    fake.delay(Duration::ZERO);

    // Nobody renews a lease that is on its way.
    let ticket = fake
        .locker()
        .lock("job")
        .unwrap()
        .into_ticket()
        .expect("a ticket");
    fake.advance(HOUR);
    let late = child.adopt(ticket);
    assert!(matches!(late, Err(Error::Lost { .. })), "{late:?}");
}

#[test]
fn operator_sees_and_frees_a_lock_that_is_held_for_too_long() {
    let fake = Fake::new();
    let stuck = fake.builder().label("nightly").build().unwrap();
    let guard = stuck.lock("job").unwrap();
    fake.advance(HOUR);
    let operator = fake.locker();
    let names: Result<Vec<_>> = operator.list("").unwrap().collect();
    assert_eq!(names.unwrap(), ["job"]);
    let holder = operator.inspect("job").unwrap().holders.remove(0);
    assert_eq!(holder.held_for, Some(HOUR));
    assert_eq!(holder.party.unwrap().label.as_deref(), Some("nightly"));
    operator.break_lock("job").unwrap();
    assert_eq!(guard.lost().try_recv().unwrap().reason, LostReason::Broken);
    assert_eq!(operator.inspect("job").unwrap().state, LockState::Free);
}

#[test]
fn observer_is_told_times_by_the_clock() {
    #[derive(Default)]
    struct Told(StdMutex<Vec<String>>);

    impl Observer for Told {
        fn event(&self, event: &Event<'_>) {
            let line = match event {
                Event::Acquired { waited, .. } => format!("acquired after {waited:?}"),
                Event::Released { held, .. } => format!("released after {held:?}"),
                Event::Waiting { .. } => "waiting".to_owned(),
                _ => return,
            };
            self.0.lock().unwrap().push(line);
        }
    }

    let fake = Fake::new();
    let told = Arc::new(Told::default());
    let guard = fake.locker().lock("job").unwrap();
    let observed = fake.builder().observer(told.clone()).build().unwrap();
    let waiter = thread::spawn(move || observed.lock("job").unwrap());
    fake.await_waiters("job", 1);
    fake.advance(7 * SECOND);
    drop(guard);
    let guard = waiter.join().unwrap();
    fake.advance(5 * SECOND);
    drop(guard);
    let expected = ["waiting", "acquired after 7s", "released after 5s"];
    assert_eq!(*told.0.lock().unwrap(), expected);
}

#[test]
#[cfg(feature = "value")]
fn waits_for_a_value_end_with_the_clock_that_the_test_moves() {
    use crosslock::MutexGuard;

    let fake = Fake::new();
    let number = fake.locker().mutex("number", 0).unwrap();
    let theirs = fake.locker().mutex("number", 0).unwrap();
    let (said, waits) = std::sync::mpsc::channel();
    let wait = |timeout| {
        let (theirs, said) = (theirs.clone(), said.clone());
        let waiter = thread::spawn(move || {
            let condition = |number: &mut i32| {
                said.send(()).unwrap();
                *number < 1
            };
            let guard = theirs.lock().unwrap();
            MutexGuard::wait_while_for(guard, timeout, condition)
                .unwrap()
                .1
        });
        waits.recv().unwrap();
        // It has released the lock by then.
        drop(number.lock().unwrap());
        waiter
    };
    let waiter = wait(HOUR);
    fake.advance(HOUR + SECOND);
    assert!(waiter.join().unwrap(), "its time was over");
    let waiter = wait(HOUR);
    number.set(1).unwrap();
    assert!(!waiter.join().unwrap());
}
