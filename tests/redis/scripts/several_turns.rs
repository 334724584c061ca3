//! Random sequences of calls for overlapping sets of names: who is in front of whom, and whether all are served.
//!
//! What each call does is compared with a model in `tests/protocol`; here it is judged by what there is to see.

use std::cell::RefCell;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::TTL;
use super::ask::Ask;
use super::seen::Seen;
use super::several_bench::Several;
use support::RedisServer;
use support::scripts::Acquired;

const NAMES: usize = 3;
const ACTORS: usize = 5;
const OWNERS: [&str; ACTORS] = ["a", "b", "c", "d", "e"];
/// Everybody was served long before.
const ROUNDS: usize = 4 * ACTORS;

#[derive(Clone, Copy, Debug)]
enum Step {
    Try(usize),
    /// Enters all lines, or is a heartbeat in them.
    Wait(usize),
    /// The same, and the next heartbeat is overdue when the script has ended.
    WaitAndDie(usize),
    Release(usize),
    GiveUp(usize),
    /// The lease of one name ends by itself, or its place in one line is lost.
    LoseLock(usize),
    LosePlace(usize, usize),
}

struct Actors<'a> {
    several: &'a mut Several,
    /// Which names each wants.
    wants: [Vec<usize>; ACTORS],
    tokens: [Option<u64>; ACTORS],
    /// Nobody died and nothing was lost.
    calm: bool,
}

impl<'a> Actors<'a> {
    fn new(masks: [usize; ACTORS], several: &'a mut Several) -> Self {
        for bench in &mut several.0 {
            let keys = bench.keys();
            keys.iter().for_each(|key| bench.delete(key));
        }
        let wants = |mask: usize| (0..NAMES).filter(|name| mask & 1 << name != 0).collect();
        Actors {
            several,
            wants: masks.map(wants),
            tokens: [None; ACTORS],
            calm: true,
        }
    }

    fn apply(&mut self, step: Step) {
        let calm = !matches!(
            step,
            Step::WaitAndDie(_) | Step::LoseLock(_) | Step::LosePlace(..)
        );
        self.calm &= calm;
        match step {
            Step::Try(actor) => {
                self.ask(actor, Ask::once(OWNERS[actor]));
                if self.tokens[actor].is_none() {
                    self.assert_has_none(actor);
                }
            }
            Step::Wait(actor) => self.ask(actor, Ask::waiting(OWNERS[actor], TTL, "")),
            Step::WaitAndDie(actor) => self.ask(actor, Ask::waiting(OWNERS[actor], 0, "")),
            Step::Release(actor) => self.release(actor),
            Step::GiveUp(actor) => {
                self.tokens[actor] = None;
                self.release(actor);
            }
            Step::LoseLock(name) => self.several.0[name].forget_holder(),
            Step::LosePlace(name, actor) => {
                self.several.0[name].release(OWNERS[actor], None);
            }
        }
        let seen = self.several.seen();
        seen.iter().for_each(Seen::assert_every_key_expires);
        if self.calm {
            self.assert_nobody_waits_for_one_behind(&seen);
        }
    }

    fn ask(&mut self, actor: usize, ask: Ask<'_>) {
        // One name is asked for like any other.
        let answer = match self.wants[actor][..] {
            [name] => self.several.0[name].ask(ask),
            ref names => self.several.ask(names, ask),
        };
        self.tokens[actor] = answer.token();
        if let Acquired::Token(token) = answer {
            self.assert_holds(actor, token);
        }
    }

    /// It has all, and one token for all of them.
    fn assert_holds(&mut self, actor: usize, token: u64) {
        let seen = self.several.seen();
        for seen in self.wants[actor].iter().map(|name| &seen[*name]) {
            assert_eq!(seen.holder.as_deref(), Some(OWNERS[actor]));
            assert_eq!(seen.counter, Some(token));
        }
    }

    /// Without a token it gives up.
    fn release(&mut self, actor: usize) {
        let token = self.tokens[actor].take();
        self.several
            .release(&self.wants[actor], OWNERS[actor], token);
        self.assert_has_none(actor);
    }

    /// It holds none, and waits for none.
    fn assert_has_none(&mut self, actor: usize) {
        let seen = self.several.seen();
        for seen in self.wants[actor].iter().map(|name| &seen[*name]) {
            assert_ne!(seen.holder.as_deref(), Some(OWNERS[actor]));
            assert!(!seen.waiters.contains_key(OWNERS[actor]), "{seen:?}");
        }
    }

    /// Of two that meet at two names, one is in front at both.
    fn assert_nobody_waits_for_one_behind(&self, seen: &[Seen]) {
        let place = |seen: &Seen, actor: usize| {
            let line = [seen.holder.as_deref()].into_iter();
            let mut line = line.chain(seen.line().into_iter().map(Some));
            line.position(|other| other == Some(OWNERS[actor]))
        };
        for (one, other) in (0..ACTORS).flat_map(|one| (0..one).map(move |other| (one, other))) {
            let mut front = seen.iter().filter_map(|seen| {
                let (one, other) = (place(seen, one)?, place(seen, other)?);
                Some(one < other)
            });
            let first = front.next();
            assert!(front.all(|next| Some(next) == first), "{seen:?}");
        }
    }

    /// All go on asking, and release in the next round what they have: nobody is left out.
    fn assert_all_are_served(&mut self) {
        let mut served = [0; ACTORS];
        for _ in 0..ROUNDS {
            for (actor, count) in served.iter_mut().enumerate() {
                if self.tokens[actor].is_some() {
                    self.apply(Step::Release(actor));
                    *count += 1;
                } else {
                    self.apply(Step::Wait(actor));
                }
            }
        }
        assert!(served.iter().all(|count| *count > 1), "{served:?}");
    }
}

fn sequences() -> impl Strategy<Value = ([usize; ACTORS], Vec<Step>)> {
    let actor = || 0..ACTORS;
    let step = prop_oneof![
        2 => actor().prop_map(Step::Try),
        10 => actor().prop_map(Step::Wait),
        1 => actor().prop_map(Step::WaitAndDie),
        4 => actor().prop_map(Step::Release),
        2 => actor().prop_map(Step::GiveUp),
        1 => (0..NAMES).prop_map(Step::LoseLock),
        1 => (0..NAMES, actor()).prop_map(|(name, actor)| Step::LosePlace(name, actor)),
    ];
    let quiet = prop_oneof![
        1 => actor().prop_map(Step::Try),
        8 => actor().prop_map(Step::Wait),
        4 => actor().prop_map(Step::Release),
        1 => actor().prop_map(Step::GiveUp),
    ];
    let some = 0..30;
    let steps = prop_oneof![
        proptest::collection::vec(step, some.clone()),
        proptest::collection::vec(quiet, some),
    ];
    (proptest::array::uniform(1..1usize << NAMES), steps)
}

#[test]
fn those_that_want_overlapping_sets_take_turns_and_nobody_starves() {
    let server = RedisServer::start();
    let several = RefCell::new(Several::new(&server, NAMES));
    let config = ProptestConfig {
        cases: 60,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let outcome = TestRunner::new(config).run(&sequences(), |(masks, steps)| {
        let several = &mut *several.borrow_mut();
        let mut actors = Actors::new(masks, several);
        steps.into_iter().for_each(|step| actors.apply(step));
        actors.assert_all_are_served();
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}
