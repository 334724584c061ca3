//! Sorted sets, and the commands for them.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::keyspace::Bytes;
use super::numbers::{Bound, integer, places, score};
use super::reply::{Outcome, Reply, Words};
use super::state::State;

/// Members by their scores; of those with the same, by their bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sorted {
    scores: BTreeMap<Bytes, f64>,
    order: BTreeSet<(Score, Bytes)>,
}

#[derive(Clone, Copy, Debug)]
struct Score(f64);

impl PartialEq for Score {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Score {}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> Ordering {
        // As numbers: -0 is 0.
        self.0.partial_cmp(&other.0).unwrap_or(Ordering::Equal)
    }
}

impl Sorted {
    pub(super) fn is_empty(&self) -> bool {
        self.scores.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.scores.len()
    }

    pub(super) fn score(&self, member: &[u8]) -> Option<f64> {
        self.scores.get(member).copied()
    }

    /// Gives its score before.
    pub(super) fn set(&mut self, member: &[u8], score: f64) -> Option<f64> {
        let before = self.scores.insert(member.to_vec(), score);
        if let Some(before) = before {
            self.order.remove(&(Score(before), member.to_vec()));
        }
        self.order.insert((Score(score), member.to_vec()));
        before
    }

    pub(super) fn remove(&mut self, member: &[u8]) -> bool {
        let Some(before) = self.scores.remove(member) else {
            return false;
        };
        self.order.remove(&(Score(before), member.to_vec()));
        true
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (&Bytes, f64)> {
        let all = self.order.iter();
        all.map(|(score, member)| (member, score.0))
    }

    fn between(&self, (low, high): (Bound, Bound)) -> Vec<(&Bytes, f64)> {
        let from = self.order.range((Score(low.score), Bytes::new())..);
        let all = from.map(|(score, member)| (member, score.0));
        let all = all.skip_while(|(_, score)| !low.is_below(*score));
        all.take_while(|(_, score)| high.is_above(*score)).collect()
    }
}

#[derive(Default)]
struct Options {
    only_new: bool,
    only_old: bool,
    greater: bool,
    less: bool,
    changed: bool,
    adds: bool,
}

impl Options {
    /// Those of ZADD, and where its pairs begin.
    fn of(words: &Words) -> (Self, usize) {
        let (mut options, mut at) = (Options::default(), 2);
        while let Some(word) = words.get(at) {
            match word.to_ascii_uppercase().as_slice() {
                b"NX" => options.only_new = true,
                b"XX" => options.only_old = true,
                b"GT" => options.greater = true,
                b"LT" => options.less = true,
                b"CH" => options.changed = true,
                b"INCR" => options.adds = true,
                _ => break,
            }
            at += 1;
        }
        (options, at)
    }

    fn check(&self, pairs: &[Bytes]) -> Result<(), Reply> {
        if pairs.is_empty() || pairs.len() % 2 == 1 {
            return Err(Reply::error("ERR syntax error"));
        }
        if self.only_new && self.only_old {
            let error = "ERR XX and NX options at the same time are not compatible";
            return Err(Reply::error(error));
        }
        if self.greater && (self.less || self.only_new) || self.less && self.only_new {
            let error = "ERR GT, LT, and/or NX options at the same time are not compatible";
            return Err(Reply::error(error));
        }
        if self.adds && pairs.len() > 2 {
            let error = "ERR INCR option supports a single increment-element pair";
            return Err(Reply::error(error));
        }
        Ok(())
    }
}

pub(super) fn add(state: &mut State, words: &Words) -> Outcome {
    let (options, at) = Options::of(words);
    let pairs = &words[at..];
    options.check(pairs)?;
    let scores = pairs.chunks(2).map(|pair| score(&pair[0]));
    let scores: Vec<f64> = scores.collect::<Result<_, _>>()?;
    let sorted: &mut Sorted = state.keys.held_or_new(&words[1])?;
    let (mut added, mut updated, mut last) = (0, 0, Reply::Nil);
    for (pair, given) in pairs.chunks(2).zip(scores) {
        let before = sorted.score(&pair[1]);
        let is_kept = match before {
            None => options.only_old,
            Some(_) => options.only_new,
        };
        if is_kept {
            continue;
        }
        let added_to = before.filter(|_| options.adds);
        let score = added_to.map_or(given, |before| before + given);
        if score.is_nan() {
            return Err(Reply::error("ERR resulting score is not a number (NaN)"));
        }
        let is_less = |before: f64| options.greater && score <= before;
        let is_more = |before: f64| options.less && score >= before;
        if before.is_some_and(|before| is_less(before) || is_more(before)) {
            continue;
        }
        sorted.set(&pair[1], score);
        last = Reply::double(score);
        added += usize::from(before.is_none());
        updated += usize::from(before.is_some_and(|before| before != score));
    }
    Ok(match options.adds {
        true => last,
        false if options.changed => Reply::count(added + updated),
        false => Reply::count(added),
    })
}

pub(super) fn increase(state: &mut State, words: &Words) -> Outcome {
    let increment = score(&words[2])?;
    let sorted: &mut Sorted = state.keys.held_or_new(&words[1])?;
    let score = sorted.score(&words[3]).unwrap_or(0.0) + increment;
    if score.is_nan() {
        return Err(Reply::error("ERR resulting score is not a number (NaN)"));
    }
    sorted.set(&words[3], score);
    Ok(Reply::double(score))
}

fn held<'a>(state: &'a mut State, key: &[u8]) -> Result<Option<&'a mut Sorted>, Reply> {
    state.keys.held(key)
}

pub(super) fn card(state: &mut State, words: &Words) -> Outcome {
    let sorted = held(state, &words[1])?;
    Ok(Reply::count(sorted.map_or(0, |sorted| sorted.len())))
}

pub(super) fn score_of(state: &mut State, words: &Words) -> Outcome {
    let sorted = held(state, &words[1])?;
    let score = sorted.and_then(|sorted| sorted.score(&words[2]));
    Ok(score.map_or(Reply::Nil, Reply::double))
}

pub(super) fn count(state: &mut State, words: &Words) -> Outcome {
    let bounds = (Bound::of(&words[2])?, Bound::of(&words[3])?);
    let sorted = held(state, &words[1])?;
    Ok(Reply::count(
        sorted.map_or(0, |sorted| sorted.between(bounds).len()),
    ))
}

pub(super) fn remove(state: &mut State, words: &Words) -> Outcome {
    let Some(sorted) = held(state, &words[1])? else {
        return Ok(Reply::Int(0));
    };
    let removed = words[2..].iter().filter(|member| sorted.remove(member));
    Ok(Reply::count(removed.count()))
}

pub(super) fn remove_between(state: &mut State, words: &Words) -> Outcome {
    let bounds = (Bound::of(&words[2])?, Bound::of(&words[3])?);
    let Some(sorted) = held(state, &words[1])? else {
        return Ok(Reply::Int(0));
    };
    let all: Vec<Bytes> = sorted
        .between(bounds)
        .into_iter()
        .map(|(member, _)| member.clone())
        .collect();
    all.iter().for_each(|member| {
        sorted.remove(member);
    });
    Ok(Reply::count(all.len()))
}

#[derive(Default)]
struct Wanted {
    by_score: bool,
    reversed: bool,
    with_scores: bool,
    /// How many are skipped, and how many are told at most; fewer than none is all.
    limit: Option<(i64, i64)>,
}

impl Wanted {
    fn of(options: &[Bytes]) -> Result<Self, Reply> {
        let (mut wanted, mut options) = (Wanted::default(), options.iter());
        let syntax = || Reply::error("ERR syntax error");
        while let Some(word) = options.next() {
            match word.to_ascii_uppercase().as_slice() {
                b"BYSCORE" => wanted.by_score = true,
                b"REV" => wanted.reversed = true,
                b"WITHSCORES" => wanted.with_scores = true,
                b"LIMIT" => {
                    let mut next = || options.next().ok_or_else(syntax);
                    let (skipped, most) = (next()?, next()?);
                    wanted.limit = Some((integer(skipped)?, integer(most)?));
                }
                _ => return Err(syntax()),
            }
        }
        Ok(wanted)
    }

    fn reply<'a>(&self, all: impl Iterator<Item = (&'a Bytes, f64)>) -> Reply {
        let (skipped, most) = self.limit.unwrap_or((0, -1));
        let Ok(skipped) = usize::try_from(skipped) else {
            return Reply::List(Vec::new());
        };
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let mut parts = Vec::new();
        for (member, score) in all.skip(skipped).take(most) {
            parts.push(Reply::text(member.clone()));
            parts.extend(self.with_scores.then(|| Reply::double(score)));
        }
        Reply::List(parts)
    }
}

pub(super) fn range(state: &mut State, words: &Words) -> Outcome {
    let wanted = Wanted::of(&words[4..])?;
    if wanted.by_score {
        return by_score(state, words, &wanted);
    }
    if wanted.limit.is_some() {
        let error =
            "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX";
        return Err(Reply::error(error));
    }
    let (first, last) = (integer(&words[2])?, integer(&words[3])?);
    let Some(sorted) = held(state, &words[1])? else {
        return Ok(Reply::List(Vec::new()));
    };
    let range = places(first, last, sorted.len());
    let (skipped, length) = (range.start, range.len());
    Ok(match wanted.reversed {
        true => wanted.reply(sorted.iter().rev().skip(skipped).take(length)),
        false => wanted.reply(sorted.iter().skip(skipped).take(length)),
    })
}

pub(super) fn range_by_score(state: &mut State, words: &Words) -> Outcome {
    let wanted = Wanted::of(&words[4..])?;
    if wanted.by_score || wanted.reversed {
        return Err(Reply::error("ERR syntax error"));
    }
    by_score(state, words, &wanted)
}

fn by_score(state: &mut State, words: &Words, wanted: &Wanted) -> Outcome {
    let (mut low, mut high) = (&words[2], &words[3]);
    if wanted.reversed {
        (low, high) = (high, low);
    }
    let bounds = (Bound::of(low)?, Bound::of(high)?);
    let Some(sorted) = held(state, &words[1])? else {
        return Ok(Reply::List(Vec::new()));
    };
    Ok(match wanted.reversed {
        true => wanted.reply(sorted.between(bounds).into_iter().rev()),
        false => wanted.reply(sorted.between(bounds).into_iter()),
    })
}
