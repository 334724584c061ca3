//! How names stood when they were looked at.

use super::ops::{get, got, value_of};
use crate::base::owner::Owner;
use crate::base::value::Stored;
use crate::engine::etcd::client::proof;
use crate::engine::etcd::client::txn::{Answer, Entry, Op};
use crate::engine::etcd::keys::{Keys, id_of, last_part};
use crate::engine::etcd::place::Line;
use crate::engine::line::Standing;

/// What is looked at of each name, besides whether the owner was broken there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look<'a> {
    pub(super) line: Part<'a>,
    /// Who was let in alone, and hasn't released.
    pub(super) entered: bool,
    pub(super) value: bool,
}

/// What is looked at of a line.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part<'a> {
    Whole,
    /// The owner's place, by its id, and those ahead of it.
    Ahead {
        id: &'a str,
        /// When the place was created, if that is known.
        created: Option<u64>,
        /// So many decide, the nearest ones; `None`: all.
        deciding: Option<u32>,
    },
}

/// How the names of a claim stood.
#[derive(Debug)]
pub(in super::super) struct Seen {
    /// What was looked at of each line.
    pub(in super::super) lines: Vec<Line>,
    /// Whether those are all that are ahead of the owner. Else they are the nearest ones, which keep it from holding.
    pub(in super::super) is_whole: bool,
    /// Whether others have come behind the owner, so that of those ahead too few were looked at.
    pub(in super::super) is_short: bool,
    /// Whether the owner was broken in one of them.
    pub(in super::super) is_broken: bool,
    /// Whether somebody was let in alone, and hasn't released.
    pub(in super::super) has_entered: bool,
    pub(in super::super) value: Option<Stored>,
    pub(in super::super) revision: u64,
    /// The member that has shown it, and in which term.
    pub(in super::super) by: proof::Seen,
}

impl Look<'_> {
    pub(super) fn ops(self, keys: &[Keys], owner: &Owner) -> Vec<Op> {
        let mut ops = Vec::with_capacity(4 * keys.len() + 1);
        for keys in keys {
            self.line.look(keys, &mut ops);
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
        let mut seen = Seen {
            lines: Vec::with_capacity(names),
            is_whole: true,
            is_short: false,
            is_broken: false,
            has_entered: false,
            value: None,
            revision: answer.revision,
            by: answer.by,
        };
        let mut got = got(answer);
        for _ in 0..names {
            self.line.show(&mut got, &mut seen);
            seen.is_broken |= got.next().is_some_and(|entries| !entries.is_empty());
            if self.entered {
                seen.has_entered |= got.next().is_some_and(|entries| !entries.is_empty());
            }
        }
        seen.value = self.value.then(|| got.next().and_then(value_of));
        seen
    }
}

impl Part<'_> {
    /// Of those ahead one more is asked for than decide, so that it shows whether there are more, and one for the owner's place.
    fn limit(self) -> Option<u32> {
        match self {
            Part::Ahead { deciding, .. } => Some(deciding?.saturating_add(2)),
            Part::Whole => None,
        }
    }

    fn look(self, keys: &Keys, ops: &mut Vec<Op>) {
        let Part::Ahead { id, created, .. } = self else {
            ops.push(Op::Get(keys.line()));
            return;
        };
        ops.push(get(keys.place(id)));
        ops.push(Op::Newest {
            range: keys.line(),
            before: created,
            limit: self.limit(),
        });
    }

    fn show(self, got: &mut impl Iterator<Item = Vec<Entry>>, seen: &mut Seen) {
        let mut first = got.next().unwrap_or_default();
        let Part::Ahead { deciding, .. } = self else {
            seen.lines.push(Line::of(first));
            return;
        };
        let newest = got.next().unwrap_or_default();
        let is_all = self
            .limit()
            .is_none_or(|limit| newest.len() < limit as usize);
        let own = first.pop();
        let is_ahead = |one: &Entry| own.as_ref().is_none_or(|own| one.created < own.created);
        let mut line: Vec<_> = newest.into_iter().filter(is_ahead).collect();
        seen.is_whole &= is_all;
        seen.is_short |= !is_all && deciding.is_some_and(|least| line.len() < least as usize);
        line.extend(own);
        seen.lines.push(Line::of(line));
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
