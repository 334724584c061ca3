//! What operators see of names, and do with them; and values.

use std::collections::BTreeSet;
use std::time::Duration;

use super::client::{Compare, KeyValue, LeaseId, Op, Range, Txn};
use super::diagnosis;
use super::keys::{last_part, line_of, name_of, of_names};
use super::store::{EtcdStore, delete, get, got, host_millis, value_of};
use crate::base::clock::Deadline;
use crate::base::diagnosis::Finding;
use crate::base::error::{LostReason, Result};
use crate::base::name::{Key, Namespace};
use crate::base::options::Options;
use crate::base::value::Stored;
use crate::engine::line::{Entry, Facts, Inspected, LineOperators, Who, token_of, uuid_of};
use crate::engine::{Cursor, Page};

/// The time that is left is asked for so many holders.
const ASKED: usize = 100;

/// A page is what is found in so many keys.
const PAGE: u32 = 1_000;

impl LineOperators for EtcdStore {
    fn inspect(&self, key: &Key, with_times: bool, deadline: &Deadline) -> Result<Inspected> {
        let keys = self.keys_of(key);
        let ops = [Op::Get(keys.line()), Op::Get(keys.entered())];
        let answer = self.until_read(Some(key.name()), &ops, deadline)?;
        let revision = answer.revision;
        let mut got = got(answer);
        let line = line_of(&keys, got.next().unwrap_or_default());
        let entered = got.next().unwrap_or_default();
        let mut facts: Vec<_> = line.0.iter().map(|one| facts_of(one, &entered)).collect();
        let holders = line.holders();
        if with_times {
            for (entry, facts) in holders.iter().zip(&mut facts).take(ASKED) {
                facts.remaining = self.remaining(key.name(), entry, deadline)?;
            }
        }
        // Below the first token of whoever comes next, and not below one that was given out.
        let next = line.0.get(holders.len());
        let next = next.map_or(revision + 1, |entry| entry.place);
        Ok(Inspected {
            last_token: Some(token_of(next, false).number.saturating_sub(2)),
            line,
            facts,
        })
    }

    /// Ends these entries, and leaves to each owner word of it.
    fn end(&self, key: &Key, entries: &[Entry], deadline: &Deadline) -> Result<bool> {
        let (name, keys) = (Some(key.name()), self.keys_of(key));
        let memory = self.leases.memory(deadline);
        let memory = memory.map_err(|e| self.error(name, e))?;
        let owners: Vec<_> = entries.iter().filter_map(Entry::owner).collect();
        let mut txn = Txn::default();
        for entry in entries {
            let place = keys.place(&entry.id);
            txn.compares
                .push(Compare::ModifiedAt(place.clone(), entry.version));
            txn.then.push(Op::Delete(Range::Key(place)));
        }
        for owner in &owners {
            self.leases.remembers();
            txn.then.push(Op::Put {
                key: keys.broken(uuid_of(owner)),
                value: host_millis().to_string().into_bytes(),
                lease: Some(memory),
            });
        }
        let (answer, was_sent) = self.until_written(name, &txn, deadline)?;
        let mut is_done = answer.succeeded;
        if !is_done && was_sent && !owners.is_empty() {
            // An answer that said so was lost, if there is word to each of them.
            let words = owners.iter().map(|owner| get(keys.broken(uuid_of(owner))));
            let answer = self.until_read(name, &words.collect::<Vec<_>>(), deadline)?;
            is_done = got(answer).all(|entries| !entries.is_empty());
        }
        if is_done {
            self.receivers.tell(owners, LostReason::Broken);
        }
        Ok(is_done)
    }

    fn list(
        &self,
        namespace: &Namespace,
        prefix: &str,
        cursor: &Cursor,
        deadline: &Deadline,
    ) -> Result<Page> {
        let root = self.client.root();
        // Behind all keys of a name: the character after the slash that ends it.
        let behind = |name: &String| format!("{}0", of_names(root, namespace, name));
        let list = Op::List {
            prefix: of_names(root, namespace, prefix),
            from: cursor.after.as_ref().map(behind),
            limit: PAGE,
            keys_only: true,
        };
        let answer = self.until_read(None, &[list], deadline)?;
        let keys = got(answer).next().unwrap_or_default();
        let named = keys
            .iter()
            .filter_map(|entry| name_of(root, namespace, &entry.key));
        Ok(page(named.collect(), keys.len() < PAGE as usize))
    }

    fn load(&self, key: &Key, deadline: &Deadline) -> Result<Stored> {
        Ok(value_of(self.read_value(key, deadline)?))
    }

    /// Removes what one look shows: a request that comes late finds another value, and leaves it.
    fn remove(&self, key: &Key, deadline: &Deadline) -> Result<()> {
        let value = self.keys_of(key).value();
        while let Some(entry) = self.read_value(key, deadline)?.pop() {
            let txn = Txn {
                compares: vec![Compare::ModifiedAt(value.clone(), entry.modified)],
                then: vec![delete(value.clone())],
                otherwise: Vec::new(),
            };
            let (answer, _) = self.until_written(Some(key.name()), &txn, deadline)?;
            if answer.succeeded {
                return Ok(());
            }
        }
        Ok(())
    }

    fn value_key(&self, key: &Key) -> String {
        self.keys_of(key).value()
    }

    fn diagnose(
        &self,
        namespace: &Namespace,
        options: &Options,
        deadline: &Deadline,
    ) -> Result<Vec<Finding>> {
        diagnosis::diagnose(self, namespace, options, deadline)
    }
}

impl EtcdStore {
    /// How long the lease of an entry lasts if it isn't kept alive.
    fn remaining(
        &self,
        name: &str,
        entry: &Entry,
        deadline: &Deadline,
    ) -> Result<Option<Duration>> {
        let Some(lease) = entry.session.map(LeaseId) else {
            return Ok(None);
        };
        let left = self.client.time_to_live(lease, deadline);
        let left = left.map_err(|e| self.error(Some(name), e))?;
        Ok(left.map(Duration::from_secs))
    }

    fn read_value(&self, key: &Key, deadline: &Deadline) -> Result<Vec<KeyValue>> {
        let value = get(self.keys_of(key).value());
        let answer = self.until_read(Some(key.name()), &[value], deadline)?;
        Ok(got(answer).next().unwrap_or_default())
    }
}

/// By what tells who was let in alone, and hasn't released; the values say when.
fn facts_of(entry: &Entry, entered: &[KeyValue]) -> Facts {
    let id_of = |one: &KeyValue| last_part(&one.key).to_owned();
    let is_abandoned = entered.iter().any(|one| id_of(one) != entry.id);
    let passed = |since: u64| Duration::from_millis(host_millis().saturating_sub(since));
    let own = entered.iter().find(|one| id_of(one) == entry.id);
    let held_since = own.and_then(|one| std::str::from_utf8(&one.value).ok()?.parse().ok());
    let token = token_of(entry.place, is_abandoned).number;
    Facts {
        token: entry.token.unwrap_or(token),
        held_for: held_since.map(passed),
        waited_for: (entry.who != Who::Stranger).then(|| passed(entry.since)),
        remaining: None,
    }
}

/// The page of these keys, of which each has a name, and is or isn't a place in line.
fn page(named: Vec<(String, bool)>, is_last: bool) -> Page {
    let last = named.last().map(|(name, _)| name);
    // There may be more of its last name on the next page, unless it has nothing else.
    let mut others = named.iter().rev().map(|(name, _)| name);
    let before = others.find(|name| Some(*name) != last);
    let end = if is_last { None } else { before.or(last) };
    let is_left = |name: &String| !is_last && before.is_some() && Some(name) == last;
    let in_line = named.iter().filter(|(_, in_line)| *in_line);
    let names: BTreeSet<_> = in_line.map(|(name, _)| name).collect();
    Page {
        names: names
            .into_iter()
            .filter(|name| !is_left(name))
            .cloned()
            .collect(),
        next: end.map(|after| Cursor {
            after: Some(after.clone()),
            ..Cursor::default()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(named: &[(&str, bool)], is_last: bool) -> (Vec<String>, Option<String>) {
        let named = named
            .iter()
            .map(|(name, in_line)| (name.to_string(), *in_line));
        let page = page(named.collect(), is_last);
        (page.names, page.next.and_then(|next| next.after))
    }

    #[test]
    fn name_at_the_end_of_a_page_is_on_the_next() {
        let keys = [("a", true), ("b", false), ("b", true), ("c", true)];
        let strings = |names: &[&str]| names.iter().map(|one| one.to_string()).collect::<Vec<_>>();
        assert_eq!(shown(&keys, true), (strings(&["a", "b", "c"]), None));
        assert_eq!(
            shown(&keys, false),
            (strings(&["a", "b"]), Some("b".into()))
        );
        let one = [("c", true), ("c", true)];
        assert_eq!(shown(&one, false), (strings(&["c"]), Some("c".into())));
        assert_eq!(shown(&[], true), (strings(&[]), None));
    }
}
