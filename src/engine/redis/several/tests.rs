//! A model of several processes that take names on several slots: each command is one step, and steps come in any
//! order.
//!
//! It finds two that hold a part, a token that isn't above an earlier one of its part, a process that waits for ever,
//! and what is left behind. Processes crash and stall, replies are lost, copies are late, leases expire and are broken,
//! clocks differ.

mod actor;
mod part;

use self::actor::{Actor, Fate, Late};
use self::part::{Part, TTL};
use super::{Course, Said, Step};
use crate::base::random::{Random, for_cases};
use crate::base::token::Token;

struct World {
    parts: Vec<Part>,
    actors: Vec<Actor>,
    late: Vec<Late>,
    now: u64,
    has_faults: bool,
}

/// In which order an actor takes its parts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Slots,
    /// As they were asked for.
    Request,
}

impl World {
    fn new(order: Order, random: &mut Random) -> Self {
        let count = random.usize(2..=4);
        let part = |random: &mut Random| Part::new(random.one_of(&[0, 3, 50, 1_000]));
        let parts = (0..count).map(|_| part(random)).collect();
        let are_patient = order == Order::Request || random.bool();
        let actors = (0..random.u32(2..=4)).map(|owner| {
            let mut parts: Vec<_> = (0..count).collect();
            random.shuffle(&mut parts);
            parts.truncate(random.usize(1..=count));
            if order == Order::Slots {
                parts.sort_unstable();
            }
            Actor::new(parts, owner, random.u32(1..=4), are_patient)
        });
        World {
            actors: actors.collect(),
            parts,
            late: Vec::new(),
            now: 1,
            has_faults: false,
        }
    }

    /// Lets all run for some time, or until they are done. Says whether they are.
    fn run(&mut self, until: u64, random: &mut Random) -> bool {
        while self.now < until {
            if self.actors.iter().all(Actor::is_done) {
                return true;
            }
            if self.has_faults {
                self.hurt(random);
            }
            self.step(random);
            self.check();
        }
        false
    }

    fn step(&mut self, random: &mut Random) {
        let ready = |actor: &&mut Actor| actor.is_ready(self.now);
        let mut ready: Vec<_> = self.actors.iter_mut().filter(ready).collect();
        self.now += u64::from(ready.is_empty() || random.u32(..4) == 0);
        if !ready.is_empty() {
            let which = random.usize(..ready.len());
            let has_faults = self.has_faults;
            let fate = |random: &mut Random| match random.u32(..40) {
                0 if has_faults => Fate::Unheard,
                1 if has_faults => Fate::Unsent,
                2 if has_faults => Fate::Late(random.u64(1..TTL)),
                3 if has_faults => Fate::Twice(random.u64(1..TTL)),
                _ => Fate::Answered,
            };
            let late = ready[which].step(&mut self.parts, self.now, random, fate);
            self.late.extend(late);
        }
        self.deliver(random);
    }

    /// Carries out what was late, and tells of grants, but for some.
    fn deliver(&mut self, random: &mut Random) {
        let now = self.now;
        let arrived: Vec<_> = self.late.extract_if(.., |late| late.0 <= now).collect();
        for (_, part, owner, command) in arrived {
            self.parts[part].carry_out(owner, command, now);
        }
        for (at, part) in self.parts.iter_mut().enumerate() {
            for (owner, token) in part.told.drain(..) {
                if random.u32(..4) > 0 {
                    let actors = self.actors.iter_mut();
                    actors.for_each(|actor| actor.hear(owner, at, token));
                }
            }
        }
    }

    fn hurt(&mut self, random: &mut Random) {
        let now = self.now;
        match random.u32(..600) {
            0 => random_one(&mut self.actors, random).has_crashed = true,
            1..=4 => {
                let until = now + random.u64(1..2 * TTL);
                random_one(&mut self.actors, random).stalled_until = until;
            }
            5..=7 => random_one(&mut self.parts, random).break_it(now),
            _ => {}
        }
    }

    fn check(&self) {
        for part in 0..self.parts.len() {
            let holders = self.actors.iter().filter(|one| one.holds(part, self.now));
            // Whoever breaks a lease lets in another.
            let is_broken = |owner| self.parts.iter().any(|part| part.has_broken(owner));
            let holders = holders.filter(|one| !is_broken(one.owner));
            let holders: Vec<_> = holders.map(|actor| actor.owner).collect();
            assert!(holders.len() < 2, "{holders:?} hold part {part}");
        }
    }

    /// Whether no part has anything of an owner that was ever there.
    fn is_clean(&self) -> bool {
        let mut actors = self.actors.iter();
        !actors.any(|actor| {
            let mut owners = (actor.owner % 100..=actor.owner).step_by(100);
            owners.any(|owner| self.parts.iter().any(|part| part.knows(owner)))
        })
    }
}

fn random_one<'a, T>(all: &'a mut [T], random: &mut Random) -> &'a mut T {
    let which = random.usize(..all.len());
    &mut all[which]
}

/// Whether all come to their end, without faults.
fn comes_to_an_end(order: Order, random: &mut Random) -> Option<World> {
    let mut world = World::new(order, random);
    let is_done = world.run(40 * TTL, random);
    is_done.then_some(world)
}

#[test]
fn all_are_served_one_at_a_time_and_nothing_is_left_behind() {
    for_cases(400, |random| {
        let world = comes_to_an_end(Order::Slots, random);
        assert!(world.expect("nobody waits for ever").is_clean());
    });
}

#[test]
fn those_that_live_are_served_whatever_became_of_others() {
    for_cases(400, |random| {
        let mut world = World::new(Order::Slots, random);
        world.has_faults = true;
        let until = random.u64(1..20 * TTL);
        world.run(until, random);
        world.has_faults = false;
        let until = world.now + 40 * TTL;
        assert!(world.run(until, random), "somebody waits for ever");
    });
}

#[test]
fn the_model_finds_that_another_order_lets_them_wait_for_each_other() {
    let mut stuck = 0;
    for_cases(400, |random| {
        stuck += u32::from(comes_to_an_end(Order::Request, random).is_none());
    });
    assert!(stuck > 0);
}

/// A course that has all of its parts and is about to raise their counters.
fn granted(parts: usize) -> Course {
    let mut course = Course::new(parts);
    course.begin();
    let token = Token::from_number(5);
    for at in 0..parts {
        assert_eq!(course.next(), Step::Ask(at));
        let granted = Said::Granted(token);
        assert_eq!(course.said(Step::Ask(at), granted, true), None);
    }
    assert_eq!(course.next(), Step::Raise(token));
    course
}

#[test]
fn owner_that_does_not_have_all_releases_all_before_another_asks() {
    for said in [Said::Broken, Said::Failed] {
        let (raise, release) = (Step::Raise(Token::from_number(5)), Step::Release(2));
        // It may have a part anew, by a late copy of its request.
        let mut course = granted(2);
        assert_eq!(course.said(raise, said, true), None);
        assert_eq!(course.next(), release);
        let end = course.said(release, Said::Failed, true);
        assert_eq!(end, Some(Said::Failed));
        course.begin();
        assert_eq!(course.next(), release);
        let end = course.said(release, Said::Done, true);
        assert_eq!(end, Some(Said::Broken));

        let mut course = granted(2);
        course.said(raise, said, true);
        assert_eq!(course.said(release, Said::Done, true), Some(said));
        course.begin();
        assert!(matches!(course.next(), Step::Release(_)));
    }
}

#[test]
fn owner_that_waits_renews_what_it_has_and_one_that_does_not_releases_it() {
    for may_wait in [true, false] {
        let mut course = Course::new(3);
        course.begin();
        let granted = Said::Granted(Token::from_number(5));
        assert_eq!(course.said(Step::Ask(0), granted, may_wait), None);
        assert_eq!(course.next(), Step::Ask(1));
        let end = course.said(Step::Ask(1), Said::Taken, may_wait);
        assert_eq!(end, may_wait.then_some(Said::Taken));
        assert!(course.may_have_some());
        course.begin();
        let step = course.next();
        if may_wait {
            assert_eq!(step, Step::Renew(1));
            assert_eq!(course.said(step, Said::Done, true), None);
            assert_eq!(course.next(), Step::Ask(1));
        } else {
            assert_eq!(step, Step::Release(1));
            assert_eq!(course.said(step, Said::Done, false), Some(Said::Taken));
            assert!(!course.may_have_some());
        }
    }
}
