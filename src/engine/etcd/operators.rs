//! What operators see of names, and do with them; values; and what the servers are like, and which promise
//! doesn't hold there.

use std::{collections::BTreeSet, time::Duration};

use super::client::{Compare, KeyValue, LeaseId, MemberStatus, Op, Range, Status, Txn};
use super::keys::{last_part, line_of, name_of, of_names};
use super::store::{EtcdStore, delete, get, got, host_millis, value_of};
use super::watch::ValueWatch;
use crate::base::{
    Deadline, Finding, Key, LostReason, Namespace, Options, Result, Stored, diagnosis::Defect,
};
use crate::engine::line::{
    self, Entry, Facts, Inspected, LineOperators, Purpose, Who, token_of, uuid_of,
};
use crate::engine::{Cursor, Page, Watch};

/// The most holders whose remaining time is asked for.
const ASKED: usize = 100;

/// The number of keys that a page of names is made from.
const PAGE: u32 = 1_000;

impl LineOperators for EtcdStore {
    fn inspect(&self, key: &Key, purpose: Purpose, deadline: &Deadline) -> Result<Inspected> {
        let keys = self.keys_of(key);
        let ops = [Op::Get(keys.line()), Op::Get(keys.markers())];
        let answer = self.until_read(Some(key.name()), &ops, deadline)?;
        let revision = answer.revision;
        let mut got = got(answer);
        let line = line_of(&keys, got.next().unwrap_or_default());
        let entered = got.next().unwrap_or_default();
        let mut facts: Vec<_> = line.0.iter().map(|one| facts_of(one, &entered)).collect();
        let holders = line.holders();
        if purpose == Purpose::Show {
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

    fn list(&self, of: (&Namespace, &str), cursor: &Cursor, deadline: &Deadline) -> Result<Page> {
        let ((namespace, prefix), root) = (of, self.client.root());
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

    fn watch_value(&self, key: &Key) -> Box<dyn Watch> {
        let key = self.keys_of(key).value();
        Box::new(ValueWatch::new(self.client.clone(), key))
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

    fn diagnose(&self, of: (&Namespace, &Options), deadline: &Deadline) -> Result<Vec<Finding>> {
        diagnose(self, of, deadline)
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

/// `entered` are the holder markers of the name; their values say since when.
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

/// Makes a page from the names of keys, each with whether its key is an entry in a line.
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

/// The worst first.
const DEFECTS: [Defect; 4] = [
    Defect {
        mended: &[[3, 5, 3]],
        since: [3, 5, 0],
        what: "a member that is killed under load may return with other data than the others: two processes may hold \
               a lock",
        better: "3.5.28, 3.6.9 or later",
    },
    Defect {
        mended: &[[3, 4, 31], [3, 5, 13]],
        since: [0, 0, 0],
        what: "a leader that was stopped for longer than a ttl may end leases that its successor has renewed: two \
               processes may hold a lock",
        better: "3.4.42, 3.5.28 or later",
    },
    Defect {
        mended: &[[3, 4, 38], [3, 5, 23], [3, 6, 5]],
        since: [0, 0, 0],
        what: "it may report a lease as kept alive while it deletes the keys of the lease; crosslock checks the keys \
               too, other programs may not",
        better: "3.4.42, 3.5.28, 3.6.9 or later",
    },
    Defect {
        mended: &[[3, 4, 42], [3, 5, 28], [3, 6, 9]],
        since: [0, 0, 0],
        what: "a member may answer a linearizable read with old data: a renewal or `verify` may miss that a lock was \
               lost",
        better: "3.4.42, 3.5.28, 3.6.9 or later",
    },
];

/// What is wrong with a version where two may have one lock, and which is better.
pub(super) fn breaks_exclusion(version: &str) -> Option<String> {
    let defect = DEFECTS[..2].iter().find(|defect| defect.is_in(version))?;
    Some(format!("{}: use {}", defect.what, defect.better))
}

/// All findings.
pub(super) fn diagnose(
    store: &EtcdStore,
    (namespace, options): (&Namespace, &Options),
    deadline: &Deadline,
) -> Result<Vec<Finding>> {
    // What can't be reached at all is an error, and no finding.
    store.ping(namespace, deadline)?;
    let statuses = store.client.status(deadline);
    let mut findings = vec![version(&statuses), members(&statuses)];
    findings.extend(errors(&statuses));
    findings.push(ttl(options));
    Ok(findings)
}

fn found(statuses: &[Status]) -> impl Iterator<Item = &MemberStatus> {
    statuses.iter().filter_map(|one| one.found.as_ref().ok())
}

fn version(statuses: &[Status]) -> Finding {
    let versions: Vec<_> = found(statuses).map(|one| one.version.as_str()).collect();
    if versions.is_empty() {
        let advice = "allow this user to read the status, or run `etcdctl endpoint status`";
        return Finding::unknown("version", "no host reports its version", advice);
    }
    Finding::version("etcd", versions, &DEFECTS)
}

fn members(statuses: &[Status]) -> Finding {
    let silent: Vec<_> = statuses
        .iter()
        .filter_map(|one| Some((&one.host, one.found.as_ref().err()?)))
        .map(|(host, why)| format!("{host}: {why}"))
        .collect();
    let members: BTreeSet<_> = found(statuses).map(|one| one.member).collect();
    let without_leader = found(statuses).filter(|one| one.leader.is_none()).count();
    let learners = found(statuses).filter(|one| one.is_learner).count();
    let term = found(statuses).map(|one| one.term).max();
    let text = format!(
        "{} of {} hosts answer; {} members, term {}",
        found(statuses).count(),
        statuses.len(),
        members.len(),
        term.unwrap_or_default()
    );
    let is_alone = members.len() == 1;
    let look = "check `etcdctl endpoint status --cluster`";
    if silent.is_empty() && without_leader + learners == 0 {
        return line::members(text, true, is_alone, look);
    }
    let silent = silent.join("; ");
    let text =
        format!("{text}; {without_leader} have no leader, {learners} are learners; {silent}");
    line::members(text, false, is_alone, look)
}

/// Such as that a database is full.
fn errors(statuses: &[Status]) -> Option<Finding> {
    let errors: Vec<_> = found(statuses)
        .flat_map(|one| one.errors.iter().map(String::as_str))
        .collect();
    let size = found(statuses).map(|one| one.size).max()?;
    let revision = found(statuses).map(|one| one.revision).max()?;
    let text = format!(
        "at revision {revision}, the largest has {} MB",
        size.div_ceil(1 << 20)
    );
    if errors.is_empty() {
        return Some(Finding::fine("database", text));
    }
    Some(Finding::weak(
        "database",
        format!("{text}; the servers report: {}", errors.join("; ")),
        "servers with an alarm refuse writes, so nothing can be locked",
        "run `etcdctl alarm list`; compact and defragment or raise the quota, then run `etcdctl alarm disarm`",
    ))
}

fn ttl(options: &Options) -> Finding {
    const CHECK: &str = "ttl";
    const LEAST: Duration = Duration::from_secs(5);
    let text = format!("{:?}", options.ttl);
    if LEAST <= options.ttl {
        return Finding::fine(CHECK, text);
    }
    Finding::weak(
        CHECK,
        text,
        "the election of a leader can take longer: locks are then lost, although their holders are alive",
        "5 s or more",
    )
}

#[cfg(test)]
mod tests;
