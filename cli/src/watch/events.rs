//! A line for each event: what happened between two looks.

use std::time::{Instant, SystemTime};

use crosslock::{Holder, Inspection, LockState, Party};
use serde_json::json;

use super::{Signals, View, Watch, look};
use crate::status::{Failure, OK, Outcome, UNAVAILABLE};
use crate::table::{Cell, Table};
use crate::{ls, output, show, time};

/// The place can't be reached at the first look: that is told, and ends it. Later it is an event.
pub(super) fn run(watch: &Watch) -> Outcome {
    let signals = Signals::listen()?;
    let mut before: Option<View> = None;
    let mut is_reached = true;
    loop {
        let began = Instant::now();
        let lines = match look(&watch.locker, watch.name.as_deref()) {
            Ok(now) => {
                let mut lines = String::new();
                if !is_reached {
                    lines += &about_the_place(watch, "reachable", "");
                }
                is_reached = true;
                let changes = between(before.as_ref(), &now);
                lines.extend(changes.iter().map(|change| line(watch, change)));
                before = Some(now);
                lines
            }
            Err(failure) if failure.status != UNAVAILABLE || before.is_none() => {
                return Err(failure);
            }
            Err(failure) => unreachable(watch, &failure, &mut is_reached),
        };
        if !lines.is_empty() && !output::print(&lines)? {
            return Ok(OK);
        }
        if let Some(status) = signals.pause_until(watch.next(began)) {
            return Ok(status);
        }
        if watch.is_over() {
            return Ok(OK);
        }
    }
}

/// Told once an outage.
fn unreachable(watch: &Watch, failure: &Failure, is_reached: &mut bool) -> String {
    if !std::mem::take(is_reached) {
        return String::new();
    }
    about_the_place(watch, "unreachable", &failure.text)
}

fn about_the_place(watch: &Watch, event: &str, reason: &str) -> String {
    let time = time::moment(SystemTime::now());
    if watch.json {
        let told = json!({"time": time, "event": event, "reason": reason});
        return told.to_string() + "\n";
    }
    let reason = Some(reason).filter(|reason| !reason.is_empty());
    let mut table = Table::new(&["TIME", "EVENT", "NAME", "WHO", "LABEL", "TOKEN"]);
    table.push(vec![
        Cell::text(&time),
        Cell::text(event),
        Cell::nothing(),
        Cell::nothing(),
        Cell::or_nothing(reason, Cell::text),
        Cell::nothing(),
    ]);
    table.for_programs()
}

fn line(watch: &Watch, change: &Change) -> String {
    let time = time::moment(SystemTime::now());
    let event = change.event.word();
    if watch.json {
        let told = json!({
            "time": time,
            "event": event,
            "name": change.name,
            "party": change.party,
            "token": change.token,
        });
        return told.to_string() + "\n";
    }
    let mut table = Table::new(&["TIME", "EVENT", "NAME", "WHO", "LABEL", "TOKEN"]);
    table.push(vec![
        Cell::text(&time),
        Cell::text(event),
        Cell::text(&change.name),
        show::party_cell(change.party.as_ref()),
        show::label_cell(change.party.as_ref()),
        ls::token(change.token),
    ]);
    table.for_programs()
}

/// What happened to a holder or a waiter of a lock.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Change {
    pub(super) event: Event,
    pub(super) name: String,
    pub(super) party: Option<Party>,
    pub(super) token: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// It had the lock at the first look.
    Holds,
    Acquired,
    Released,
    Waiting,
    /// It waits no longer, and hasn't got the lock either, or had it only between two looks.
    Left,
}

impl Event {
    pub(super) fn word(self) -> &'static str {
        match self {
            Event::Holds => "holds",
            Event::Acquired => "acquired",
            Event::Released => "released",
            Event::Waiting => "waiting",
            Event::Left => "left",
        }
    }
}

/// From one look to the next, and at the first look from nothing. Of each lock, first who went, then who came.
pub(super) fn between(before: Option<&View>, now: &View) -> Vec<Change> {
    let nothing = View::new();
    let (is_first, before) = (before.is_none(), before.unwrap_or(&nothing));
    let mut names: Vec<_> = before.keys().chain(now.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let mut changes = Vec::new();
    for name in names {
        let pair = Pair {
            name,
            before: Side::of(before.get(name)),
            now: Side::of(now.get(name)),
        };
        pair.went(&mut changes);
        pair.came(is_first, &mut changes);
    }
    changes
}

/// How many locks went from one exclusive holder to another.
pub(super) fn hand_offs(before: &View, now: &View) -> usize {
    let holder = |seen: &Inspection| match (&seen.state, &*seen.holders) {
        (LockState::Exclusive, [holder]) => Some(identity(holder)),
        _ => None,
    };
    let went_on = |(name, seen): &(&String, &Inspection)| {
        let then = before.get(*name).and_then(holder);
        let now = holder(seen);
        then.is_some() && now.is_some() && then != now
    };
    now.iter().filter(went_on).count()
}

/// A lock at two looks.
struct Pair<'a> {
    name: &'a str,
    before: Side,
    now: Side,
}

/// Who holds and who waits, without what changes by itself.
#[derive(Default)]
struct Side {
    holders: Vec<Identity>,
    waiters: Vec<Option<Party>>,
}

/// A token is one acquisition. Other programs have none, and are all alike.
type Identity = (Option<u64>, Option<Party>);

fn identity(holder: &Holder) -> Identity {
    (holder.token, holder.party.clone())
}

impl Side {
    fn of(seen: Option<&Inspection>) -> Self {
        seen.map_or_else(Side::default, |seen| Side {
            holders: seen.holders.iter().map(identity).collect(),
            waiters: seen.waiters.iter().map(|it| it.party.clone()).collect(),
        })
    }

    fn holds(&self, party: Option<&Party>) -> bool {
        self.holders
            .iter()
            .any(|(_, holder)| holder.as_ref() == party)
    }
}

impl Pair<'_> {
    fn went(&self, changes: &mut Vec<Change>) {
        for (token, party) in missing(&self.before.holders, &self.now.holders) {
            changes.push(self.change(Event::Released, party, token));
        }
        for party in missing(&self.before.waiters, &self.now.waiters) {
            if !self.now.holds(party.as_ref()) {
                changes.push(self.change(Event::Left, party, None));
            }
        }
    }

    fn came(&self, is_first: bool, changes: &mut Vec<Change>) {
        let event = if is_first {
            Event::Holds
        } else {
            Event::Acquired
        };
        for (token, party) in missing(&self.now.holders, &self.before.holders) {
            changes.push(self.change(event, party, token));
        }
        for party in missing(&self.now.waiters, &self.before.waiters) {
            changes.push(self.change(Event::Waiting, party, None));
        }
    }

    fn change(&self, event: Event, party: Option<Party>, token: Option<u64>) -> Change {
        Change {
            event,
            name: self.name.to_owned(),
            party,
            token,
        }
    }
}

/// Those of `all` that `others` doesn't have, each as often as it is missing.
fn missing<T: Clone + PartialEq>(all: &[T], others: &[T]) -> Vec<T> {
    let mut others = others.to_vec();
    let is_missing = |one: &&T| match others.iter().position(|other| other == *one) {
        Some(at) => {
            others.swap_remove(at);
            false
        }
        None => true,
    };
    all.iter().filter(is_missing).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;
    use std::{thread, time::Instant};

    use crosslock::Locker;

    use crate::watch::look;

    fn words(changes: &[Change]) -> Vec<&'static str> {
        changes.iter().map(|change| change.event.word()).collect()
    }

    #[test]
    fn what_happened_is_told_once_and_in_order() {
        let name = "watch-changes";
        let [first, second] = [(); 2].map(|()| Locker::open("memory:").expect("memory"));
        let view = || look(&first, Some(name)).expect("a look");
        let empty = view();
        assert!(between(None, &empty).is_empty());
        let guard = first.lock(name).expect("a lock");
        let held = view();
        assert_eq!(words(&between(None, &held)), ["holds"]);
        assert_eq!(words(&between(Some(&empty), &held)), ["acquired"]);
        let (told, done) = mpsc::channel();
        let waiter = thread::spawn(move || {
            let guard = second.lock(name).expect("a lock");
            done.recv().expect("the test goes on");
            drop(guard);
        });
        let contended = await_view(&view, |view| view[name].waiters.len() == 1);
        assert_eq!(words(&between(Some(&held), &contended)), ["waiting"]);
        drop(guard);
        let handed = await_view(&view, |view| view[name].waiters.is_empty());
        assert_eq!(
            words(&between(Some(&contended), &handed)),
            ["released", "acquired"]
        );
        assert_eq!(hand_offs(&contended, &handed), 1);
        assert_eq!(hand_offs(&handed, &handed), 0);
        told.send(()).expect("the waiter lives");
        waiter.join().expect("the waiter ends well");
        assert_eq!(words(&between(Some(&handed), &view())), ["released"]);
    }

    fn await_view(view: &dyn Fn() -> View, is_it: impl Fn(&View) -> bool) -> View {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let seen = view();
            if is_it(&seen) {
                return seen;
            }
            assert!(Instant::now() < deadline, "{seen:?}");
            thread::sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn equals_are_counted() {
        assert_eq!(missing(&[1, 1, 2], &[1, 3]), [1, 2]);
        assert!(missing(&[1], &[1, 1]).is_empty());
    }
}
