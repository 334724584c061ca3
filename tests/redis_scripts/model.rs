//! Random sequences of calls, deaths and losses, next to a model of the lock and its line.
//!
//! The model is exact: after each step it knows the holder, the token, the line in its order, who is told what, and
//! how long each key lasts. To be so without waiting, heartbeats are due in ages or are overdue at once.

use std::cell::RefCell;
use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::COUNTER_TTL;
use super::bench::{Acquired, Ask, Bench, Ears, Seen, next_token};
use super::steps::{CONNECTED, FORBIDDEN, INBOXES, Inbox, OWNERS, Owner, Step, steps};
use super::support::RedisServer;

/// Far more than a sequence takes, and far less than the differences between what is expected.
const SLACK: i64 = 100_000;
const FOREIGN_TTL: i64 = 1_000_000;
const FOREIGN: &str = "foreign";
const NAMES: [&str; OWNERS] = ["a/1", "b/2", "c/3", "d/4", "e/5", "f/6"];

/// In milliseconds, as all times here.
fn ttl(owner: Owner) -> i64 {
    const TTLS: [i64; OWNERS] = [4, 6, 8, 10, 12, 14];
    TTLS[owner] * 1_000_000
}

/// When the next heartbeat is overdue: sooner than the ttl, or later.
fn promise(owner: Owner) -> i64 {
    if owner % 3 == 2 {
        ttl(owner) * 2
    } else {
        ttl(owner) / 2
    }
}

fn unsigned(number: i64) -> u64 {
    number.try_into().expect("it isn't negative")
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Holder {
    Owner(Owner),
    Foreign,
}

#[derive(Clone, Debug)]
struct Waiter {
    inbox: Inbox,
    overdue: bool,
    /// As the server has it, from when it was checked.
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Ear {
    Hears,
    /// Its connection is gone.
    Gone,
    /// It has none, or it mustn't be told.
    Deaf,
}

/// What the server is expected to know, and what its clients were told.
#[derive(Debug, Default)]
struct Model {
    holder: Option<Holder>,
    /// How long the lock lasts, in milliseconds; -1 when it doesn't end.
    lasts: i64,
    /// `None`: lost, or never there.
    counter: Option<u64>,
    line: Vec<Owner>,
    /// Of those in line, and of those that were in it when it was lost.
    waiters: BTreeMap<Owner, Waiter>,
    /// The last token of each owner, if it was told.
    told: [Option<u64>; OWNERS],
    /// The largest token that was used.
    largest: u64,
    /// Whether the last holder went without a release, and that wasn't told yet.
    abandoned: bool,
    open: [bool; CONNECTED],
    /// The messages of this step: inbox, owner and token.
    messages: Vec<(Inbox, Owner, u64)>,
    /// Whether the line and who is in it are no longer from the same steps.
    torn: bool,
}

/// What there is in the server's stead: the scripts, the subscriber, and what was seen last.
struct World<'a> {
    bench: Bench,
    ears: Ears<'a>,
    before: u64,
}

/// What there was to see after a step.
struct After {
    seen: Seen,
    heard: Vec<(String, String)>,
    /// The server's clock before the step.
    before: u64,
}

impl World<'_> {
    fn after(&mut self) -> After {
        let seen = self.bench.seen();
        let before = std::mem::replace(&mut self.before, seen.micros);
        let heard = self.ears.heard(&mut self.bench);
        After {
            seen,
            heard,
            before,
        }
    }

    fn start_anew(&mut self) {
        for key in self.bench.keys() {
            self.bench.delete(&key);
        }
        for inbox in &INBOXES[..CONNECTED] {
            self.ears.open(inbox);
        }
        self.after();
    }
}

impl Model {
    fn new() -> Self {
        Model {
            open: [true; CONNECTED],
            ..Model::default()
        }
    }

    fn apply(&mut self, step: Step, world: &mut World<'_>) {
        self.messages.clear();
        let after = match step {
            Step::Try(owner) => self.acquire(owner, None, world),
            Step::Wait(owner, inbox) => self.acquire(owner, Some((inbox, false)), world),
            Step::WaitAndDie(owner, inbox) => self.acquire(owner, Some((inbox, true)), world),
            Step::Renew(owner) => self.renew(owner, world),
            Step::Release(owner, more) => self.release(self.who(owner), more, world),
            Step::GiveUp(owner) => self.give_up(self.who(owner), world),
            event => {
                self.suffer(event, world);
                world.after()
            }
        };
        self.assert_matches(&after);
    }

    /// Whoever holds the lock, if nobody else is named.
    fn who(&self, owner: Option<Owner>) -> Owner {
        match (owner, self.holder) {
            (Some(owner), _) | (None, Some(Holder::Owner(owner))) => owner,
            _ => 0,
        }
    }

    // What scripts do

    fn acquire(&mut self, owner: Owner, waits: Option<(Inbox, bool)>, world: &mut World) -> After {
        let promise = unsigned(promise(owner));
        let ask = match waits {
            None => Ask::once(NAMES[owner]),
            Some((inbox, true)) => Ask::waiting(NAMES[owner], 0, INBOXES[inbox]),
            Some((inbox, false)) => Ask::waiting(NAMES[owner], promise, INBOXES[inbox]),
        };
        let answer = world.bench.ask(ask.with_ttl(unsigned(ttl(owner))));
        let after = world.after();
        assert!(after.seen.holder.is_some(), "it was free, and isn't now");

        let crowded = !self.line.is_empty();
        let had = self.holder == Some(Holder::Owner(owner));
        let free = self.holder.is_none();
        if had && self.counter.is_some() {
            self.lasts = ttl(owner);
        } else if had || free && !self.serve(Some(owner), 0, &after) {
            self.grant(owner, ttl(owner), 0, &after);
        }
        if self.holder == Some(Holder::Owner(owner)) {
            self.told[owner] = self.counter;
            assert_eq!(answer, Acquired::Token(self.counter.expect("granted")));
            return after;
        }
        match answer {
            Acquired::Taken { remaining, counter } => {
                assert_lasts(remaining, self.lasts);
                assert_eq!(counter, self.counter.unwrap_or(0));
            }
            granted @ Acquired::Token(_) => panic!("{granted:?}"),
        }
        match waits {
            Some((inbox, overdue)) => self.enter(owner, inbox, overdue, &after),
            // Without a line it isn't looked for in the other key.
            None if !crowded => {}
            None => self.leave(owner),
        }
        after
    }

    fn renew(&mut self, owner: Owner, world: &mut World) -> After {
        let held = self.holder == Some(Holder::Owner(owner));
        let renewed = world.bench.renew(NAMES[owner], unsigned(ttl(owner)));
        assert_eq!(renewed, held);
        if held {
            self.lasts = ttl(owner);
        }
        world.after()
    }

    fn release(&mut self, owner: Owner, hand_overs: u64, world: &mut World) -> After {
        let held = self.holder == Some(Holder::Owner(owner));
        let Some(token) = self.told[owner] else {
            return self.give_up(owner, world);
        };
        let last_used = token + 2 * hand_overs;
        let released = world.bench.release(NAMES[owner], Some(last_used));
        let done_before = self.counter == Some(last_used + 1);
        assert_eq!(released, held || done_before);
        let after = world.after();
        if held {
            self.told[owner] = Some(last_used);
            self.largest = self.largest.max(last_used);
            self.abandoned = false;
            let others = !self.line.is_empty();
            if !self.free(last_used + 1, &after) && (others || self.counter.is_some()) {
                self.counter = Some(last_used + 1);
            }
        }
        after
    }

    fn give_up(&mut self, owner: Owner, world: &mut World) -> After {
        let held = self.holder == Some(Holder::Owner(owner));
        assert_eq!(world.bench.release(NAMES[owner], None), held);
        let after = world.after();
        if !held {
            self.leave(owner);
            if self.holder.is_none() {
                self.serve(None, self.counter.unwrap_or(0), &after);
            }
            return after;
        }
        // Nobody has worked since: what the holder before left behind is still to be told.
        let kept = self.counter.unwrap_or(0);
        self.abandoned = kept % 4 == 3;
        let clean = if kept % 4 == 1 { kept + 1 } else { kept };
        if !self.free(clean, &after) && self.counter.is_some() {
            self.counter = Some(clean);
        }
        after
    }

    /// The lock is its holder's no more, and the first in line's, if there is one. Says whether there is.
    fn free(&mut self, counter: u64, after: &After) -> bool {
        let (seen, nobody) = (&after.seen, after.seen.line.is_empty());
        assert!(seen.holder.is_some() || nobody, "free, with a line");
        self.holder = None;
        self.serve(None, counter, after)
    }

    /// Gives the lock to the first in line that is there, and says whether there is one.
    fn serve(&mut self, asking: Option<Owner>, released: u64, after: &After) -> bool {
        let is_there = |owner: &Owner| {
            self.lives(*owner, asking)
                && (asking == Some(*owner) || self.ear(self.waiters[owner].inbox) != Ear::Gone)
        };
        let first = self.line.iter().position(is_there);
        let passed_over = first.unwrap_or(self.line.len());
        for owner in self.line.drain(..passed_over) {
            self.waiters.remove(&owner);
        }
        let Some(&owner) = self.line.first() else {
            return false;
        };
        let inbox = self.waiters[&owner].inbox;
        self.leave(owner);
        let ear = self.ear(inbox);
        let lasts = if asking != Some(owner) && ear == Ear::Deaf {
            ttl(owner).min(promise(owner))
        } else {
            ttl(owner)
        };
        let token = self.grant(owner, lasts, released, after);
        if asking != Some(owner) && ear == Ear::Hears {
            self.messages.push((inbox, owner, token));
            self.told[owner] = Some(token);
        }
        true
    }

    /// The token is the next after what the counter holds, or would hold after the release.
    fn grant(&mut self, owner: Owner, lasts: i64, released: u64, after: &After) -> u64 {
        let stored = match released {
            0 => self.counter.unwrap_or(0),
            counter => counter,
        };
        let token = after.seen.counter.expect("a token was counted");
        let expected = next_token(stored, after.before)..=next_token(stored, after.seen.micros);
        assert!(expected.contains(&token), "{token} after {stored}");
        assert!(token > self.largest, "{token} after {}", self.largest);
        assert_eq!(token % 4, if self.abandoned { 3 } else { 1 });
        self.holder = Some(Holder::Owner(owner));
        self.lasts = lasts;
        self.counter = Some(token);
        self.told[owner] = None;
        self.largest = token;
        self.abandoned = false;
        token
    }

    // The line

    fn enter(&mut self, owner: Owner, inbox: Inbox, overdue: bool, after: &After) {
        let text = after.seen.waiters[NAMES[owner]].clone();
        let (moment, rest) = text.split_once(' ').expect("three words");
        let promise = if overdue { 0 } else { unsigned(promise(owner)) };
        let expected = after.before / 1_000 + promise..=after.seen.micros / 1_000 + promise;
        assert!(expected.contains(&moment.parse().expect("a number")));
        assert_eq!(rest, format!("{} {}", ttl(owner), INBOXES[inbox]));
        let waiter = Waiter {
            inbox,
            overdue,
            text,
        };
        self.waiters.insert(owner, waiter);
        if !self.line.contains(&owner) {
            self.line.push(owner);
        }
        while !self.lives(self.line[0], Some(owner)) {
            self.leave(self.line[0]);
        }
    }

    fn leave(&mut self, owner: Owner) {
        self.line.retain(|other| *other != owner);
        self.waiters.remove(&owner);
    }

    fn lives(&self, owner: Owner, asking: Option<Owner>) -> bool {
        let waiter = self.waiters.get(&owner);
        waiter.is_some_and(|waiter| !waiter.overdue || asking == Some(owner))
    }

    fn ear(&self, inbox: Inbox) -> Ear {
        match INBOXES[inbox] {
            FORBIDDEN | "" => Ear::Deaf,
            _ if self.open.get(inbox) == Some(&true) => Ear::Hears,
            _ => Ear::Gone,
        }
    }

    // What nobody asked for

    fn suffer(&mut self, event: Step, world: &mut World) {
        let [lock, fence, queue, waiters] = world.bench.keys();
        match event {
            Step::LoseHolder => {
                world.bench.delete(&lock);
                if let Some(Holder::Owner(_)) = self.holder {
                    // A server without the counter can't know.
                    self.abandoned = self.counter.is_some();
                }
                self.holder = None;
            }
            Step::ForeignLock { expires } => {
                let ttl = FOREIGN_TTL.to_string();
                let words = ["SET", &lock, FOREIGN, "NX", "PX", &ttl];
                let words = if expires { &words[..] } else { &words[..4] };
                world.bench.query::<()>(words);
                if self.holder.is_none() {
                    self.holder = Some(Holder::Foreign);
                    self.lasts = if expires { FOREIGN_TTL } else { -1 };
                }
            }
            Step::LoseCounter => {
                // Leases that end by themselves take longer than tokens are skipped, unlike here.
                world.bench.wait_for_clock(self.largest + 16);
                world.bench.delete(&fence);
                self.counter = None;
                self.abandoned = false;
            }
            Step::LoseLine => {
                world.bench.delete(&queue);
                self.line.clear();
                self.torn = true;
            }
            Step::LoseWaiters => {
                world.bench.delete(&waiters);
                self.waiters.clear();
                self.torn = true;
            }
            Step::Close(inbox) => {
                world.ears.close(INBOXES[inbox]);
                self.open[inbox] = false;
            }
            Step::Open(inbox) => {
                world.ears.open(INBOXES[inbox]);
                self.open[inbox] = true;
            }
            call => panic!("{call:?}"),
        }
    }

    // What is seen

    fn assert_matches(&self, after: &After) {
        let seen = &after.seen;
        let holder = self.holder.map(|holder| match holder {
            Holder::Owner(owner) => NAMES[owner],
            Holder::Foreign => FOREIGN,
        });
        assert_eq!(seen.holder.as_deref(), holder);
        assert_eq!(seen.counter, self.counter);
        let line: Vec<_> = self.line.iter().map(|owner| NAMES[*owner]).collect();
        assert_eq!(seen.line, line);
        let waiters = self.waiters.iter();
        let waiters = waiters.map(|(owner, waiter)| (NAMES[*owner].to_owned(), &waiter.text));
        assert!(
            waiters.eq(seen
                .waiters
                .iter()
                .map(|(owner, text)| (owner.clone(), text)))
        );
        let messages = self.messages.iter();
        let messages = messages.map(|(inbox, owner, token)| {
            let text = format!("{} {token}", NAMES[*owner]);
            (INBOXES[*inbox].to_owned(), text)
        });
        assert_eq!(after.heard, messages.collect::<Vec<_>>());
        self.assert_promises(seen);
    }

    /// What always holds, whatever the model says.
    fn assert_promises(&self, seen: &Seen) {
        assert_lasts(
            seen.pttls[0],
            if self.holder.is_some() {
                self.lasts
            } else {
                -2
            },
        );
        for pttl in &seen.pttls[1..] {
            assert!(*pttl == -2 || (0..=COUNTER_TTL).contains(pttl), "{seen:?}");
        }
        if !self.torn {
            seen.line();
        }
        if let (Some(Holder::Owner(owner)), Some(counter)) = (self.holder, self.counter) {
            assert_eq!(counter % 2, 1, "odd while held");
            assert!(!seen.line.contains(&NAMES[owner].to_owned()));
        }
    }
}

#[track_caller]
fn assert_lasts(pttl: i64, expected: i64) {
    let least = if expected < 0 {
        expected
    } else {
        expected - SLACK
    };
    assert!((least..=expected).contains(&pttl), "{pttl}, not {expected}");
}

#[test]
fn any_sequence_of_calls_deaths_and_losses_agrees_with_the_model() {
    let server = RedisServer::start();
    let mut connection = server.connection();
    let mut bench = Bench::new(&server);
    bench.may_publish_only_to("inbox:*");
    let world = RefCell::new(World {
        ears: Ears::on(&mut connection, &[FORBIDDEN]),
        before: bench.micros(),
        bench,
    });
    let config = ProptestConfig {
        cases: 800,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let outcome = TestRunner::new(config).run(&steps(), |steps| {
        let world = &mut *world.borrow_mut();
        world.start_anew();
        let mut model = Model::new();
        for step in steps {
            model.apply(step, world);
        }
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}
