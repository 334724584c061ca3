//! Random walks of the model, next to the scripts of `lua/` on a real server: what its clients send is sent.
//!
//! Walks have more clients, acquisitions and faults than can be gone through completely, and the judge's excuses are
//! made for those that can. So only with `PROTOCOL=full` a walk ends where a rule breaks: to look at, not to rely on.

use std::env;

use crosslock_protocol::judge::Rule;
use crosslock_protocol::server::{Call, Event, Key, Names};
use crosslock_protocol::setup::Setup;
use crosslock_protocol::setups::WALKS;
use crosslock_protocol::world::{Action, CLIENTS, Fault, World};
use fastrand::Rng;

use super::replayer::Replayer;

/// So many steps of each setup change the server, or ask it.
const STEPS: usize = 26_000;
/// And so many of them run a script.
const CALLS: usize = 10_000;
/// A walk ends when nothing is left to be done for so many ticks.
const IDLE: usize = 5;
/// One of so many steps is a fault, while there may be one.
const FAULT: usize = 12;
/// One of so many lets time pass, where something else may be done.
const TICK: usize = 4;
/// Tokens may be so much ahead of the clock: one lease that ended by itself skips so many.
const AHEAD: i64 = 4 * 2 * 1024;

/// A walk, and the server that goes along.
struct Walk<'a> {
    setup: &'a Setup,
    world: World,
    replayer: &'a mut Replayer,
    steps: usize,
    calls: usize,
    told: Vec<Action>,
    judged: bool,
}

impl Walk<'_> {
    fn go(&mut self, rng: &mut Rng) {
        let (mut actions, mut idle) = (Vec::new(), 0);
        while idle < IDLE {
            actions.clear();
            self.world.actions(self.setup, &mut actions);
            let nothing_else = actions.iter().all(|action| *action == Action::Tick);
            idle = if nothing_else { idle + 1 } else { 0 };
            let action = choose(&actions, rng);
            self.take(action);
        }
    }

    fn take(&mut self, action: Action) {
        self.told.push(action);
        if let Some(at) = request_of(action, &self.world) {
            let (packet, call) = self.world.call(at).unwrap();
            let names = self.setup.want(packet.owner).names;
            self.world.clock = self.replayer.call(names, call).now;
            self.steps += 1;
            self.calls += 1;
        } else if let Action::Break(at) = action {
            let name = Names::one(at.try_into().unwrap());
            self.world.clock = self.replayer.call(name, Call::Break).now;
            self.steps += 1;
            self.calls += 1;
        } else if let Some(event) = event_of(action) {
            if matches!(event, Event::Forget | Event::FailOver | Event::Delete(..)) {
                // As on a server that takes longer to restart than tokens are skipped.
                self.replayer.wait_for_clock(self.largest() + AHEAD);
                self.world.clock = self.replayer.now();
            }
            self.replayer.step(event);
            self.steps += 1;
        }
        let next = self.world.after(self.setup, action);
        for client in 0..CLIENTS {
            if next.ears[client] != self.world.ears[client] {
                let inbox = client.try_into().unwrap();
                self.replayer.step(Event::Ear(inbox, next.ears[client]));
                self.steps += 1;
            }
        }
        assert_eq!(&next.names[..], self.replayer.names(), "after {action:?}");
        for rule in Rule::ALL.into_iter().filter(|_| self.judged) {
            assert!(next.judge.keeps(rule), "{rule:?} after {:?}", self.told);
        }
        self.world = next;
    }

    fn largest(&self) -> i64 {
        let counters = self.world.names.iter().filter_map(|name| name.counter);
        counters.map(|counter| counter.number).max().unwrap_or(0)
    }
}

fn choose(actions: &[Action], rng: &mut Rng) -> Action {
    let is_fault = |action: &&Action| matches!(action, Action::Fault(..) | Action::Copy);
    let (faults, steps): (Vec<_>, Vec<_>) = actions.iter().partition(is_fault);
    let (ticks, steps): (Vec<_>, Vec<_>) = steps.iter().partition(|one| **one == Action::Tick);
    let waits = !ticks.is_empty() && rng.usize(..TICK) == 0;
    let steps = if steps.is_empty() || waits {
        ticks
    } else {
        steps
    };
    let from = if steps.is_empty() || (!faults.is_empty() && rng.usize(..FAULT) == 0) {
        faults
    } else {
        steps
    };
    from[rng.usize(..from.len())]
}

/// Which packet brings a request to the server.
fn request_of(action: Action, world: &World) -> Option<usize> {
    let (Action::Arrive(at) | Action::Fault(Fault::RepeatRequest, at)) = action else {
        return None;
    };
    world.call(at).map(|_| at)
}

/// What else happens to the server.
fn event_of(action: Action) -> Option<Event> {
    let delete = |at: usize, key| Event::Delete(at.try_into().unwrap(), key);
    Some(match action {
        Action::Tick => Event::Tick,
        Action::Copy => Event::Copy,
        Action::Fault(fault, at) => match fault {
            Fault::Forget => Event::Forget,
            Fault::FailOver => Event::FailOver,
            Fault::DeleteLock => delete(at, Key::Lock),
            Fault::DeleteCounter => delete(at, Key::Counter),
            Fault::DeleteQueue => delete(at, Key::Queue),
            Fault::DeleteReaders => delete(at, Key::Readers),
            Fault::DeleteWaiters => delete(at, Key::Waiters),
            Fault::DeleteShares => delete(at, Key::Shares),
            _ => return None,
        },
        _ => return None,
    })
}

fn walk(setup: &Setup) {
    let seed = fastrand::u64(..);
    println!("{}: seed {seed}", setup.title);
    let mut rng = Rng::with_seed(seed);
    let mut replayer = Replayer::start(setup.names.into(), CLIENTS);
    let judged = env::var("PROTOCOL").is_ok_and(|which| which == "full");
    let (mut steps, mut calls, mut walks) = (0, 0, 0);
    while steps < STEPS {
        replayer.start_anew();
        let mut world = World::new(setup);
        world.clock = replayer.now();
        let mut walk = Walk {
            setup,
            world,
            replayer: &mut replayer,
            steps: 0,
            calls: 0,
            told: Vec::new(),
            judged,
        };
        walk.go(&mut rng);
        steps += walk.steps;
        calls += walk.calls;
        walks += 1;
    }
    println!(
        "{}: {steps} steps of {walks} walks, {calls} scripts",
        setup.title
    );
    assert!(calls > CALLS, "only {calls}");
}

#[test]
fn walks_for_an_exclusive_lock_agree_with_the_server() {
    walk(&WALKS[0]);
}

#[test]
fn walks_for_a_lock_that_is_read_agree_with_the_server() {
    walk(&WALKS[1]);
}

#[test]
fn walks_for_permits_agree_with_the_server() {
    walk(&WALKS[2]);
}

#[test]
fn walks_for_two_names_agree_with_the_server() {
    walk(&WALKS[3]);
}
