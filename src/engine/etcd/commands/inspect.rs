//! How a name stands, for those who look.

use std::time::Duration;

use super::ops::host_millis;
use super::shared::Commands;
use crate::base::claim::Mode;
use crate::base::clock::Deadline;
use crate::base::error::Result;
use crate::base::inspection::{Holder, Inspection, LockState, Party, Waiter, Wants};
use crate::base::name::Key;
use crate::engine::etcd::client::txn::{Entry, LeaseId, Op};
use crate::engine::etcd::keys::{Keys, last_part};
use crate::engine::etcd::place::{Line, Place};
use crate::engine::line::{token_of, used};

/// The time that is left is asked for so many holders.
const ASKED: usize = 100;

/// How a name stood.
pub(super) struct State {
    pub(super) line: Line,
    /// Who was let in alone, and hasn't released; the values say when.
    entered: Vec<Entry>,
    revision: u64,
}

impl State {
    /// Whether another than this one was let in alone, and never released.
    fn is_abandoned_to(&self, place: &Place) -> bool {
        let mut others = self.entered.iter();
        others.any(|entry| last_part(&entry.key) != place.id)
    }

    /// For how long it has been in, by the clocks of the hosts.
    fn held_for(&self, place: &Place) -> Option<Duration> {
        let mut entered = self.entered.iter();
        let own = entered.find(|entry| last_part(&entry.key) == place.id)?;
        let since: u64 = std::str::from_utf8(&own.value).ok()?.parse().ok()?;
        Some(Duration::from_millis(host_millis().saturating_sub(since)))
    }

    pub(super) fn holder(&self, place: &Place, remaining: Option<Duration>) -> Holder {
        Holder {
            party: place.owner().and_then(|owner| Party::of(owner.holder())),
            permits: match place.mode() {
                Mode::Permits { count, .. } => count,
                Mode::Exclusive | Mode::Shared => 1,
            },
            held_for: self.held_for(place),
            remaining,
            token: Some(place.token(self.is_abandoned_to(place))),
        }
    }

    /// Those that have the name, and the time of nobody's is among them.
    fn lock_state(&self, kept_for: Option<Duration>) -> LockState {
        let holders: Vec<_> = self.line.holders().collect();
        let Some(first) = holders.first() else {
            return LockState::Free;
        };
        if let Mode::Permits { of, .. } = first.mode() {
            let modes: Vec<_> = holders.iter().map(|place| place.mode()).collect();
            let taken = used(&modes);
            return LockState::Permits {
                taken: taken.try_into().unwrap_or(u32::MAX),
                of: Some(of),
            };
        }
        if holders.iter().all(|place| place.is_kept()) {
            return LockState::Kept {
                remaining: kept_for,
            };
        }
        match first.mode() {
            Mode::Shared => LockState::Shared,
            _ => LockState::Exclusive,
        }
    }

    /// Below the first token of whoever comes next, and not below one that was given out.
    fn last_token(&self) -> u64 {
        let waits = self.line.0.get(self.line.holders().count());
        let next = waits.map_or(self.revision + 1, |place| place.created);
        token_of(next, false).number.saturating_sub(2)
    }
}

impl Commands {
    pub(super) fn state(&self, keys: &Keys, name: &str, deadline: &Deadline) -> Result<State> {
        let ops = || vec![Op::Get(keys.line()), Op::Get(keys.entered())];
        let answer = self.until_read(Some(name), deadline, || self.read(ops(), deadline))?;
        let revision = answer.revision;
        let mut got = super::ops::got(answer);
        Ok(State {
            line: Line::of(got.next().unwrap_or_default()),
            entered: got.next().unwrap_or_default(),
            revision,
        })
    }

    pub(in super::super) fn inspect(&self, key: &Key, deadline: &Deadline) -> Result<Inspection> {
        let state = self.state(&self.keys_of(key), key.name(), deadline)?;
        let (mut holders, mut kept_for) = (Vec::new(), None);
        for (at, place) in state.line.holders().enumerate() {
            let remaining = match place.lease.filter(|_| at < ASKED) {
                Some(lease) => self.remaining(key.name(), lease, deadline)?,
                None => None,
            };
            if place.is_kept() {
                kept_for = kept_for.max(remaining);
            } else {
                holders.push(state.holder(place, remaining));
            }
        }
        let waiters = state.line.0.iter().skip(state.line.holders().count());
        Ok(Inspection {
            name: key.name().to_owned(),
            state: state.lock_state(kept_for),
            holders,
            waiters: waiters.map(waiter).collect(),
            last_token: Some(state.last_token()),
        })
    }

    /// How long a lease lasts if it isn't kept alive.
    fn remaining(
        &self,
        name: &str,
        lease: LeaseId,
        deadline: &Deadline,
    ) -> Result<Option<Duration>> {
        let left = self.client.time_to_live(lease, deadline);
        let left = left.map_err(|e| self.error(Some(name), e))?;
        Ok(left.map(Duration::from_secs))
    }

    pub(in super::super) fn free_permits(
        &self,
        key: &Key,
        of: u32,
        deadline: &Deadline,
    ) -> Result<u32> {
        let state = self.state(&self.keys_of(key), key.name(), deadline)?;
        let modes: Vec<_> = state.line.holders().map(Place::mode).collect();
        let is_permits = |mode: &Mode| matches!(mode, Mode::Permits { .. });
        if !modes.iter().all(is_permits) {
            return Ok(0);
        }
        let taken = used(&modes);
        Ok(u64::from(of)
            .saturating_sub(taken)
            .try_into()
            .unwrap_or_default())
    }
}

fn waiter(place: &Place) -> Waiter {
    let since = place.text.as_ref().map(|text| text.since);
    Waiter {
        party: place.owner().and_then(|owner| Party::of(owner.holder())),
        wants: match place.mode() {
            Mode::Exclusive => Wants::Exclusive,
            Mode::Shared => Wants::Shared,
            Mode::Permits { count, .. } => Wants::Permits { count },
        },
        waited_for: since.map(|since| Duration::from_millis(host_millis().saturating_sub(since))),
    }
}
