//! Whether what is seen is what the model expects, and what always holds.

use super::events::FOREIGN;
use super::world::is_valued;
use super::{Acquired, After, Ear, INBOXES, Kind, Lock, Model, NAMES, Owner, SHORT};
use crate::COUNTER_TTL;
use crate::seen::{Seen, next_shared_token, next_token};

/// Far more than a sequence takes, and far less than the differences between what is expected.
const SLACK: i64 = 100_000;

impl Model {
    // Tokens

    /// Each that was let in has the next token; all but the first follow while the clock stands still.
    pub(super) fn settle(&mut self, after: &After) {
        let Some(first) = self.granted.first() else {
            return;
        };
        let exclusive = self.lock == Some(Lock::Owner(first.owner));
        assert!(!exclusive || self.granted.len() == 1, "{:?}", self.granted);
        let next = if exclusive {
            next_token
        } else {
            next_shared_token
        };
        let last = after.seen.counter.expect("a token was counted");
        let step = if self.abandoned { 8 } else { 4 };
        let mut token = last - step * (self.granted.len() as u64 - 1);
        let stored = self.counter.unwrap_or(0);
        let expected = next(stored, after.before)..=next(stored, after.seen.micros);
        assert!(expected.contains(&token), "{token} after {stored}");
        assert!(token > self.largest, "{token} after {}", self.largest);
        assert_eq!(token % 4 == 3, self.abandoned);
        for grant in self.granted.drain(..) {
            self.told[grant.owner] = grant.knows.then_some(token);
            let message = grant.told.map(|inbox| (inbox, grant.owner, token));
            self.messages.extend(message);
            token += step;
        }
        self.counter = Some(last);
        self.largest = last;
        self.abandoned &= !exclusive;
        self.is_shared_since = !exclusive;
    }

    /// What is over when the script has ended.
    pub(super) fn end_short(&mut self) {
        let over = |lasts: &mut i64| {
            let ends = *lasts == SHORT;
            if ends {
                *lasts = 0;
            }
            ends
        };
        let mut ends = false;
        for lease in &mut self.leases {
            ends |= over(&mut lease.lasts);
        }
        if over(&mut self.leases_last) {
            self.leases.clear();
        }
        if over(&mut self.lasts) {
            ends |= self.lock.is_some();
            self.lose_lock();
        }
        // Those that wait find it in the next step.
        self.served &= !ends;
    }

    // Answers

    pub(super) fn assert_granted(&self, owner: Owner, answer: &Acquired) {
        let token = self.told[owner].expect("granted");
        let expected = if is_valued(owner) {
            Acquired::Valued(token, self.value.clone())
        } else {
            Acquired::Token(token)
        };
        assert_eq!(*answer, expected);
    }

    /// `expected`: whether it stood in line before, and the length of the line; `None` when it doesn't wait.
    pub(super) fn assert_taken(&self, expected: Option<(bool, usize)>, answer: Acquired) {
        let Acquired::Taken {
            remaining,
            counter,
            stood,
            known,
            length,
            holder: None,
        } = answer
        else {
            panic!("{answer:?}");
        };
        let lasts = self.leases.iter().map(|lease| lease.lasts);
        let lasts = match self.held() {
            Some(Lock::Permits) => lasts.min().expect("a lease"),
            _ => self.lasts,
        };
        assert_lasts(remaining, lasts);
        assert_eq!(counter, self.counter.unwrap_or(0));
        let expected = expected.unwrap_or_default();
        assert_eq!((stood, length), (expected.0, expected.1 as u64));
        let is_shared = matches!(self.held(), Some(Lock::Readers | Lock::Permits));
        assert_eq!(known, is_shared || self.counter.unwrap_or(0) % 2 == 1);
    }

    // What is seen

    pub(super) fn assert_agrees(&mut self, after: &After) {
        let seen = &after.seen;
        if self.torn {
            // Who waited in a line that was lost is forgotten when its letter is.
            let (queue, crowd) = (&self.queue, &self.crowd);
            self.waiters.retain(|owner, _| {
                let stands = queue.contains(owner) || crowd.contains(owner);
                stands || seen.waiters.contains_key(NAMES[*owner])
            });
        }
        let holder = self.lock.map(|lock| match lock {
            Lock::Owner(owner) => NAMES[owner],
            Lock::Foreign => FOREIGN,
            Lock::Readers => "crosslock:readers",
            Lock::Permits => "crosslock:permits",
        });
        assert_eq!(seen.holder.as_deref(), holder);
        assert_eq!(seen.counter, self.counter);
        assert_eq!(seen.value, self.value);
        let names = |line: &[Owner]| -> Vec<_> { line.iter().map(|owner| NAMES[*owner]).collect() };
        assert_eq!(seen.line, names(&self.queue));
        assert_eq!(seen.crowd, names(&self.crowd));
        let waiters = self.waiters.iter();
        let waiters = waiters.map(|(owner, waiter)| (NAMES[*owner].to_owned(), &waiter.text));
        let others = seen.waiters.iter();
        assert!(waiters.eq(others.map(|(owner, text)| (owner.clone(), text))));
        self.assert_leases(seen);
        let messages = self.messages.iter();
        let messages = messages.map(|(inbox, owner, token)| {
            let text = format!("{} {token}", NAMES[*owner]);
            (INBOXES[*inbox].to_owned(), text)
        });
        assert_eq!(after.heard, messages.collect::<Vec<_>>());
        self.assert_promises(seen);
    }

    fn assert_leases(&self, seen: &Seen) {
        assert_eq!(seen.shares.len(), self.leases.len(), "{seen:?}");
        if self.lock == Some(Lock::Permits) && !self.leases.is_empty() {
            assert_eq!(seen.out, Some(self.used()), "{seen:?}");
        }
        for lease in &self.leases {
            let member = format!("{} {}", lease.count, NAMES[lease.owner]);
            let lasts = seen.lasts(&member);
            if lease.lasts > 0 {
                assert_lasts(lasts, lease.lasts);
            } else {
                assert!(lasts <= 0, "{lasts}");
            }
        }
    }

    /// What always holds, whatever the model says.
    fn assert_promises(&self, seen: &Seen) {
        let [lock, fence, queue, waiters, crowd, holders, value] = seen.pttls;
        let absent = |is_there: bool, lasts| if is_there { lasts } else { -2 };
        assert_lasts(lock, absent(self.lock.is_some(), self.lasts));
        assert_lasts(holders, absent(!self.leases.is_empty(), self.leases_last));
        assert_eq!(value, absent(seen.value.is_some(), -1));
        for pttl in [fence, queue, waiters, crowd] {
            assert!(pttl == -2 || (0..=COUNTER_TTL).contains(&pttl), "{seen:?}");
        }
        if !self.torn {
            seen.line();
        }
        if seen.counter.is_some() {
            let tells = |letter| seen.letters.contains(letter);
            assert!(self.queue.is_empty() || tells('q'), "{seen:?}");
            assert!(self.crowd.is_empty() || tells('r'), "{seen:?}");
        }
        let mut owner = None;
        if let Some(Lock::Owner(holder)) = self.lock {
            owner = Some(NAMES[holder]);
            assert!(self.torn || !seen.line.contains(&NAMES[holder].to_owned()));
        }
        if let Some(counter) = seen.counter {
            let is_odd = owner.is_some() || self.abandoned;
            assert_eq!(counter % 2 == 1, is_odd, "odd while held exclusively");
        }
        if self.served {
            self.assert_nobody_could_be_let_in(seen);
        }
    }

    fn assert_nobody_could_be_let_in(&self, seen: &Seen) {
        let is_there = |owner: &&Owner| {
            let waiter = self.waiters.get(owner);
            waiter.is_some_and(|waiter| !waiter.overdue && self.ear(waiter.inbox) != Ear::Gone)
        };
        let line = self.queue.iter().chain(&self.crowd).find(is_there);
        let Some(first) = line else {
            return;
        };
        let held = seen.holder.as_deref();
        let is_exclusive = held.is_some_and(|held| !held.starts_with("crosslock:"));
        match self.waiters[first].kind {
            Kind::Exclusive | Kind::Writer => assert!(held.is_some(), "{seen:?}"),
            Kind::Reader | Kind::EagerReader => {
                assert!(is_exclusive || held == Some("crosslock:permits"));
            }
            Kind::Permits { count, of } => {
                let counts = seen.shares.keys();
                let counts = counts.map(|member| member.split_once(' ').expect("two words").0);
                let used: u64 = counts
                    .map(|count| count.parse::<u64>().expect("digits"))
                    .sum();
                let is_permits = held == Some("crosslock:permits");
                assert!(held.is_some() && (!is_permits || used + count > of));
            }
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
