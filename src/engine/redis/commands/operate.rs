//! What operators ask of a server: how a lock stands, which there are, and to break one.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;

use ::redis::{FromRedisValue, Value};

use super::{Commands, stored};
use crate::base::clock::Deadline;
use crate::base::error::Result;
use crate::base::inspection::{Holder, Inspection};
use crate::base::name::{Key, Namespace};
use crate::base::value::Stored;
use crate::engine::redis::channel_names::{broken_channel, tag};
use crate::engine::redis::failure::Failure;
use crate::engine::redis::keys::{Keys, VALUE};
use crate::engine::redis::server::Manner;
use crate::engine::redis::servers::Route;
use crate::engine::redis::servers::slots::slot_of;
use crate::engine::redis::shown::{broken, inspection};
use crate::engine::{Cursor, Page};

/// How many keys the server looks at for one page of a list. It does nothing else meanwhile, for about 1 ms.
const PAGE: usize = 1_000;
/// The same in the empty namespace, where a script looks at what each holds.
const PAGE_OF_ANY: usize = 200;

const STRANGE: &str = "it doesn't answer SCAN as a Redis server does";

impl Commands {
    pub(in crate::engine::redis) fn inspect(
        &self,
        key: &Key,
        deadline: &Deadline,
    ) -> Result<Inspection> {
        let keys = Keys::of(key);
        let keys = keys.all();
        let call = self.script("lock/inspect").call(&keys[..VALUE], &[]);
        let value = self.value(Some(key), Route::anew(keys[0]), &call, deadline)?;
        inspection(key, value).ok_or_else(|| self.surprised(key))
    }

    /// It isn't sent again, unlike other commands: the second would break the lease of the next.
    pub(in crate::engine::redis) fn break_lock(
        &self,
        key: &Key,
        deadline: &Deadline,
    ) -> Result<Vec<Holder>> {
        let keys = Keys::of(key);
        let keys = keys.all();
        let tag = tag(self.servers.settings().kind, key);
        let channel = broken_channel(key.namespace(), tag);
        let call = self
            .script("lock/break")
            .call(&keys[..VALUE], &[channel.as_bytes()]);
        let answer = self
            .servers
            .call_once(Route::anew(keys[0]), &call, deadline);
        let answer = answer.map_err(|e| self.error(Some(key), e.error))?;
        broken(answer.value).ok_or_else(|| self.surprised(key))
    }

    pub(in crate::engine::redis) fn load(&self, key: &Key, deadline: &Deadline) -> Result<Stored> {
        let (mut get, keys) = (::redis::cmd("GET"), Keys::of(key));
        get.arg(keys.all()[VALUE]);
        let value = self.value(Some(key), Route::to(&keys.lock), &get, deadline)?;
        stored(value).ok_or_else(|| self.surprised(key))
    }

    pub(in crate::engine::redis) fn remove(&self, key: &Key, deadline: &Deadline) -> Result<()> {
        let keys = Keys::of(key);
        let keys = keys.all();
        // The value that one look shows is deleted by the next call: one that comes late finds another, and leaves it. Where it
        // is stored anew all the time, a call that comes late deletes no more than one that comes now.
        const LOOKS: usize = 20;
        let mut seen = Vec::new();
        for looks in 0.. {
            let arguments = [if looks < LOOKS { &seen[..] } else { b"*" }];
            let call = self.script("lock/remove").call(&keys, &arguments);
            match self.value(Some(key), Route::to(keys[0]), &call, deadline)? {
                Value::BulkString(found) if found.is_empty() => return Ok(()),
                Value::BulkString(found) => seen = found,
                _ => break,
            }
        }
        Err(self.surprised(key))
    }

    pub(in crate::engine::redis) fn free_permits(
        &self,
        key: &Key,
        of: u32,
        deadline: &Deadline,
    ) -> Result<u32> {
        let keys = Keys::of(key);
        let keys = keys.all();
        let call = self.script("semaphore/permits").call(&keys[..VALUE], &[]);
        match self.value(Some(key), Route::to(keys[0]), &call, deadline)? {
            Value::Int(used) => {
                // Held otherwise, none is free.
                let used = u32::try_from(used).unwrap_or(of);
                Ok(of.saturating_sub(used))
            }
            _ => Err(self.surprised(key)),
        }
    }

    pub(in crate::engine::redis) fn list(
        &self,
        namespace: &Namespace,
        prefix: &str,
        cursor: Cursor,
        deadline: &Deadline,
    ) -> Result<Page> {
        let servers = self.servers.all(deadline);
        let servers = servers.map_err(|e| self.error(None, e))?;
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
        let answer = server.call(&scan, Manner::Plain, deadline);
        let value = answer.map_err(|e| self.error(None, e.error))?.value;
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
        let mut locks = HashSet::new();
        for together in self.that_go_together(keys) {
            let call = self.script("list/locks").call(&together, &[]);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_is_matched_literally() {
        let namespace = Namespace::new("app").unwrap();
        let (before, behind) = around(&namespace);
        assert_eq!(
            pattern(&before, "a*b[c]?\\", behind),
            r"{app:a\*b\[c\]\?\\*}"
        );
        let (before, behind) = around(&Namespace::new("").unwrap());
        assert_eq!(pattern(&before, "", behind), "*");
    }
}
