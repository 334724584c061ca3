//! Random sequences of calls, deaths and losses, next to a model of the lock and its line.
//!
//! The model is exact: after each step it knows who holds the lock and how, the tokens, the lines in their order, who
//! is told what, the value, and how long each key lasts. To be so without waiting, heartbeats are due in ages or are
//! overdue at once, and leases last for ages or are over at once.

use std::cell::RefCell;
use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use self::world::{After, NAMES, SHORT, World, is_valued, ttl, unsigned};
use super::bench::{Acquired, Bench};
use super::seen::Ears;
use super::steps::{
    CONNECTED, FORBIDDEN, INBOXES, Inbox, Kind, OWNERS, Owner, Step, Waits, sequences,
};
use super::support::RedisServer;

#[path = "model/agreement.rs"]
mod agreement;
#[path = "model/events.rs"]
mod events;
#[path = "model/line.rs"]
mod line;
#[path = "model/world.rs"]
mod world;

/// What the lock's key says.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lock {
    Owner(Owner),
    Foreign,
    Readers,
    Permits,
}

/// Of one who shares the lock.
#[derive(Clone, Debug)]
struct Lease {
    owner: Owner,
    count: u64,
    /// For how long; 0 when it is over.
    lasts: i64,
}

#[derive(Clone, Debug)]
struct Waiter {
    inbox: Inbox,
    overdue: bool,
    kind: Kind,
    ttl: i64,
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

/// One who was let in, in this step.
#[derive(Debug)]
struct Grant {
    owner: Owner,
    /// Where it is told.
    told: Option<Inbox>,
    /// Whether it knows its token.
    knows: bool,
}

/// What the server is expected to know, and what its clients were told.
#[derive(Debug)]
struct Model {
    kinds: [Kind; OWNERS],
    lock: Option<Lock>,
    /// How long the lock lasts, in milliseconds; -1 when it doesn't end.
    lasts: i64,
    /// Those that share the lock, or shared it when somebody deleted it.
    leases: Vec<Lease>,
    leases_last: i64,
    /// `None`: lost, or never there.
    counter: Option<u64>,
    queue: Vec<Owner>,
    crowd: Vec<Owner>,
    /// Of those in line, and of those that were in it when it was lost.
    waiters: BTreeMap<Owner, Waiter>,
    value: Option<String>,
    values: usize,
    /// The last token of each owner, if it was told.
    told: [Option<u64>; OWNERS],
    /// The largest token that was used.
    largest: u64,
    /// Whether the last exclusive holder went without a release, and no other was told.
    abandoned: bool,
    /// Whether others were let in since.
    is_shared_since: bool,
    open: [bool; CONNECTED],
    /// Those let in by this step.
    granted: Vec<Grant>,
    /// The messages of this step: inbox, owner and token.
    messages: Vec<(Inbox, Owner, u64)>,
    /// Whether this step let in those that could be.
    served: bool,
    /// Whether the lines and who is in them are no longer from the same steps.
    torn: bool,
}

impl Model {
    fn new(kinds: [Kind; OWNERS]) -> Self {
        Model {
            kinds,
            lock: None,
            lasts: 0,
            leases: Vec::new(),
            leases_last: 0,
            counter: None,
            queue: Vec::new(),
            crowd: Vec::new(),
            waiters: BTreeMap::new(),
            value: None,
            values: 0,
            told: [None; OWNERS],
            largest: 0,
            abandoned: false,
            is_shared_since: false,
            open: [true; CONNECTED],
            granted: Vec::new(),
            messages: Vec::new(),
            served: false,
            torn: false,
        }
    }

    fn apply(&mut self, step: Step, world: &mut World<'_>) {
        self.messages.clear();
        self.served = false;
        let after = match step {
            Step::Ask {
                owner,
                waits,
                short,
            } => self.acquire(owner, waits, Self::ttl_of(owner, short), world),
            Step::Renew { owner, store } => self.renew(owner, store, world),
            Step::Release { owner, more, store } => {
                let owner = self.who(owner);
                match self.told[owner] {
                    Some(token) => self.release(owner, Some(token + 2 * more), store, world),
                    None => self.release(owner, None, store, world),
                }
            }
            Step::GiveUp { owner, store } => self.release(self.who(owner), None, store, world),
            Step::Downgrade { owner, more, store } => {
                self.downgrade(self.who(owner), more, store, world)
            }
            Step::CountPermits => self.count_permits(world),
            event => {
                self.suffer(event, world);
                world.after()
            }
        };
        self.assert_agrees(&after);
    }

    /// Whoever holds the lock, if nobody else is named.
    fn who(&self, owner: Option<Owner>) -> Owner {
        let holder = match self.lock {
            Some(Lock::Owner(owner)) => Some(owner),
            _ => self.leases.first().map(|lease| lease.owner),
        };
        owner.or(holder).unwrap_or(0)
    }

    // What is held

    /// Forgets leases that are over, as whoever looks at a lock that is shared does.
    fn look(&mut self) {
        if self.is_marked_as_shared() {
            self.leases.retain(|lease| lease.lasts > 0);
        }
    }

    fn is_marked_as_shared(&self) -> bool {
        matches!(self.lock, Some(Lock::Readers | Lock::Permits))
    }

    fn held(&self) -> Option<Lock> {
        let is_nobodys = self.is_marked_as_shared() && self.leases.is_empty();
        self.lock.filter(|_| !is_nobodys)
    }

    fn shares(&self, owner: Owner) -> bool {
        self.is_marked_as_shared() && self.leases.iter().any(|lease| lease.owner == owner)
    }

    /// Whether the last that was let in was an exclusive holder, which didn't release.
    fn is_after_exclusive(&self) -> bool {
        self.held().is_none() && self.abandoned && !self.is_shared_since
    }

    // What scripts do

    fn acquire(&mut self, owner: Owner, waits: Waits, ttl: i64, world: &mut World) -> After {
        let answer = world.ask(owner, self.kinds[owner], ttl, waits);
        let after = world.after();
        let crowded = self.is_crowded();
        self.look();
        let after_exclusive = self.is_after_exclusive();
        if self.take(owner, ttl, after_exclusive) {
            self.settle(&after);
            self.assert_granted(owner, &answer);
            self.end_short();
            return after;
        }
        let mut stood = None;
        if let Waits::Yes(inbox) | Waits::AndDies(inbox) = waits {
            stood = Some(self.enter(owner, ttl, waits, &after));
            // While others were let in it lived.
            self.served &= !self.waiters[&owner].overdue && self.ear(inbox) != Ear::Gone;
        } else if crowded {
            self.leave(owner);
            self.serve(None, after_exclusive);
        }
        self.settle(&after);
        self.assert_taken(stood, answer);
        self.end_short();
        after
    }

    /// Says whether the owner has it.
    fn take(&mut self, owner: Owner, ttl: i64, after_exclusive: bool) -> bool {
        let kind = self.kinds[owner];
        if self.lock == Some(Lock::Owner(owner)) {
            self.lasts = ttl;
            if self.counter.is_none() {
                self.grant(owner, kind, ttl, None, true);
            } else {
                self.told[owner] = self.counter;
            }
            return true;
        }
        if self.shares(owner) {
            self.grant(owner, kind, ttl, None, true);
            return true;
        }
        let crowded = self.is_crowded();
        if crowded && self.serve(Some(owner), after_exclusive) {
            return true;
        }
        let may_go_first = kind == Kind::EagerReader || self.queue.is_empty();
        let is_in = may_go_first && self.fits(kind);
        if is_in {
            if crowded {
                self.leave(owner);
            }
            self.grant(owner, kind, ttl, None, true);
        }
        is_in
    }

    fn renew(&mut self, owner: Owner, store: bool, world: &mut World) -> After {
        let value = self.value_of(owner, store);
        let mode = self.kinds[owner].held_text();
        let lasts = ttl(owner);
        let renewed = world
            .bench
            .renew_as(&mode, NAMES[owner], unsigned(lasts), value.as_deref());
        let expected = if self.kinds[owner].is_exclusive() {
            self.lock == Some(Lock::Owner(owner))
        } else {
            let lives = |lease: &Lease| lease.owner == owner && lease.lasts > 0;
            self.is_marked_as_shared() && self.leases.iter().any(lives)
        };
        assert_eq!(renewed, expected);
        if renewed && self.kinds[owner].is_exclusive() {
            self.lasts = lasts;
            self.value = value.or(self.value.take());
        } else if renewed {
            let mut leases = self.leases.iter_mut();
            let own = leases.find(|lease| lease.owner == owner);
            own.expect("it shares").lasts = lasts;
            self.keep(self.last_end());
        }
        world.after()
    }

    /// What it writes, if it writes.
    fn value_of(&mut self, owner: Owner, store: bool) -> Option<String> {
        (store && is_valued(owner)).then(|| {
            self.values += 1;
            format!("{{\"number\":{}}}", self.values)
        })
    }

    /// Without a token it gives up, and leaves the line.
    fn release(
        &mut self,
        owner: Owner,
        last_used: Option<u64>,
        store: bool,
        world: &mut World,
    ) -> After {
        let value = self.value_of(owner, store);
        let mode = self.kinds[owner].held_text();
        let answer = world
            .bench
            .release_answer(&mode, NAMES[owner], last_used, value.as_deref());
        let released = answer == 1;
        let after = world.after();
        if self.kinds[owner].is_exclusive() {
            let held = self.lock == Some(Lock::Owner(owner));
            let counter = last_used.map(|last| last + 1);
            let done_before = counter.is_some() && self.counter == counter;
            assert_eq!(released, held || done_before);
            let others_came = !held && counter.is_some() && self.counter > counter;
            assert_eq!(answer == 2, others_came);
            if held {
                self.value = value.or(self.value.take());
            }
            self.end_exclusive(owner, held, last_used);
        } else {
            assert_eq!(released, self.shares(owner));
            self.end_shared(owner, released);
        }
        self.settle(&after);
        self.end_short();
        after
    }

    fn end_exclusive(&mut self, owner: Owner, held: bool, last_used: Option<u64>) {
        let crowded = self.is_crowded();
        if held {
            self.lock = None;
            self.free(last_used);
            self.told[owner] = last_used.or(self.told[owner]);
        } else {
            self.look();
            self.leave(owner);
            if last_used.is_some() {
                return;
            }
        }
        if crowded {
            self.serve(None, held || self.is_after_exclusive());
        }
    }

    /// What the counter becomes.
    fn free(&mut self, last_used: Option<u64>) {
        self.is_shared_since = false;
        if let Some(last_used) = last_used {
            self.abandoned = false;
            self.largest = self.largest.max(last_used);
            self.counter = Some(last_used + 1);
            return;
        }
        // Nobody has worked since: what the holder before left behind is still to be told.
        let kept = self.counter.unwrap_or(0);
        self.abandoned = kept % 4 == 3;
        if kept % 4 == 1 {
            self.counter = Some(kept + 1);
        }
    }

    fn end_shared(&mut self, owner: Owner, was_held: bool) {
        let crowded = self.is_crowded();
        if was_held {
            self.leases.retain(|lease| lease.owner != owner);
        }
        self.look();
        if was_held {
            self.keep(self.last_end());
        }
        if crowded {
            self.leave(owner);
            self.serve(None, self.is_after_exclusive());
        }
    }

    fn downgrade(&mut self, owner: Owner, more: u64, store: bool, world: &mut World) -> After {
        let Some(told) = self.told[owner] else {
            // It would ask first.
            return world.after();
        };
        let value = self.value_of(owner, store);
        let (last_used, lasts) = (told + 2 * more, ttl(owner));
        let answer =
            world
                .bench
                .downgrade(NAMES[owner], last_used, unsigned(lasts), value.as_deref());
        let after = world.after();
        self.look();
        let held = self.lock == Some(Lock::Owner(owner));
        if !held && (!self.shares(owner) || self.lock != Some(Lock::Readers)) {
            assert_eq!(answer, None);
            return after;
        }
        if held {
            self.lock = None;
            self.value = value.or(self.value.take());
            self.free(Some(last_used));
            self.kinds[owner] = Kind::Reader;
        }
        self.grant(owner, Kind::Reader, lasts, None, true);
        self.serve(None, true);
        self.settle(&after);
        assert_eq!(answer, self.told[owner]);
        self.end_short();
        after
    }

    fn count_permits(&mut self, world: &mut World) -> After {
        let permits = world.bench.permits();
        self.look();
        let expected = match self.held() {
            None => 0,
            Some(Lock::Permits) => self.used().try_into().expect("few"),
            Some(_) => -1,
        };
        assert_eq!(permits, expected);
        world.after()
    }
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
    let outcome = TestRunner::new(config).run(&sequences(), |(kinds, steps)| {
        let world = &mut *world.borrow_mut();
        world.start_anew();
        let mut model = Model::new(kinds);
        for step in steps {
            model.apply(step, world);
        }
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}
