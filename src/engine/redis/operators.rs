//! What operators see: which locks there are, and what the scripts tell of one, see `lua/lock/inspect.lua`.

use std::collections::BTreeMap;
use std::{fmt::Write, sync::Arc, time::Duration};

use ::redis::{FromRedisValue, Value};

use super::keys::{Keys, VALUE, broken_channel, slot_of, tag};
use super::script::{Call, Route};
use super::{failure::Failure, lock_scripts::LockScripts, server::Server};
use crate::base::sys::collections::HashSet;
use crate::base::{
    Deadline, Holder, Inspection, Key, LockState, Mode, Namespace, Party, Result, Waiter, Wants,
};
use crate::engine::{Cursor, Page};

/// How many keys the server looks at for one page of a list. It does nothing else meanwhile, for about 1 ms.
const PAGE: usize = 1_000;
/// The same in the empty namespace, where a script looks at what each holds.
const PAGE_OF_ANY: usize = 200;

const STRANGE: &str = "it doesn't answer SCAN like a Redis server";

impl LockScripts {
    /// The call that [`inspection`] takes the answer of.
    pub(super) fn inspecting(&self, key: &Key) -> Call<'_> {
        self.call("lock/inspect", &Keys::of(key).all()[..VALUE], &[])
    }

    /// The call that [`broken`] takes the answer of. It isn't sent again: a second copy would break the lease of the
    /// next holder.
    pub(super) fn breaking(&self, key: &Key) -> Call<'_> {
        let tag = tag(self.servers.settings().kind, key);
        let channel = broken_channel(key.namespace(), tag);
        let keys = Keys::of(key);
        let call = self.call("lock/break", &keys.all()[..VALUE], &[channel.as_bytes()]);
        call.once()
    }

    /// A page of the names in use at these servers, of which the cursor says one.
    pub(super) fn list(
        &self,
        servers: &[Arc<Server>],
        (namespace, prefix): (&Namespace, &str),
        cursor: &Cursor,
        deadline: &Deadline,
    ) -> Result<Page> {
        let Some(server) = servers.get(cursor.part) else {
            return Ok(Page::default());
        };
        let (before, behind) = around(namespace);
        let is_among_others = namespace.as_str().is_empty();
        let page = if is_among_others { PAGE_OF_ANY } else { PAGE };
        let mut scan = ::redis::cmd("SCAN");
        scan.arg(cursor.at)
            .arg("MATCH")
            .arg(pattern(&before, prefix, behind));
        scan.arg("COUNT").arg(page).arg("TYPE").arg("string");
        let value = server
            .value(&scan, deadline)
            .map_err(|e| self.error(None, e))?;
        let (next, keys) = <(u64, Vec<Vec<u8>>)>::from_redis_value(value)
            .map_err(|_| self.error(None, Failure::Other(STRANGE.into())))?;
        let texts = keys
            .into_iter()
            .filter_map(|key| String::from_utf8(key).ok());
        let mut keys: Vec<String> = texts.collect();
        if is_among_others {
            self.retain_locks(&mut keys, deadline)?;
        }
        let name =
            |key: &String| Some(key.strip_prefix(&*before)?.strip_suffix(behind)?.to_owned());
        Ok(Page {
            names: keys.iter().filter_map(name).collect(),
            next: cursor.next(next, servers.len()),
        })
    }

    /// Without a namespace a lock's key is its name, and other programs have keys, too.
    fn retain_locks(&self, keys: &mut Vec<String>, deadline: &Deadline) -> Result<()> {
        let mut locks = HashSet::default();
        for together in self.that_go_together(keys) {
            let call = self.call("list/locks", &together, &[]);
            let value = self.value(None, Route::to(together[0]), &call, deadline)?;
            let are_locks = <Vec<i64>>::from_redis_value(value).unwrap_or_default();
            let said = together.into_iter().zip(are_locks);
            locks.extend(
                said.filter(|said| said.1 == 1)
                    .map(|said| said.0.to_owned()),
            );
        }
        keys.retain(|key| locks.contains(key));
        Ok(())
    }

    /// The keys that a script may be given at once: in a cluster those of one slot.
    fn that_go_together<'a>(&self, keys: &'a [String]) -> Vec<Vec<&'a str>> {
        let mut parts: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
        for key in keys {
            let slot = if self.is_cluster() { slot_of(key) } else { 0 };
            parts.entry(slot).or_default().push(key);
        }
        parts.into_values().collect()
    }
}

/// What stands before and behind a name in the key of its lock.
fn around(namespace: &Namespace) -> (String, &'static str) {
    match namespace.as_str() {
        "" => (String::new(), ""),
        namespace => (format!("{{{namespace}:"), "}"),
    }
}

/// The pattern of the keys of locks whose names begin with `prefix`.
fn pattern(before: &str, prefix: &str, behind: &str) -> String {
    let mut pattern = before.to_owned();
    for c in prefix.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    let _ = write!(pattern, "*{behind}");
    pattern
}

/// What others may see of a holder, its permits, for how long its lease lasts, and its token.
type ShownHolder = (String, u32, i64, i64);
/// What others may see of a waiter, and its mode.
type ShownWaiter = (String, String);
/// The state, the server's time, the counter, for how long the lock stays taken, how many permits are out and of how
/// many, the holders, and both queues.
type Shown = (
    String,
    i64,
    i64,
    i64,
    u32,
    String,
    Vec<ShownHolder>,
    Vec<ShownWaiter>,
    Vec<ShownWaiter>,
);

pub(super) fn inspection(key: &Key, value: Value) -> Option<Inspection> {
    let shown = Shown::from_redis_value(value).ok()?;
    let (state, now, counter, remaining, out, of, holders, queue, readers) = shown;
    // As the script decides that lets in the next: see `lua/lib/token.lua`.
    let after_exclusive = match &*state {
        "exclusive" => true,
        "free" | "kept" => counter % 4 == 2 || (counter % 2 == 1 && counter % 8 != 7),
        _ => false,
    };
    let state = match &*state {
        "free" => LockState::Free,
        "exclusive" => LockState::Exclusive,
        "readers" => LockState::Shared,
        "permits" => LockState::Permits {
            taken: out,
            of: of.strip_prefix('/').and_then(|of| of.parse().ok()),
        },
        "kept" => LockState::Kept {
            remaining: millis(remaining),
        },
        _ => return None,
    };
    Some(Inspection {
        name: key.name().to_owned(),
        state,
        holders: holders.into_iter().map(|one| holder(one, now)).collect(),
        waiters: in_turn(queue, readers, after_exclusive),
        last_token: counter.try_into().ok().filter(|number| *number > 0),
    })
}

/// Those that had a lock that was broken.
pub(super) fn broken(value: Value) -> Option<Vec<Holder>> {
    let (now, holders) = <(i64, Vec<ShownHolder>)>::from_redis_value(value).ok()?;
    Some(holders.into_iter().map(|one| holder(one, now)).collect())
}

fn holder((public, permits, remaining, token): ShownHolder, now: i64) -> Holder {
    Holder {
        party: Party::of(&public),
        permits,
        held_for: held_for(token, now),
        remaining: millis(remaining),
        token: token.try_into().ok().filter(|number| *number > 0),
    }
}

/// A token is the server's time of its grant, in microseconds, but where the counter is ahead of the clock: a little
/// after a lease that was never released, else because the clock was set back.
fn held_for(token: i64, now: i64) -> Option<Duration> {
    const LITTLE: i64 = 1_000_000;
    let is_time = token > 0 && token - now < LITTLE;
    let micros = u64::try_from(now - token).unwrap_or(0);
    is_time.then_some(Duration::from_micros(micros))
}

/// `None` below 0, which the server says of what has no end.
fn millis(left: i64) -> Option<Duration> {
    left.try_into().ok().map(Duration::from_millis)
}

/// All waiters in the order in which they will have the lock: the readers go in together, after an exclusive holder,
/// unless the first of the others goes before readers; or when nobody else waits.
fn in_turn(
    queue: Vec<ShownWaiter>,
    readers: Vec<ShownWaiter>,
    mut after_exclusive: bool,
) -> Vec<Waiter> {
    let mut all = Vec::with_capacity(queue.len() + readers.len());
    let mut readers = Some(readers);
    for one in queue {
        if after_exclusive && one.1 != "w" {
            all.extend(readers.take().into_iter().flatten());
        }
        after_exclusive = matches!(&*one.1, "x" | "w");
        all.push(one);
    }
    all.extend(readers.into_iter().flatten());
    all.into_iter().map(waiter).collect()
}

fn waiter((public, mode): ShownWaiter) -> Waiter {
    Waiter {
        party: Party::of(&public),
        wants: Mode::parse(&mode).map_or(Wants::Exclusive, Mode::wants),
        waited_for: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(queue: &[(&str, &str)], readers: &[&str], after_exclusive: bool) -> Vec<u64> {
        let own = |(number, mode): &(&str, &str)| (format!("host/1/{number}"), (*mode).to_owned());
        let queue = queue.iter().map(own).collect();
        let readers = readers.iter().map(|number| own(&(*number, "r"))).collect();
        let waiters = in_turn(queue, readers, after_exclusive);
        let party = waiters.into_iter().map(|one| one.party.unwrap());
        party.map(|party| party.thread).collect()
    }

    #[test]
    fn waiters_are_told_in_the_order_in_which_they_are_served() {
        let both = [("1", "x"), ("2", "x")];
        assert_eq!(order(&both, &["3", "4"], true), [3, 4, 1, 2]);
        assert_eq!(order(&both, &["3", "4"], false), [1, 3, 4, 2]);
        let writers = [("1", "w"), ("2", "w"), ("3", "x")];
        assert_eq!(order(&writers, &["4"], true), [1, 2, 4, 3]);
        assert_eq!(order(&[], &["1", "2"], false), [1, 2]);
        assert_eq!(order(&[("1", "1/3"), ("2", "2/3")], &[], false), [1, 2]);
    }
}
