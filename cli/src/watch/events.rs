//! Prints one line for each event that happened between two looks.

use std::{collections::BTreeSet, mem, time::SystemTime};

use crosslock::{Holder, Inspection, LockState, Party};
use serde_json::{Value, json};

use super::{View, Watch};
use crate::table::{Cell, Table};
use crate::{show, status::Outcome, time};

pub(super) fn run(watch: &Watch) -> Outcome {
    let mut before: Option<View> = None;
    let mut is_reached = true;
    watch.each_look(|_, seen| {
        let was_reached = mem::replace(&mut is_reached, seen.is_ok());
        match seen {
            Ok(now) => {
                let mut lines = match was_reached {
                    true => String::new(),
                    false => about_the_place(watch, "reachable", None),
                };
                let changes = between(before.as_ref(), &now);
                lines.extend(changes.iter().map(|change| about(watch, change)));
                before = Some(now);
                lines
            }
            // Reported once per outage.
            Err(why) if was_reached => about_the_place(watch, "unreachable", Some(&why)),
            Err(_) => String::new(),
        }
    })
}

fn about_the_place(watch: &Watch, event: &str, reason: Option<&str>) -> String {
    let [name, who, token] = [(); 3].map(|()| Cell::nothing());
    let facts = json!({"reason": reason.unwrap_or_default()});
    line(watch, event, facts, [name, who, Cell::of(reason), token])
}

fn about(watch: &Watch, change: &Change) -> String {
    let facts = json!({"name": change.name, "party": change.party, "token": change.token});
    let party = change.party.as_ref();
    let columns = [
        Cell::text(&change.name),
        show::party_cell(party),
        show::label_cell(party),
        Cell::of(change.token),
    ];
    line(watch, change.event, facts, columns)
}

/// The line of an event: an object, or columns.
fn line(watch: &Watch, event: &str, mut facts: Value, columns: [Cell; 4]) -> String {
    let time = time::moment(SystemTime::now());
    if watch.json {
        facts["time"] = time.into();
        facts["event"] = event.into();
        return facts.to_string() + "\n";
    }
    let row = [Cell::text(&time), Cell::text(event)];
    let row = row.into_iter().chain(columns).collect();
    Table::new(&[], [row]).for_programs()
}

/// What happened to a holder or a waiter of a lock.
#[derive(Clone, Debug, PartialEq)]
struct Change {
    /// `holds` (it held the lock at the first look), `acquired`, `released`, `waiting`, or `left`: it stopped waiting
    /// without the lock, or held the lock only between two looks.
    event: &'static str,
    name: String,
    party: Option<Party>,
    token: Option<u64>,
}

/// The changes from one look to the next; `None` stands before the first look. For each lock, processes that left come
/// first.
fn between(before: Option<&View>, now: &View) -> Vec<Change> {
    let nothing = View::new();
    let got = if before.is_some() {
        "acquired"
    } else {
        "holds"
    };
    let before = before.unwrap_or(&nothing);
    let names: BTreeSet<_> = before.keys().chain(now.keys()).collect();
    let mut changes = Vec::new();
    for name in names {
        let [before, now] = [before, now].map(|view| Side::of(view.get(name)));
        let mut add = |event, token, party| {
            let name = name.clone();
            changes.push(Change {
                event,
                name,
                party,
                token,
            });
        };
        for (token, party) in missing(&before.holders, &now.holders) {
            add("released", token, party);
        }
        for party in missing(&before.waiters, &now.waiters) {
            if now.holders.iter().all(|(_, holder)| *holder != party) {
                add("left", None, party);
            }
        }
        for (token, party) in missing(&now.holders, &before.holders) {
            add(got, token, party);
        }
        for party in missing(&now.waiters, &before.waiters) {
            add("waiting", None, party);
        }
    }
    changes
}

/// The number of locks that passed from one exclusive holder to another.
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

/// Holders and waiters, without the times, which change by themselves.
#[derive(Default)]
struct Side {
    holders: Vec<Identity>,
    waiters: Vec<Option<Party>>,
}

/// A token stands for one acquisition. Foreign programs have none, and can't be told apart.
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
}

/// The elements of `all` that `others` lacks; equal elements are counted.
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
