//! What always holds, and who watches it: one judge, who is told of what the threads do, and sees the server.

use arrayvec::ArrayVec;

use super::lease::Guard;
use super::process::{Number, Process};
use super::server::{Ending, OTHERS, Server, is_other};
use super::{HALF_TTL, HAND_OVER, OWNERS, Owner, Owners, Setup, TTL, Ticks, Token, all};

/// A rule of how a place or a lease passes between threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// A guard that says it is held has the lock, and is the only one, but for one whose lock was deleted.
    Exclusion,
    /// An owner is in one place of the process: in a thread's place, in a lease, or in a release.
    OneHome,
    /// Every owner of the process that the server knows is in something that ends with its release, but for one whose
    /// lock was deleted. After a crash a lock ends with its ttl.
    NothingLeft,
    /// One thread or guard has the seat while there is a queue, and no lease that is known to be lost keeps it.
    Seat,
    /// The seat goes to the thread that waits for longest.
    LocalOrder,
    /// The process doesn't take its owner out of the line while a thread waits that can have the place.
    PlaceKept,
    /// A call that doesn't ask once more is told that the lock is taken only if it was, at some time since its process
    /// had to find that out anew. No call is told so before its time is over.
    Taken,
    /// Each holder's token is above those before, a hand-over raises it by 2, at most so often, and the release brings
    /// the last one.
    Tokens,
    /// A lease is handed over while it may be, and only then: in time, with half of its ttl left, and by no panic.
    HandOver,
    /// While another process waits in the server's line, the lock is granted here only to who stood before it.
    Turn,
}

/// What is known of the lease of an owner, since a guard had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Record {
    /// The last that was used.
    token: Token,
    age: Ticks,
    hand_overs: Token,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Judge {
    /// A bit for each rule.
    broken: u16,
    /// The threads that wait in the local queue, as they came.
    waiting: ArrayVec<Number, 3>,
    /// Whether the lock was taken at some time since the process knew nothing of it.
    was_taken: bool,
    /// For each of the other processes that waits in the server's line: who stands there since before it came.
    before: [Option<Owners>; OTHERS as usize],
    /// Owners whose lock was deleted.
    deleted: Owners,
    /// How long ago the process crashed.
    crashed_for: Ticks,
    leases: [Option<Record>; OWNERS as usize],
    /// The largest token of a guard.
    highest: Token,
}

impl Rule {
    pub fn name(self) -> &'static str {
        match self {
            Rule::Exclusion => "exclusion",
            Rule::OneHome => "one home",
            Rule::NothingLeft => "nothing left",
            Rule::Seat => "seat",
            Rule::LocalOrder => "local order",
            Rule::PlaceKept => "place kept",
            Rule::Taken => "taken",
            Rule::Tokens => "tokens",
            Rule::HandOver => "hand-over",
            Rule::Turn => "turn",
        }
    }
}

impl Judge {
    pub fn new() -> Self {
        Judge {
            broken: 0,
            waiting: ArrayVec::new(),
            was_taken: false,
            before: [None; OTHERS as usize],
            deleted: 0,
            crashed_for: 0,
            leases: [None; OWNERS as usize],
            highest: 0,
        }
    }

    pub fn is_broken(&self, rule: Rule) -> bool {
        self.broken & (1 << rule as u16) != 0
    }

    pub fn is_any_broken(&self) -> bool {
        self.broken != 0
    }

    fn check(&mut self, rule: Rule, holds: bool) {
        if !holds {
            self.broken |= 1 << rule as u16;
        }
    }

    // The local queue

    pub fn waits(&mut self, thread: Number) {
        self.waiting.push(thread);
    }

    pub fn leaves(&mut self, thread: Number) {
        self.waiting.retain(|one| *one != thread);
    }

    pub fn is_given_seat(&mut self, thread: Number) {
        self.check(Rule::LocalOrder, self.waiting.first() == Some(&thread));
        self.leaves(thread);
    }

    /// The seat went to one who is to ask, a question wasn't answered, or a lease ran out on its way.
    pub fn knows_nothing(&mut self) {
        self.was_taken = false;
    }

    /// A call that doesn't ask once more is told that the lock is taken.
    pub fn says_taken(&mut self) {
        self.check(Rule::Taken, self.was_taken);
    }

    /// A call ends as one that found the lock taken.
    pub fn ends_as_taken(&mut self, is_over: bool) {
        self.check(Rule::Taken, is_over);
    }

    /// A place ends its wait. `leaves_line`: by a command that takes its owner out of the line.
    pub fn place_ends(&mut self, leaves_line: bool, has_successor: bool) {
        self.check(Rule::PlaceKept, !(leaves_line && has_successor));
    }

    // Leases

    pub fn guard_begins(&mut self, guard: &Guard) {
        let lease = &guard.lease;
        self.was_taken |= guard.seat;
        let known = self.record(lease.owner);
        let is_raised = lease.token > self.highest || self.is_deleted(lease.owner);
        let is_next = known.is_none_or(|record| record.token == lease.token);
        self.check(Rule::Tokens, is_raised && is_next);
        self.check(Rule::HandOver, lease.left > 0);
        self.highest = self.highest.max(lease.token);
        self.leases[usize::from(lease.owner)] = known.or(Some(Record {
            token: lease.token,
            age: 0,
            hand_overs: 0,
        }));
    }

    pub fn is_handed_over(&mut self, owner: Owner, panicked: bool, server: &Server, setup: &Setup) {
        let lasts = server.lock.filter(|lock| lock.owner == owner);
        let lasts_long = lasts.is_some_and(|lock| lock.lasts >= HALF_TTL) || self.is_deleted(owner);
        let Some(record) = &mut self.leases[usize::from(owner)] else {
            return self.check(Rule::HandOver, false);
        };
        record.token += 2;
        record.hand_overs += 1;
        let (in_time, is_one_more) = (
            record.age < HAND_OVER,
            record.hand_overs <= setup.hand_overs,
        );
        self.check(Rule::HandOver, in_time && lasts_long && !panicked);
        self.check(Rule::Tokens, is_one_more);
    }

    pub fn releases(&mut self, owner: Owner, ending: Ending) {
        if let Some(last_used) = ending.last_used() {
            let record = self.record(owner);
            let is_last = record.is_some_and(|record| record.token == last_used);
            self.check(Rule::Tokens, is_last);
        }
    }

    fn record(&self, owner: Owner) -> Option<Record> {
        self.leases[usize::from(owner)]
    }

    // The world

    pub fn deletes(&mut self, owner: Owner) {
        self.deleted |= 1 << owner;
    }

    fn is_deleted(&self, owner: Owner) -> bool {
        self.deleted & (1 << owner) != 0
    }

    pub fn crashes(&mut self) {
        self.waiting.clear();
    }

    pub fn tick(&mut self, server: &Server) {
        if !server.hears {
            self.crashed_for = (self.crashed_for + 1).min(TTL);
        }
        for record in self.leases.iter_mut().flatten() {
            record.age = (record.age + 1).min(HAND_OVER);
        }
    }

    /// Looks at everything, after each step.
    pub fn look(&mut self, before: &Server, server: &Server, process: &Process) {
        self.was_taken |= server.lock.is_some();
        self.look_at_turns(before, server);
        self.look_at_guards(server, process);
        self.look_at_owners(server, process);
        self.look_at_seat(process);
    }

    fn look_at_turns(&mut self, before: &Server, server: &Server) {
        let granted = server
            .lock
            .map(|lock| lock.owner)
            .filter(|owner| !before.is_held_by(*owner));
        if let Some(owner) = granted {
            let mut before = self.before.iter().flatten();
            let stood = before.all(|before| before & (1 << owner) != 0);
            self.check(Rule::Turn, stood || is_other(owner));
        }
        let line = all(server.line.iter().map(|waiter| waiter.owner));
        for (before, other) in self.before.iter_mut().zip(0..) {
            *before = server
                .has_in_line(other)
                .then(|| before.unwrap_or(line) & line);
        }
    }

    fn look_at_guards(&mut self, server: &Server, process: &Process) {
        let mut valid = 0;
        for guard in process.guards().filter(|guard| guard.is_held()) {
            let owner = guard.lease.owner;
            if !self.is_deleted(owner) {
                valid += 1;
                self.check(Rule::Exclusion, server.is_held_by(owner));
            }
        }
        self.check(Rule::Exclusion, valid <= 1);
    }

    fn look_at_owners(&mut self, server: &Server, process: &Process) {
        let (mut at_home, mut released): (Owners, Owners) = (0, 0);
        for home in process.homes() {
            let bit = 1 << home.owner;
            self.check(Rule::OneHome, at_home & bit == 0);
            at_home |= bit;
            released |= if home.releases { bit } else { 0 };
        }
        if server.hears {
            let known = all(server.owners().filter(|owner| !is_other(*owner)));
            let is_nothing_left = known & !released & !self.deleted == 0;
            self.check(Rule::NothingLeft, is_nothing_left);
        } else if self.crashed_for == TTL {
            let is_free = server.lock.is_none_or(|lock| is_other(lock.owner));
            self.check(Rule::NothingLeft, is_free);
        }
    }

    fn look_at_seat(&mut self, process: &Process) {
        let seats = process.phases().filter(|phase| phase.has_seat()).count();
        self.check(Rule::Seat, seats == usize::from(process.queue.is_some()));
        let mut lost = process.guards().filter(|guard| guard.lost.is_some());
        self.check(Rule::Seat, lost.all(|guard| !guard.seat));
        let waiting = process.queue.as_ref().map(|queue| queue.waiting.len());
        self.check(Rule::Seat, waiting.unwrap_or(0) == self.waiting.len());
    }

    /// Forgets what is known of owners that are gone.
    pub fn forget_but(&mut self, used: Owners) {
        self.deleted &= used;
        for (record, owner) in self.leases.iter_mut().zip(0..) {
            if used & (1 << owner) == 0 {
                *record = None;
            }
        }
    }

    pub fn for_each_token(&mut self, mut change: impl FnMut(&mut Token)) {
        change(&mut self.highest);
        let records = self.leases.iter_mut().flatten();
        records.map(|record| &mut record.token).for_each(change);
    }
}
