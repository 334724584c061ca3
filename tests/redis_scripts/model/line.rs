//! Who waits, and who is let in.

use super::world::{promise, ttl, unsigned};
use super::{After, Ear, FORBIDDEN, Grant, INBOXES, Inbox, Kind, Lease, Lock, Model, NAMES, Owner};
use super::{Waiter, Waits};

#[derive(Clone, Copy, PartialEq)]
enum Line {
    Queue,
    Crowd,
}

fn line_of(kind: Kind) -> Line {
    if kind.is_reader() {
        Line::Crowd
    } else {
        Line::Queue
    }
}

impl Model {
    // Entering and leaving

    pub(super) fn is_crowded(&self) -> bool {
        !self.queue.is_empty() || !self.crowd.is_empty()
    }

    fn line(&mut self, line: Line) -> &mut Vec<Owner> {
        match line {
            Line::Queue => &mut self.queue,
            Line::Crowd => &mut self.crowd,
        }
    }

    /// Says whether it was in the line before, and how long the line was then.
    pub(super) fn enter(
        &mut self,
        owner: Owner,
        ttl: i64,
        waits: Waits,
        after: &After,
    ) -> (bool, usize) {
        let kind = self.kinds[owner];
        let (inbox, promise) = match waits {
            Waits::Yes(inbox) => (inbox, unsigned(promise(owner))),
            Waits::AndDies(inbox) => (inbox, 0),
            Waits::No => panic!("it doesn't wait"),
        };
        let text = after.seen.waiters[NAMES[owner]].clone();
        let (moment, rest) = text.split_once(' ').expect("four words");
        let expected = after.before / 1_000 + promise..=after.seen.micros / 1_000 + promise;
        assert!(expected.contains(&moment.parse().expect("a number")));
        let mode = kind.held_text();
        assert_eq!(rest, format!("{ttl} {mode} {}", INBOXES[inbox]));
        let waiter = Waiter {
            inbox,
            overdue: promise == 0,
            kind,
            ttl,
            text,
        };
        let stood = self.waiters.insert(owner, waiter).is_some();
        let line = line_of(kind);
        if !stood || self.line(line).is_empty() {
            self.line(line).push(owner);
        }
        let length = self.line(line).len();
        if stood {
            self.first_of(line, Some(owner));
        }
        (stood, length)
    }

    pub(super) fn leave(&mut self, owner: Owner) {
        if let Some(waiter) = self.waiters.remove(&owner) {
            let line = self.line(line_of(waiter.kind));
            let place = line.iter().position(|other| *other == owner);
            place.map(|place| line.remove(place));
        }
    }

    fn lives(&self, owner: Owner, asking: Option<Owner>) -> bool {
        let waiter = self.waiters.get(&owner);
        waiter.is_some_and(|waiter| !waiter.overdue || asking == Some(owner))
    }

    pub(super) fn ear(&self, inbox: Inbox) -> Ear {
        match INBOXES[inbox] {
            FORBIDDEN | "" => Ear::Deaf,
            _ if self.open.get(inbox) == Some(&true) => Ear::Hears,
            _ => Ear::Gone,
        }
    }

    // Letting in

    /// Drops those in front whose heartbeat is overdue.
    fn first_of(&mut self, line: Line, asking: Option<Owner>) -> Option<Owner> {
        while let Some(&owner) = self.line(line).first() {
            if self.lives(owner, asking) {
                return Some(owner);
            }
            self.line(line).remove(0);
            self.waiters.remove(&owner);
        }
        None
    }

    /// The crowd comes after an exclusive holder, unless a writer goes before it, and when nobody else waits.
    fn next_in_line(&mut self, asking: Option<Owner>, after_exclusive: bool) -> Option<Owner> {
        let first = self.first_of(Line::Queue, asking);
        let gives_way = |owner| after_exclusive && self.waiters[&owner].kind != Kind::Writer;
        if first.is_none_or(gives_way) {
            let reader = self.first_of(Line::Crowd, asking);
            return reader.or(first);
        }
        first
    }

    /// Lets in whose turn it is, and says whether whoever asks is among them.
    pub(super) fn serve(&mut self, asking: Option<Owner>, after_exclusive: bool) -> bool {
        self.served = true;
        let mut is_in = false;
        while !matches!(self.held(), Some(Lock::Owner(_) | Lock::Foreign)) {
            let Some(owner) = self.next_in_line(asking, after_exclusive) else {
                break;
            };
            let waiter = self.waiters[&owner].clone();
            let asks = asking == Some(owner);
            let ear = self.ear(waiter.inbox);
            if (asks || ear != Ear::Gone) && !self.fits(waiter.kind) {
                break;
            }
            self.leave(owner);
            if asks {
                is_in = true;
                self.grant(owner, waiter.kind, waiter.ttl, None, true);
            } else if ear == Ear::Deaf {
                let lasts = waiter.ttl.min(promise(owner));
                self.grant(owner, waiter.kind, lasts, None, false);
            } else if ear == Ear::Hears {
                self.grant(owner, waiter.kind, waiter.ttl, Some(waiter.inbox), true);
            }
        }
        is_in
    }

    pub(super) fn fits(&self, kind: Kind) -> bool {
        match (self.held(), kind) {
            (None, _) => true,
            (Some(Lock::Readers), kind) => kind.is_reader(),
            (Some(Lock::Permits), Kind::Permits { count, of }) => self.used() + count <= of,
            _ => false,
        }
    }

    pub(super) fn used(&self) -> u64 {
        self.leases.iter().map(|lease| lease.count).sum()
    }

    pub(super) fn grant(
        &mut self,
        owner: Owner,
        kind: Kind,
        lasts: i64,
        told: Option<Inbox>,
        knows: bool,
    ) {
        if kind.is_exclusive() {
            self.lock = Some(Lock::Owner(owner));
            self.lasts = lasts;
        } else {
            self.let_in(owner, kind, lasts);
        }
        self.granted.push(Grant { owner, told, knows });
    }

    fn let_in(&mut self, owner: Owner, kind: Kind, lasts: i64) {
        let (lock, count, of) = match kind {
            Kind::Permits { count, of } => (Lock::Permits, count, of),
            _ => (Lock::Readers, 1, u64::MAX),
        };
        if self.held().is_none() {
            self.leases.clear();
            self.lock = Some(lock);
        }
        // Its own lease from before counts for how long the key lasts.
        let last = self.last_end().max(lasts);
        let repeats = self.shares(owner);
        self.leases.retain(|lease| lease.owner != owner);
        let lease = Lease {
            owner,
            count,
            lasts,
        };
        self.leases.push(lease);
        assert!(repeats || self.used() <= of, "more permits than there are");
        self.keep(last);
    }

    pub(super) fn last_end(&self) -> i64 {
        let ends = self.leases.iter().map(|lease| lease.lasts);
        ends.max().unwrap_or(0)
    }

    pub(super) fn keep(&mut self, last: i64) {
        self.lasts = last;
        self.leases_last = last;
        if self.leases.is_empty() {
            self.lock = None;
        }
    }

    pub(super) fn ttl_of(owner: Owner, short: bool) -> i64 {
        if short { super::SHORT } else { ttl(owner) }
    }
}
