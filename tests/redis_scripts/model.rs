//! Random sequences of calls and losses, next to a model of who holds the lock.

use std::cell::RefCell;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::support::RedisServer;
use super::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    Acquire(usize),
    Renew(usize),
    Release(usize),
    /// By an owner that doesn't know its token.
    GiveUp(usize),
    Expire,
    ForgetHolder,
    LoseCounter,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let owner = 0..OWNERS.len();
    let step = prop_oneof![
        5 => owner.clone().prop_map(Step::Acquire),
        2 => owner.clone().prop_map(Step::Renew),
        3 => owner.clone().prop_map(Step::Release),
        1 => owner.prop_map(Step::GiveUp),
        1 => Just(Step::Expire),
        2 => Just(Step::ForgetHolder),
        1 => Just(Step::LoseCounter),
    ];
    proptest::collection::vec(step, 1..16)
}

const OWNERS: [&str; 3] = ["a", "b", "c"];

/// What the server is expected to know, and what its clients were told.
#[derive(Debug, Default)]
struct Model {
    holder: Option<usize>,
    /// `None`: lost, or never there.
    counter: Option<u64>,
    /// The last token of each owner.
    granted: [Option<u64>; OWNERS.len()],
    largest: u64,
    /// Whether the last holder went without a release, and that wasn't told yet.
    abandoned: bool,
}

impl Model {
    fn apply(&mut self, step: Step, bench: &mut Bench) {
        match step {
            Step::Acquire(owner) => self.acquire(owner, bench),
            Step::Renew(owner) => {
                assert_eq!(bench.renew(OWNERS[owner]), self.holder == Some(owner));
            }
            Step::Release(owner) => self.release(owner, bench),
            Step::GiveUp(owner) => self.give_up(owner, bench),
            Step::Expire if self.holder.is_some() => {
                bench.expire();
                self.lose_holder();
            }
            Step::ForgetHolder | Step::Expire => {
                bench.forget_holder();
                self.lose_holder();
            }
            Step::LoseCounter => self.lose_counter(bench),
        }
    }

    fn acquire(&mut self, owner: usize, bench: &mut Bench) {
        let before = bench.server_micros();
        let answer = bench.acquire(OWNERS[owner]);
        let Acquired::Token(token) = answer else {
            assert!(self.holder.is_some_and(|holder| holder != owner));
            return;
        };
        assert!(self.holder.is_none_or(|holder| holder == owner));
        let repeated = self.holder.is_some() && self.counter.is_some();
        if repeated {
            assert_eq!(Some(token), self.granted[owner]);
            return;
        }
        let stored = self.counter.unwrap_or(0);
        let expected = next_token(stored, before)..=next_token(stored, bench.server_micros());
        assert!(expected.contains(&token), "{token} after {stored}");
        assert!(token > self.largest, "{token} after {}", self.largest);
        assert_eq!(token % 4, if self.abandoned { 3 } else { 1 });
        self.holder = Some(owner);
        self.counter = Some(token);
        self.granted[owner] = Some(token);
        self.largest = token;
    }

    fn release(&mut self, owner: usize, bench: &mut Bench) {
        let Some(token) = self.granted[owner] else {
            assert!(!bench.release(OWNERS[owner], Some(1_000)));
            return;
        };
        let held = self.holder == Some(owner);
        let done_before = self.counter == Some(token + 1);
        assert_eq!(
            bench.release(OWNERS[owner], Some(token)),
            held || done_before
        );
        if held {
            self.holder = None;
            self.counter = Some(token + 1);
            self.abandoned = false;
        }
    }

    fn give_up(&mut self, owner: usize, bench: &mut Bench) {
        let held = self.holder == Some(owner);
        let released = bench.release(OWNERS[owner], None);
        // A counter of 0 looks as if the same command had been there before.
        assert!(released == held || self.counter == Some(0));
        if held {
            self.holder = None;
            let found = bench.counter();
            // Nobody has worked since: what the holder before left behind is still to be told.
            let kept = self.counter.unwrap_or(0);
            self.abandoned = kept % 4 == 3;
            assert_eq!(found.unwrap_or(0) % 2 == 1, self.abandoned);
            assert!(found.unwrap_or(0) >= kept);
            self.counter = found;
        }
    }

    fn lose_holder(&mut self) {
        // A server without the counter can't know.
        self.abandoned = self.counter.is_some_and(|counter| counter % 2 == 1);
        self.holder = None;
    }

    fn lose_counter(&mut self, bench: &mut Bench) {
        // Leases that end by themselves take longer than tokens are skipped, unlike here.
        bench.wait_for_clock(self.largest);
        let fence = bench.fence.clone();
        bench.delete(&fence);
        self.counter = None;
        self.abandoned = false;
    }

    fn assert_matches(&self, bench: &mut Bench) {
        let holder = self.holder.map(|owner| OWNERS[owner].to_owned());
        assert_eq!(bench.contents(), (holder, self.counter));
        bench.assert_every_key_expires();
        if let (Some(_), Some(counter)) = (self.holder, self.counter) {
            assert_eq!(counter % 2, 1, "odd while held");
        }
    }
}

#[test]
fn any_sequence_of_calls_and_losses_agrees_with_the_model() {
    let server = RedisServer::start();
    let config = ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let bench = RefCell::new(Bench::new(&server));
    let outcome = TestRunner::new(config).run(&steps(), |steps| {
        let mut bench = bench.borrow_mut();
        for key in [bench.lock.clone(), bench.fence.clone()] {
            bench.delete(&key);
        }
        let mut model = Model::default();
        for step in steps {
            model.apply(step, &mut bench);
            model.assert_matches(&mut bench);
        }
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}
