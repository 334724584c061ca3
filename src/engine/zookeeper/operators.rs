//! What operators see of names, and do with them; and values.

use std::time::Duration;

use super::client::{Change, Code, Failure, Op, Refused, Stat};
use super::nodes::{
    self, Children, LeadersClock, MARKER, Name, NodeData, VALUE, left, read_marker,
};
use super::{ZooKeeperStore, diagnosis, watch::ValueWatch};
use crate::base::sys::collections::HashMap;
use crate::base::{Deadline, Finding, Key, Namespace, Options, Result as PublicResult, Stored};
use crate::engine::line::{
    Entry, Facts, Inspected, Line, LineOperators, Purpose, Who, token_of, uuid_of,
};
use crate::engine::{Cursor, Page, Watch};

/// This many names are looked at together.
const PAGE: usize = 100;

impl LineOperators for ZooKeeperStore {
    fn inspect(&self, key: &Key, purpose: Purpose, deadline: &Deadline) -> PublicResult<Inspected> {
        let inspected = self.look_at(&self.0.name(key), purpose, deadline);
        self.0.told(Some(key), inspected)
    }

    /// Each owner is told by a change of its node; then it finds the other.
    fn end(&self, key: &Key, entries: &[Entry], deadline: &Deadline) -> PublicResult<bool> {
        let name = self.0.name(key);
        let mut changes = Vec::new();
        for entry in entries {
            let path = name.child(&entry.id);
            if let Some(owner) = entry.owner() {
                let broken = name.child(&nodes::broken(uuid_of(owner)));
                changes.push(Change::create(broken, Vec::new()));
                changes.push(Change::set(path.clone(), b"broken".to_vec()));
            }
            changes.push(Change::delete(path));
        }
        self.0.told(Some(key), self.end_by(changes, deadline))
    }

    fn list(
        &self,
        (namespace, prefix): (&Namespace, &str),
        cursor: &Cursor,
        deadline: &Deadline,
    ) -> PublicResult<Page> {
        let page = self.page(namespace, prefix, cursor, deadline);
        self.0.told(None, page)
    }

    fn load(&self, key: &Key, deadline: &Deadline) -> PublicResult<Stored> {
        let path = self.value_key(key);
        let load = || {
            let mut replies = self
                .0
                .call_again(&[Op::sync(&path), Op::get(path.clone())], deadline)?;
            replies.done()?;
            Ok(replies.data()?.map(|(value, _)| value.into()))
        };
        self.0.told(Some(key), load())
    }

    fn watch_value(&self, key: &Key) -> Box<dyn Watch> {
        Box::new(ValueWatch::new(self.0.clone(), self.value_key(key)))
    }

    fn remove(&self, key: &Key, deadline: &Deadline) -> PublicResult<()> {
        let removed = self
            .0
            .call_again(&[Op::delete(self.value_key(key))], deadline);
        let removed = removed.and_then(|mut replies| replies.exists());
        self.0.told(Some(key), removed.map(drop))
    }

    fn value_key(&self, key: &Key) -> String {
        self.0.name(key).child(VALUE)
    }

    fn diagnose(
        &self,
        (_, options): (&Namespace, &Options),
        deadline: &Deadline,
    ) -> PublicResult<Vec<Finding>> {
        let deadline = self.0.gives_up_by(deadline);
        let findings = diagnosis::diagnose(&self.0, options, &deadline);
        self.0.told(None, findings)
    }
}

/// What is in nodes of a name that were asked for, by what they are called; `None` of one that wasn't there.
struct Contents(HashMap<String, Option<(Vec<u8>, Stat)>>);

impl Contents {
    fn get(&self, node: &str) -> Option<&(Vec<u8>, Stat)> {
        self.0.get(node)?.as_ref()
    }

    fn asked_for(&self, node: &str) -> bool {
        self.0.contains_key(node)
    }

    /// False of one that has left meanwhile, and of a kept place that is over.
    fn has(&self, entry: &Entry, leaders_now: Option<i64>) -> bool {
        match (self.get(&entry.id), leaders_now) {
            (None, _) => !self.asked_for(&entry.id),
            (Some((content, stat)), Some(now)) if entry.is_kept() => {
                !left(content, stat, now).is_zero()
            }
            _ => true,
        }
    }
}

impl ZooKeeperStore {
    fn look_at(
        &self,
        name: &Name,
        purpose: Purpose,
        deadline: &Deadline,
    ) -> Result<Inspected, Failure> {
        loop {
            let requests = [Op::sync(&name.path), Op::children(&name.path)];
            let mut replies = self.0.call_again(&requests, deadline)?;
            replies.done()?;
            let found = replies.children()?;
            let stat = found.as_ref().map(|(_, stat)| *stat);
            let mut line = Children::of(found).line;
            let shows_all = match purpose {
                Purpose::Show => true,
                Purpose::Count => line.0.iter().any(Entry::is_kept),
                // Without the leader's clock none is taken for over.
                Purpose::Break => false,
            };
            let leaders_now = match shows_all && !line.0.is_empty() {
                true => self.leaders_now(name, deadline)?,
                false => None,
            };
            let shown = match shows_all {
                true => &line.0[..],
                false => line.holders(),
            };
            let contents = self.contents(name, shown, deadline)?;
            line.0.retain(|entry| contents.has(entry, leaders_now));
            // Where one has left meanwhile, others hold in its place.
            if line.holders().iter().all(|one| contents.asked_for(&one.id)) {
                return Ok(inspected(line, &contents, leaders_now, stat));
            }
        }
    }

    /// What these nodes of a name hold, and `held`.
    fn contents(
        &self,
        name: &Name,
        shown: &[Entry],
        deadline: &Deadline,
    ) -> Result<Contents, Failure> {
        let shown = shown.iter().map(|entry| &*entry.id);
        let nodes: Vec<_> = shown.chain([MARKER]).map(str::to_owned).collect();
        let gets: Vec<_> = nodes.iter().map(|node| Op::get(name.child(node))).collect();
        let mut replies = self.0.call_again(&gets, deadline)?;
        let contents = nodes.into_iter().map(|node| Ok((node, replies.data()?)));
        contents.collect::<Result<_, Failure>>().map(Contents)
    }

    /// `None` for a user that may only read.
    fn leaders_now(&self, name: &Name, deadline: &Deadline) -> Result<Option<i64>, Failure> {
        match self.0.leaders_clock(name, deadline) {
            Ok(LeadersClock(now, _)) => Ok(Some(now)),
            Err(Failure::Refused(Code::NO_AUTH | Code::NO_NODE)) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// False if one of them has left, or was broken by another.
    fn end_by(&self, mut changes: Vec<Change>, deadline: &Deadline) -> Result<bool, Failure> {
        loop {
            let mut replies = self.0.call(&[Op::Multi(changes.clone())], deadline)?;
            match replies.multi()? {
                Ok(_) => return Ok(true),
                // What tells the owner that it was broken is there already.
                Err(Refused {
                    code: Code::NODE_EXISTS,
                    change,
                }) if change < changes.len() => _ = changes.remove(change),
                Err(refused) if refused.code == Code::NO_NODE => return Ok(false),
                Err(refused) => return Err(refused.code.into()),
            }
        }
    }

    fn page(
        &self,
        namespace: &Namespace,
        prefix: &str,
        cursor: &Cursor,
        deadline: &Deadline,
    ) -> Result<Page, Failure> {
        let path = self.0.namespace_path(namespace.as_str());
        let mut replies = self
            .0
            .call_again(&[Op::sync(&path), Op::children(&path)], deadline)?;
        replies.done()?;
        let nodes = replies
            .children()?
            .map_or_else(Vec::new, |(nodes, _)| nodes);
        let names = nodes.iter().filter_map(|node| nodes::decoded(node));
        let after = cursor.after.as_deref().unwrap_or("");
        let is_one = |name: &String| name.starts_with(prefix) && name.as_str() > after;
        let mut names: Vec<_> = names.filter(is_one).collect();
        names.sort();
        let next = names.get(PAGE - 1).filter(|_| names.len() > PAGE).cloned();
        names.truncate(PAGE);
        let next = next.map(|last| Cursor {
            after: Some(last),
            ..Cursor::default()
        });
        let names = self.taken(namespace, names, deadline)?;
        Ok(Page { names, next })
    }

    /// Those of the names that somebody has, or keeps from others.
    fn taken(
        &self,
        namespace: &Namespace,
        names: Vec<String>,
        deadline: &Deadline,
    ) -> Result<Vec<String>, Failure> {
        let keys = names
            .iter()
            .filter_map(|name| Key::new(namespace, name).ok());
        let places: Vec<_> = keys.map(|key| self.0.name(&key)).collect();
        let requests: Vec<_> = places
            .iter()
            .map(|place| Op::children(&place.path))
            .collect();
        if requests.is_empty() {
            return Ok(names);
        }
        let mut replies = self.0.call_again(&requests, deadline)?;
        let mut taken = Vec::new();
        for (name, place) in names.into_iter().zip(places) {
            let mut line = Children::of(replies.children()?).line;
            if line.0.iter().any(Entry::is_kept) {
                line = self.current_line(&place, deadline)?;
            }
            taken.extend((!line.0.is_empty()).then_some(name));
        }
        Ok(taken)
    }

    /// The line of a name as the leader has it, without the places that are over.
    fn current_line(&self, name: &Name, deadline: &Deadline) -> Result<Line, Failure> {
        let mut line = self.0.children(name, deadline)?.line;
        if line.0.iter().any(Entry::is_kept) {
            let LeadersClock(now, _) = self.0.leaders_clock(name, deadline)?;
            let left = self.0.times_left(name, &line, now, deadline)?;
            let is_over = |entry: &Entry| left.get(&entry.id).is_some_and(Duration::is_zero);
            line.0.retain(|entry| !is_over(entry));
        }
        Ok(line)
    }
}

fn inspected(
    mut line: Line,
    contents: &Contents,
    leaders_now: Option<i64>,
    stat: Option<Stat>,
) -> Inspected {
    line.0.iter_mut().for_each(|entry| fill(entry, contents));
    let facts = line.0.iter();
    let facts: Vec<_> = facts
        .map(|one| facts_of(one, contents, leaders_now))
        .collect();
    Inspected {
        last_token: last_token(&line, &facts, stat),
        line,
        facts,
    }
}

/// The whole text of its owner, and what else its node says.
fn fill(entry: &mut Entry, contents: &Contents) {
    let Some((content, stat)) = contents.get(&entry.id) else {
        return;
    };
    let data = NodeData::of(content);
    if let Who::Owner(owner) = &mut entry.who
        && uuid_of(&data.owner) == uuid_of(owner)
    {
        *owner = data.owner;
    }
    entry.token = data.token;
    entry.session = Some(stat.ephemeral_owner);
}

fn facts_of(entry: &Entry, contents: &Contents, leaders_now: Option<i64>) -> Facts {
    let Some((content, stat)) = contents.get(&entry.id) else {
        return Facts::default();
    };
    let held = contents
        .get(MARKER)
        .map(|(held, stat)| (read_marker(held), stat));
    let own =
        held.filter(|((uuid, _), _)| entry.owner().is_some_and(|owner| uuid_of(owner) == uuid));
    let is_told = own.as_ref().is_some_and(|((_, is_told), _)| *is_told);
    let passed = |since: i64| {
        let passed = leaders_now?.saturating_sub(since);
        Some(Duration::from_millis(passed.try_into().unwrap_or(0)))
    };
    let token = token_of(stat.czxid.try_into().unwrap_or(0), is_told).number;
    Facts {
        token: entry.token.unwrap_or(token),
        held_for: passed(own.map_or(stat.ctime, |(_, held)| held.mtime)),
        waited_for: passed(stat.ctime),
        remaining: match entry.is_kept() {
            true => leaders_now.map(|now| left(content, stat, now)),
            // Its session may end as late as that, if it isn't there any more.
            false => Some(Duration::from_millis(NodeData::of(content).ttl_millis)),
        },
    }
}

/// That of a holder, or a number below all tokens that are given later, and not below those that were.
fn last_token(line: &Line, facts: &[Facts], stat: Option<Stat>) -> Option<u64> {
    let holders = line.holders().iter().zip(facts);
    let holders = holders.filter(|(entry, _)| !entry.is_kept());
    let largest = holders.map(|(_, facts)| facts.token).max();
    largest.or_else(|| {
        let stat = stat.filter(|stat| stat.pzxid != stat.czxid)?;
        Some(token_of(stat.pzxid.try_into().ok()?, false).number)
    })
}
