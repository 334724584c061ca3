//! Transactions: what they compare, and what they do.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::fields::{bytes, number, one_of};
use super::http::{INVALID, NOT_FOUND, OUT_OF_RANGE, Refusal};
use super::request::{self, Bounds, Put, Range, Result, Target, bounds};
use super::store::{KeyValue, State, Write};

pub(super) type Branch = Vec<Op>;

#[derive(Clone, Debug)]
pub(super) struct Txn {
    pub(super) compares: Vec<Compare>,
    pub(super) then: Branch,
    pub(super) otherwise: Branch,
}

#[derive(Clone, Debug)]
pub(super) enum Op {
    Put(Put),
    Delete(Bounds),
    Range(Range),
    Txn(Txn),
}

#[derive(Clone, Debug)]
pub(super) struct Compare {
    bounds: Bounds,
    target: Target,
    /// How what is there has to be ordered against what is given.
    wanted: Wanted,
    number: i64,
    value: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum Wanted {
    Is(Ordering),
    IsNot(Ordering),
}

/// Which branch each transaction takes, this one and then those in that branch, in their order.
#[derive(Debug)]
struct Path {
    holds: bool,
    inner: Vec<Path>,
}

pub(super) fn op(of: &Value, most: usize) -> Result<Op> {
    let kind = of.as_object().and_then(|of| of.iter().next());
    Ok(match kind.map(|(kind, of)| (kind.as_str(), of)) {
        Some(("request_put", of)) => Op::Put(request::put(of)?),
        Some(("request_delete_range", of)) => Op::Delete(bounds(of)?),
        Some(("request_range", of)) => Op::Range(request::range(of)?),
        Some(("request_txn", of)) => Op::Txn(request::txn(of, most)?),
        _ => return Err(Refusal::new(INVALID, "key not found").into()),
    })
}

pub(super) fn compare(of: &Value) -> Result<Compare> {
    const TARGETS: [(&str, Target, &str); 5] = [
        ("VERSION", Target::Version, "version"),
        ("CREATE", Target::Create, "create_revision"),
        ("MOD", Target::Mod, "mod_revision"),
        ("VALUE", Target::Value, "value"),
        ("LEASE", Target::Lease, "lease"),
    ];
    const RESULTS: [(&str, Wanted); 4] = [
        ("EQUAL", Wanted::Is(Ordering::Equal)),
        ("GREATER", Wanted::Is(Ordering::Greater)),
        ("LESS", Wanted::Is(Ordering::Less)),
        ("NOT_EQUAL", Wanted::IsNot(Ordering::Equal)),
    ];
    let (target, field) = one_of(
        of,
        "target",
        &TARGETS.map(|(word, target, field)| (word, (target, field))),
    )?;
    let is_value = target == Target::Value;
    Ok(Compare {
        bounds: bounds(of)?,
        target,
        wanted: one_of(of, "result", &RESULTS)?,
        number: if is_value { 0 } else { number(of, field)? },
        value: if is_value {
            bytes(of, field)?
        } else {
            Vec::new()
        },
    })
}

impl Compare {
    fn holds(&self, state: &State) -> bool {
        let mut there = state.within(&self.bounds).peekable();
        if there.peek().is_none() {
            // What isn't there has no value, and 0 for its numbers.
            return self.target != Target::Value && self.holds_of(&KeyValue::default());
        }
        there.all(|one| self.holds_of(one))
    }

    fn holds_of(&self, one: &KeyValue) -> bool {
        let order = match self.target {
            Target::Version | Target::Key => one.version.cmp(&self.number),
            Target::Create => one.created.cmp(&self.number),
            Target::Mod => one.modified.cmp(&self.number),
            Target::Lease => one.lease.cmp(&self.number),
            Target::Value => one.value.cmp(&self.value),
        };
        match self.wanted {
            Wanted::Is(wanted) => order == wanted,
            Wanted::IsNot(unwanted) => order != unwanted,
        }
    }
}

/// The keys that a branch puts, and the ranges that it deletes.
type Touched<'a> = (BTreeSet<&'a [u8]>, Vec<&'a Bounds>);

impl Txn {
    /// A transaction with another inside counts as one that writes, also if none does.
    pub(super) fn only_reads(&self) -> bool {
        self.ops().all(|op| matches!(op, Op::Range(_)))
    }

    pub(super) fn is_serializable(&self) -> bool {
        self.ops()
            .all(|op| matches!(op, Op::Range(range) if range.is_serializable))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.compares.is_empty() && self.ops().next().is_none()
    }

    fn ops(&self) -> impl Iterator<Item = &Op> {
        self.then.iter().chain(&self.otherwise)
    }

    pub(super) fn size(&self) -> usize {
        let size = |op: &Op| match op {
            Op::Put(put) => put.size(),
            Op::Txn(txn) => txn.size(),
            Op::Delete(_) | Op::Range(_) => 0,
        };
        self.ops().map(size).sum()
    }

    /// Refuses one that puts a key twice, or puts and deletes it, in one branch.
    pub(super) fn check_keys(&self) -> std::result::Result<(), Refusal> {
        touched(&self.then)?;
        touched(&self.otherwise).map(drop)
    }

    fn path(&self, state: &State) -> Path {
        let holds = self.compares.iter().all(|compare| compare.holds(state));
        let inner = self.branch(holds).iter().filter_map(|op| match op {
            Op::Txn(txn) => Some(txn.path(state)),
            _ => None,
        });
        Path {
            holds,
            inner: inner.collect(),
        }
    }

    fn branch(&self, holds: bool) -> &Branch {
        if holds { &self.then } else { &self.otherwise }
    }

    /// Refuses what can't be done, of what would be done: first puts, and then ranges.
    fn check(&self, path: &Path, state: &State) -> std::result::Result<(), Refusal> {
        self.check_each(path, &|op| match op {
            Op::Put(put) => state.check_lease(put.lease),
            _ => Ok(()),
        })?;
        self.check_each(path, &|op| match op {
            Op::Range(range) => state.check_revision(range.revision),
            _ => Ok(()),
        })
    }

    fn check_each(
        &self,
        path: &Path,
        check: &dyn Fn(&Op) -> std::result::Result<(), Refusal>,
    ) -> std::result::Result<(), Refusal> {
        let mut inner = path.inner.iter();
        for op in self.branch(path.holds) {
            match op {
                Op::Txn(txn) => txn.check_each(inner.next().expect("one for each"), check)?,
                op => check(op)?,
            }
        }
        Ok(())
    }

    fn carry_out(&self, path: &Path, write: &mut Write<'_>) -> Value {
        let mut inner = path.inner.iter();
        let mut responses = Vec::new();
        for op in self.branch(path.holds) {
            responses.push(match op {
                Op::Put(put) => json!({ "response_put": write.put(put) }),
                Op::Delete(bounds) => json!({ "response_delete_range": write.delete(bounds) }),
                Op::Range(range) => json!({ "response_range": write.range(range) }),
                Op::Txn(txn) => {
                    let path = inner.next().expect("one for each");
                    json!({ "response_txn": txn.carry_out(path, write) })
                }
            });
        }
        // A transaction inside another has nothing in its header.
        let mut answer = json!({ "header": {} });
        if path.holds {
            answer["succeeded"] = true.into();
        }
        if !responses.is_empty() {
            answer["responses"] = responses.into();
        }
        answer
    }
}

impl State {
    /// Carries out a transaction, or refuses all of it. Its compares see nothing of what it writes.
    pub(super) fn transact(&mut self, txn: &Txn) -> std::result::Result<Value, Refusal> {
        let path = txn.path(self);
        txn.check(&path, self)?;
        let mut write = self.write();
        let mut answer = txn.carry_out(&path, &mut write);
        answer["header"] = write.header();
        Ok(answer)
    }

    pub(super) fn check_lease(&self, lease: i64) -> std::result::Result<(), Refusal> {
        match lease == 0 || self.leases.contains_key(&lease) {
            true => Ok(()),
            false => Err(Refusal::new(NOT_FOUND, "requested lease not found")),
        }
    }

    pub(super) fn check_revision(&self, revision: i64) -> std::result::Result<(), Refusal> {
        let why = match revision {
            0 => return Ok(()),
            revision if revision > self.revision => "mvcc: required revision is a future revision",
            revision if revision < self.compacted => "mvcc: required revision has been compacted",
            _ => return Ok(()),
        };
        Err(Refusal::new(OUT_OF_RANGE, why))
    }
}

fn touched(branch: &Branch) -> std::result::Result<Touched<'_>, Refusal> {
    let mut puts = BTreeSet::new();
    let deleted = branch.iter().filter_map(|op| match op {
        Op::Delete(bounds) => Some(bounds),
        _ => None,
    });
    let mut deletes: Vec<_> = deleted.collect();
    let twice = || Refusal::new(INVALID, "duplicate key given in txn request");
    // Those without an end aren't looked at.
    let is_deleted = |key: &[u8], deletes: &[&Bounds]| {
        let has = |bounds: &&Bounds| bounds.end != [0] && bounds.contains(key);
        deletes.iter().any(has)
    };
    for op in branch {
        let Op::Txn(txn) = op else {
            continue;
        };
        let (then, otherwise) = (touched(&txn.then)?, touched(&txn.otherwise)?);
        // One key may be in both branches: only one is carried out.
        let inner: BTreeSet<_> = then.0.union(&otherwise.0).copied().collect();
        if inner
            .iter()
            .any(|key| puts.contains(key) || is_deleted(key, &deletes))
        {
            return Err(twice());
        }
        puts.extend(inner);
        deletes.extend(then.1.into_iter().chain(otherwise.1));
    }
    for op in branch {
        let Op::Put(put) = op else {
            continue;
        };
        if is_deleted(&put.key, &deletes) || !puts.insert(&put.key) {
            return Err(twice());
        }
    }
    Ok((puts, deletes))
}
