//! A server with one lock and its line, and the book in which all that must hold is checked.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{self, Arc, PoisonError};
use std::thread::panicking;

use crate::sync::{Sender, step};

/// So that hand-overs stay below the next grant.
const STEP: u64 = 1000;

/// Where a process hears of a grant.
pub(crate) type Inbox = Arc<Sender<u64>>;

/// What makes an order of steps worth to be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Seen {
    AnswerLost,
    AskedWithoutSeat,
    CancelledInQueue,
    CancelMetTurn,
    ExpiredOnTheWay,
    GivenAtTheLastMoment,
    HandedOver,
    KnownToBeTaken,
    LostWhileOthersWait,
    PlacePassedOn,
    WentAhead,
}

impl Seen {
    pub(crate) const ALL: [Seen; 11] = [
        Seen::AnswerLost,
        Seen::AskedWithoutSeat,
        Seen::CancelledInQueue,
        Seen::CancelMetTurn,
        Seen::ExpiredOnTheWay,
        Seen::GivenAtTheLastMoment,
        Seen::HandedOver,
        Seen::KnownToBeTaken,
        Seen::LostWhileOthersWait,
        Seen::PlacePassedOn,
        Seen::WentAhead,
    ];
}

#[derive(Default)]
pub(crate) struct World(sync::Mutex<Book>);

#[derive(Default)]
pub(crate) struct Book {
    holder: Option<u64>,
    line: VecDeque<(u64, Inbox)>,
    counter: u64,
    owners: u64,
    /// Owners whose lease ended before they released it.
    expired: BTreeSet<u64>,
    /// The tokens of all leases there are.
    leases: BTreeSet<u64>,
    /// The owners that are inside of the lock.
    inside: Vec<u64>,
    last_token: u64,
    seen: BTreeSet<Seen>,
    /// How many questions were asked, and to which of them the answer is lost.
    questions: u32,
    unanswered: Option<u32>,
    /// What happened, counted.
    now: u64,
    processes: BTreeMap<u32, Local>,
}

/// What is known about the threads of one process.
#[derive(Default)]
struct Local {
    /// Whether somebody has the turn.
    seated: bool,
    /// For each thread that waits, when it had entered the queue.
    waiting: BTreeMap<u64, u64>,
    /// Whether who has the turn has said that the lock is taken, how often that was said, and until when it was so.
    claimed: bool,
    claims: u64,
    claimed_until: u64,
}

/// Ownership of the lock. It has to end by a release.
pub(crate) struct Lease {
    world: Arc<World>,
    pub(crate) owner: u64,
    pub(crate) token: u64,
    spent: bool,
}

impl World {
    /// To look something up is no step.
    pub(crate) fn book(&self) -> sync::MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn server(&self) -> sync::MutexGuard<'_, Book> {
        step();
        self.book()
    }

    /// The answer to this question is lost, of all that are asked.
    pub(crate) fn loses_answer(&self, question: u32) {
        self.book().unanswered = Some(question);
    }

    /// Gives a token, or enters the line if `inbox` says where a grant is to be sent.
    pub(crate) fn ask(&self, owner: u64, inbox: Option<&Inbox>) -> Option<u64> {
        let mut book = self.server();
        if book.holder.is_none() && book.line.is_empty() {
            book.holder = Some(owner);
        }
        let stands = book.line.iter().any(|(other, _)| *other == owner);
        if book.holder == Some(owner) {
            return Some(book.next_token());
        }
        match inbox {
            Some(inbox) if !stands => book.line.push_back((owner, inbox.clone())),
            Some(_) => {}
            None => book.line.retain(|(other, _)| *other != owner),
        }
        None
    }

    /// Gives the lock to the next in line, or leaves it.
    pub(crate) fn give_up(&self, owner: u64) {
        let mut book = self.server();
        book.line.retain(|(other, _)| *other != owner);
        if book.holder == Some(owner) {
            grant_next(book);
        }
    }

    /// The lease ends before it is released.
    pub(crate) fn expire(&self, owner: u64) {
        let mut book = self.server();
        if book.holder == Some(owner) {
            book.expired.insert(owner);
            grant_next(book);
        }
    }

    pub(crate) fn release(&self, mut lease: Lease) {
        self.give_up(lease.owner);
        lease.spend();
    }

    pub(crate) fn lease(self: &Arc<Self>, owner: u64, token: u64) -> Lease {
        assert!(self.book().leases.insert(token), "a lease was there twice");
        Lease {
            world: self.clone(),
            owner,
            token,
            spent: false,
        }
    }

    /// Nothing is left. Tells what was seen.
    pub(crate) fn end(&self) -> BTreeSet<Seen> {
        let mut book = self.book();
        assert_eq!((book.holder, book.line.len()), (None, 0));
        assert!(book.leases.is_empty(), "leases left: {:?}", book.leases);
        assert!(book.inside.is_empty());
        for local in book.processes.values() {
            assert!(!local.seated && local.waiting.is_empty());
        }
        std::mem::take(&mut book.seen)
    }
}

/// The next in line hears of it a little later.
fn grant_next(mut book: sync::MutexGuard<'_, Book>) {
    let Some((owner, inbox)) = book.line.pop_front() else {
        book.holder = None;
        return;
    };
    book.holder = Some(owner);
    let token = book.next_token();
    drop(book);
    // It may have given up.
    let _ = inbox.try_send(token);
}

impl Book {
    fn next_token(&mut self) -> u64 {
        self.counter += STEP;
        self.counter
    }

    pub(crate) fn see(&mut self, seen: Seen) {
        self.seen.insert(seen);
    }

    /// Whether an answer that has just come arrives.
    pub(crate) fn answers(&mut self) -> bool {
        self.questions += 1;
        self.unanswered != Some(self.questions)
    }

    pub(crate) fn new_owner(&mut self) -> u64 {
        self.owners += 1;
        self.owners
    }

    pub(crate) fn is_expired(&self, owner: u64) -> bool {
        self.expired.contains(&owner)
    }

    /// Exclusion.
    pub(crate) fn come_in(&mut self, lease: &Lease) {
        if !self.is_expired(lease.owner) {
            let others = self.inside.iter().filter(|one| !self.expired.contains(one));
            assert_eq!(others.count(), 0, "two hold the lock");
            assert!(lease.token > self.last_token, "tokens went back");
            self.last_token = lease.token;
        }
        self.inside.push(lease.owner);
    }

    pub(crate) fn go_out(&mut self, owner: u64) {
        let at = self.inside.iter().position(|one| *one == owner);
        self.inside.remove(at.expect("who goes out was inside"));
    }

    fn local(&mut self, process: u32) -> &mut Local {
        self.now += 1;
        self.processes.entry(process).or_default()
    }

    pub(crate) fn now(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    pub(crate) fn sit(&mut self, process: u32) {
        let local = self.local(process);
        assert!(!local.seated, "two have the turn");
        local.seated = true;
    }

    pub(crate) fn stand_up(&mut self, process: u32) {
        let local = self.local(process);
        assert!(local.seated, "a turn was given twice");
        local.seated = false;
    }

    /// Somebody with the turn says that the lock is taken.
    pub(crate) fn claim(&mut self, process: u32) {
        let local = self.local(process);
        local.claims += 1;
        local.claimed = true;
    }

    /// Whether the lock was said to be taken, and how often by now.
    pub(crate) fn claim_of(&mut self, process: u32) -> (bool, u64) {
        let local = self.local(process);
        (local.claimed, local.claims)
    }

    /// What was said until then is over.
    pub(crate) fn unclaim(&mut self, process: u32, (claimed, claims): (bool, u64)) {
        let now = self.now();
        let local = self.local(process);
        if claimed {
            local.claimed_until = now;
            local.claimed &= local.claims != claims;
        }
    }

    /// Whether somebody of this process said that the lock was taken, since `began`.
    pub(crate) fn was_claimed(&mut self, process: u32, began: u64) -> bool {
        let local = self.local(process);
        local.claimed || local.claimed_until >= began
    }

    pub(crate) fn waits(&mut self, process: u32, began: u64) {
        let now = self.now();
        self.local(process).waiting.insert(began, now);
    }

    pub(crate) fn waits_no_more(&mut self, process: u32, began: u64) {
        self.local(process).waiting.remove(&began);
    }

    /// First come, first served, of those that wait: nobody waits that was in the queue before this thread came.
    pub(crate) fn is_served(&mut self, process: u32, began: u64) {
        let local = self.local(process);
        let earlier = local.waiting.values().any(|entered| *entered < began);
        assert!(!earlier, "a later thread was served first");
    }
}

impl Lease {
    pub(crate) fn is_valid(&self) -> bool {
        !self.world.book().is_expired(self.owner)
    }

    /// The lease of the next thread.
    pub(crate) fn handed_over(mut self) -> Lease {
        self.spend();
        self.world.lease(self.owner, self.token + 1)
    }

    pub(crate) fn spend(&mut self) {
        self.spent = true;
        let was_there = self.world.book().leases.remove(&self.token);
        assert!(was_there, "a lease was released twice");
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        assert!(self.spent || panicking(), "a lease was lost on the way");
    }
}
