//! Random sequences of calls for overlapping sets of names, next to a model; and whether whoever asks is served.

use std::cell::RefCell;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::bench::{Acquired, Ask};
use super::several::Several;
use super::support::RedisServer;
use super::{HAND_OVERS, TTL};

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
    Renew(usize),
    Release(usize),
    GiveUp(usize),
    /// The lease of one name ends by itself, or its line is deleted.
    LoseLock(usize),
    LosePlace(usize, usize),
}

/// What the counter of a name says of its last holder.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Said {
    /// It released.
    Released,
    /// It holds the lock, or went without a release.
    Holds,
    /// The same, and the one before went without a release.
    HoldsAfterADeath,
}

#[derive(Clone, Debug)]
struct Lock {
    holder: Option<usize>,
    /// Who waits, and whether its heartbeat is overdue.
    line: Vec<(usize, bool)>,
    said: Said,
}

struct Model {
    /// Which names each wants.
    wants: [Vec<usize>; ACTORS],
    locks: Vec<Lock>,
    tokens: [Option<u64>; ACTORS],
    counters: Vec<u64>,
    /// Nobody died and nothing was lost.
    calm: bool,
}

impl Lock {
    fn knows(&self, actor: usize) -> bool {
        self.holder == Some(actor) || self.line.iter().any(|(other, _)| *other == actor)
    }

    /// Gives a free lock to the first in line that lives.
    fn serve(&mut self, asking: Option<usize>) {
        while self.holder.is_none() && !self.line.is_empty() {
            let (first, overdue) = self.line.remove(0);
            if !overdue || asking == Some(first) {
                self.grant(first);
            }
        }
    }

    fn grant(&mut self, actor: usize) {
        self.holder = Some(actor);
        self.said = if self.said == Said::Released {
            Said::Holds
        } else {
            Said::HoldsAfterADeath
        };
    }

    fn ask(&mut self, actor: usize, overdue: Option<bool>) -> bool {
        if self.holder.is_none() {
            self.serve(Some(actor));
            if self.holder.is_none() {
                self.grant(actor);
            }
        }
        if self.holder == Some(actor) {
            return true;
        }
        let place = self.line.iter().position(|(other, _)| *other == actor);
        match (overdue, place) {
            (Some(overdue), Some(place)) => self.line[place].1 = overdue,
            (Some(overdue), None) => self.line.push((actor, overdue)),
            (None, Some(place)) => {
                self.line.remove(place);
            }
            (None, None) => {}
        }
        let is_heartbeat = overdue.is_some() && place.is_some();
        while is_heartbeat && self.line[0].1 && self.line[0].0 != actor {
            self.line.remove(0);
        }
        false
    }

    /// Says whether it was the actor's.
    fn release(&mut self, actor: usize) -> bool {
        let held = self.holder == Some(actor);
        if held {
            self.holder = None;
            self.said = Said::Released;
            self.serve(None);
        }
        held
    }

    fn give_up(&mut self, actor: usize) -> bool {
        let held = self.holder == Some(actor);
        self.line.retain(|(other, _)| *other != actor);
        if held {
            self.holder = None;
            if self.said == Said::Holds {
                self.said = Said::Released;
            }
        }
        self.serve(None);
        held
    }
}

impl Model {
    fn new(masks: [usize; ACTORS]) -> Self {
        let wants = |mask: usize| (0..NAMES).filter(|name| mask & 1 << name != 0).collect();
        let lock = Lock {
            holder: None,
            line: Vec::new(),
            said: Said::Released,
        };
        Model {
            wants: masks.map(wants),
            locks: vec![lock; NAMES],
            tokens: [None; ACTORS],
            counters: vec![0; NAMES],
            calm: true,
        }
    }

    fn apply(&mut self, step: Step, several: &mut Several) {
        match step {
            Step::Try(actor) => self.ask(actor, None, several),
            Step::Wait(actor) => self.ask(actor, Some(false), several),
            Step::WaitAndDie(actor) => {
                self.calm = false;
                self.ask(actor, Some(true), several);
            }
            Step::Renew(actor) => {
                let names = &self.wants[actor];
                let holds = |name: &usize| self.locks[*name].holder == Some(actor);
                let all = names.iter().all(holds);
                assert_eq!(several.renew(names, OWNERS[actor], TTL), all);
            }
            Step::Release(actor) => self.release(actor, self.tokens[actor], several),
            Step::GiveUp(actor) => self.release(actor, None, several),
            Step::LoseLock(name) => {
                self.calm = false;
                several.0[name].forget_holder();
                self.locks[name].holder = None;
            }
            Step::LosePlace(name, actor) => {
                self.calm = false;
                several.0[name].release(OWNERS[actor], None);
                self.locks[name].give_up(actor);
            }
        }
        self.assert_agrees(several);
    }

    fn ask(&mut self, actor: usize, overdue: Option<bool>, several: &mut Several) {
        let names = self.wants[actor].clone();
        let ask = match overdue {
            None => Ask::once(OWNERS[actor]),
            Some(false) => Ask::waiting(OWNERS[actor], TTL, ""),
            Some(true) => Ask::waiting(OWNERS[actor], 0, ""),
        };
        // One name is asked for like any other.
        let answer = match names[..] {
            [name] => several.0[name].ask(ask),
            _ => several.ask(&names, ask),
        };
        let stood = self.take(actor, overdue, &names);
        let Some(stood) = stood else {
            let token = answer.token().expect("all are free");
            self.check_token(actor, token, &names);
            return;
        };
        self.tokens[actor] = None;
        match answer {
            Acquired::Taken {
                stood: answered,
                known: true,
                ..
            } => assert_eq!(answered, stood),
            other => panic!("{other:?}"),
        }
    }

    /// Whether it stood in line before, if it doesn't have all now.
    fn take(&mut self, actor: usize, overdue: Option<bool>, names: &[usize]) -> Option<bool> {
        let knows = |name: &&usize| self.locks[**name].knows(actor);
        let mut known = names.iter().filter(knows).count();
        if known > 0 && known < names.len() {
            names.iter().for_each(|name| {
                self.locks[*name].give_up(actor);
            });
            known = 0;
        }
        let mut all = true;
        for name in names {
            if all || overdue.is_some() {
                all &= self.locks[*name].ask(actor, overdue);
            }
        }
        if all {
            return None;
        }
        if overdue.is_none() {
            names.iter().for_each(|name| {
                self.locks[*name].give_up(actor);
            });
        }
        let stood = known > 0;
        Some(stood && (names.len() > 1 || overdue.is_some()))
    }

    fn check_token(&mut self, actor: usize, token: u64, names: &[usize]) {
        let said = |name: &usize| self.locks[*name].said;
        let is_abandoned = names
            .iter()
            .any(|name| said(name) == Said::HoldsAfterADeath);
        assert_eq!(token % 4, if is_abandoned { 3 } else { 1 });
        for name in names {
            assert!(token >= self.counters[*name], "below an earlier one");
            if is_abandoned {
                self.locks[*name].said = Said::HoldsAfterADeath;
            }
        }
        self.tokens[actor] = Some(token);
    }

    fn release(&mut self, actor: usize, token: Option<u64>, several: &mut Several) {
        let names = self.wants[actor].clone();
        let released = several.release(&names, OWNERS[actor], token);
        let mut all = true;
        for name in names {
            let done_before = token.is_some_and(|token| self.counters[name] == token + 1);
            all &= match token {
                Some(_) => self.locks[name].release(actor) || done_before,
                None => self.locks[name].give_up(actor),
            };
        }
        assert_eq!(released, all);
        self.tokens[actor] = None;
    }

    fn assert_agrees(&mut self, several: &mut Several) {
        for (name, seen) in several.seen().into_iter().enumerate() {
            let lock = &self.locks[name];
            assert_eq!(
                seen.holder.as_deref(),
                lock.holder.map(|actor| OWNERS[actor])
            );
            let line: Vec<_> = lock.line.iter().map(|(actor, _)| OWNERS[*actor]).collect();
            assert_eq!(seen.line(), line);
            seen.assert_every_key_expires();
            let counter = seen.counter.unwrap_or(0);
            assert!(counter >= self.counters[name], "it only grows");
            self.counters[name] = counter;
            match lock.said {
                Said::Released => assert_eq!(counter % 2, 0),
                Said::Holds => assert_eq!(counter % 4, 1),
                Said::HoldsAfterADeath => assert_eq!(counter % 8, 3),
            }
        }
        if self.calm {
            self.assert_nobody_waits_for_one_behind();
        }
    }

    /// Of two that meet at two names, one is in front at both.
    fn assert_nobody_waits_for_one_behind(&self) {
        let place = |lock: &Lock, actor: usize| {
            let line = lock.line.iter().map(|(other, _)| Some(*other));
            let mut places = [lock.holder].into_iter().chain(line);
            places.position(|other| other == Some(actor))
        };
        for (one, other) in (0..ACTORS).flat_map(|one| (0..one).map(move |other| (one, other))) {
            let mut front = self.locks.iter().filter_map(|lock| {
                let (one, other) = (place(lock, one)?, place(lock, other)?);
                Some(one < other)
            });
            let first = front.next();
            assert!(front.all(|next| Some(next) == first), "{:?}", self.locks);
        }
    }

    /// All go on asking, and release in the next round what they have: nobody is left out.
    fn assert_all_are_served(&mut self, several: &mut Several) {
        let mut served = [0; ACTORS];
        for _ in 0..ROUNDS {
            for (actor, count) in served.iter_mut().enumerate() {
                if self.tokens[actor].is_some() {
                    self.apply(Step::Release(actor), several);
                    *count += 1;
                } else {
                    self.apply(Step::Wait(actor), several);
                }
            }
        }
        assert!(served.iter().all(|count| *count > 1), "{served:?}");
    }
}

fn steps() -> impl Strategy<Value = ([usize; ACTORS], Vec<Step>)> {
    let actor = || 0..ACTORS;
    let step = prop_oneof![
        2 => actor().prop_map(Step::Try),
        10 => actor().prop_map(Step::Wait),
        1 => actor().prop_map(Step::WaitAndDie),
        1 => actor().prop_map(Step::Renew),
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
fn overlapping_sets_agree_with_the_model_and_nobody_starves() {
    let server = RedisServer::start();
    let several = RefCell::new(Several::new(&server, NAMES));
    let config = ProptestConfig {
        cases: 60,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let outcome = TestRunner::new(config).run(&steps(), |(masks, steps)| {
        let several = &mut *several.borrow_mut();
        for bench in &mut several.0 {
            // Tokens run ahead of the clock where many leases are lost.
            let ahead = bench.seen().counter.unwrap_or(0) + 2 * HAND_OVERS;
            bench.wait_for_clock(ahead);
            let keys = bench.keys();
            keys.iter().for_each(|key| bench.delete(key));
        }
        let mut model = Model::new(masks);
        for step in steps {
            model.apply(step, several);
        }
        model.assert_all_are_served(several);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}
