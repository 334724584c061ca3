//! How names stood when they were looked at.

use super::ops::{get, got, value_of};
use crate::base::owner::Owner;
use crate::base::value::Stored;
use crate::engine::etcd::client::txn::{Answer, Entry, Op};
use crate::engine::etcd::keys::{Keys, id_of, last_part};
use crate::engine::etcd::place::Line;
use crate::engine::line::Standing;

/// What is looked at of each name, besides its line and whether the owner was broken there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// Who was let in alone, and hasn't released.
    pub(super) entered: bool,
    pub(super) value: bool,
}

/// How the names of a claim stood.
#[derive(Debug)]
pub(in super::super) struct Seen {
    pub(in super::super) lines: Vec<Line>,
    /// Whether the owner was broken in one of them.
    pub(in super::super) is_broken: bool,
    /// Whether somebody was let in alone, and hasn't released.
    pub(in super::super) has_entered: bool,
    pub(in super::super) value: Option<Stored>,
    pub(in super::super) revision: u64,
}

impl Look {
    pub(super) fn ops(self, keys: &[Keys], owner: &Owner) -> Vec<Op> {
        let mut ops = Vec::with_capacity(3 * keys.len() + 1);
        for keys in keys {
            ops.push(Op::Get(keys.line()));
            ops.push(get(keys.broken(id_of(owner))));
            if self.entered {
                ops.push(Op::Get(keys.entered()));
            }
        }
        if self.value {
            ops.extend(keys.first().map(|keys| get(keys.value())));
        }
        ops
    }

    /// What its part of an answer shows.
    pub(super) fn seen(self, answer: Answer, names: usize) -> Seen {
        let revision = answer.revision;
        let mut got = got(answer);
        let (mut lines, mut is_broken, mut has_entered) = (Vec::with_capacity(names), false, false);
        for _ in 0..names {
            lines.push(Line::of(got.next().unwrap_or_default()));
            is_broken |= got.next().is_some_and(|entries| !entries.is_empty());
            if self.entered {
                has_entered |= got.next().is_some_and(|entries| !entries.is_empty());
            }
        }
        Seen {
            lines,
            is_broken,
            has_entered,
            value: self.value.then(|| got.next().and_then(value_of)),
            revision,
        }
    }
}

/// Whether another than that one was let in alone, and hasn't released: of the ranges of all names.
pub(super) fn others(entered: &[Vec<Entry>], id: &str) -> bool {
    let mut all = entered.iter().flatten();
    all.any(|entry| last_part(&entry.key) != id)
}

impl Seen {
    /// How the owner stands in each line; `None` where it isn't.
    pub(in super::super) fn standings(
        &self,
        owner: &Owner,
    ) -> impl Iterator<Item = Option<(usize, Standing)>> {
        self.lines.iter().map(move |line| {
            let (at, _) = line.find(owner)?;
            Some((at, line.standing(at)))
        })
    }

    /// When the owner came: in all lines at once. `None` if it isn't in all of them since then.
    pub(in super::super) fn created(&self, owner: &Owner) -> Option<u64> {
        let mut created = self
            .lines
            .iter()
            .map(|line| Some(line.find(owner)?.1.created));
        let first = created.next()??;
        created.all(|other| other == Some(first)).then_some(first)
    }
}
