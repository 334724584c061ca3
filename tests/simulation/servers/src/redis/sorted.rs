//! Sorted sets, and the commands for them.

use std::collections::BTreeSet;
use std::ops::Range;

use super::keyspace::Bytes;
use super::numbers::{double, integer, places, score};
use super::reply::{Outcome, Reply, Words};
use super::state::State;

/// Members, in the order of their scores; of those with the same, in that of their bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sorted(BTreeSet<(Rank, Bytes)>);

/// The bits of a score, in the order of scores.
type Rank = i64;

fn rank(score: f64) -> Rank {
    // -0 is 0.
    turned((score + 0.0).to_bits().cast_signed())
}

/// Of the bits of a score its rank, and of a rank the bits.
fn turned(bits: i64) -> i64 {
    bits ^ ((bits >> 63) & i64::MAX)
}

fn score_at(rank: Rank) -> f64 {
    f64::from_bits(turned(rank).cast_unsigned())
}

impl Sorted {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn rank_of(&self, member: &[u8]) -> Option<Rank> {
        let mut all = self.0.iter();
        let found = all.find(|(_, other)| other == member);
        found.map(|(rank, _)| *rank)
    }

    fn score(&self, member: &[u8]) -> Option<f64> {
        self.rank_of(member).map(score_at)
    }

    /// Says whether it is new.
    fn set(&mut self, member: &[u8], score: f64) -> bool {
        let is_new = !self.remove(member);
        self.0.insert((rank(score), member.to_vec()));
        is_new
    }

    fn remove(&mut self, member: &[u8]) -> bool {
        let rank = self.rank_of(member);
        rank.is_some_and(|rank| self.0.remove(&(rank, member.to_vec())))
    }

    fn between(&self, ends: Range<Rank>) -> impl Iterator<Item = &(Rank, Bytes)> {
        let end = (ends.end.max(ends.start), Bytes::new());
        self.0.range((ends.start, Bytes::new())..end)
    }
}

/// The ranks between two ends of scores, of which an open one isn't among them.
fn ends(words: &Words) -> Result<Range<Rank>, Reply> {
    let end = |word: &[u8], is_high: bool| {
        let (text, is_open) = match word.strip_prefix(b"(") {
            Some(text) => (text, true),
            None => (word, false),
        };
        let error = || Reply::error("ERR min or max is not a float");
        let score = double(text).ok_or_else(error)?;
        Ok(rank(score) + i64::from(is_open != is_high))
    };
    Ok(end(&words[2], false)?..end(&words[3], true)?)
}

/// Does that with the set of a key, or with none.
fn with<T>(
    state: &mut State,
    words: &Words,
    act: impl FnOnce(&mut Sorted) -> T,
) -> Result<T, Reply> {
    let sorted = state.keys.held(&words[1])?;
    Ok(act(sorted.unwrap_or(&mut Sorted::default())))
}

pub(super) fn add(state: &mut State, words: &Words) -> Outcome {
    let pairs = words[2..].chunks(2);
    if words.len() % 2 == 1 {
        return Err(Reply::error("ERR syntax error"));
    }
    let scores = pairs.clone().map(|pair| score(&pair[0]));
    let scores: Vec<f64> = scores.collect::<Result<_, _>>()?;
    let sorted: &mut Sorted = state.keys.held_or_new(&words[1])?;
    let added = pairs.zip(scores);
    let added = added.filter(|(pair, score)| sorted.set(&pair[1], *score));
    Ok(Reply::count(added.count()))
}

pub(super) fn card(state: &mut State, words: &Words) -> Outcome {
    with(state, words, |sorted| Reply::count(sorted.len()))
}

pub(super) fn score_of(state: &mut State, words: &Words) -> Outcome {
    let score = with(state, words, |sorted| sorted.score(&words[2]))?;
    Ok(score.map_or(Reply::Nil, Reply::double))
}

pub(super) fn count(state: &mut State, words: &Words) -> Outcome {
    let ends = ends(words)?;
    with(state, words, |sorted| {
        Reply::count(sorted.between(ends).count())
    })
}

pub(super) fn remove(state: &mut State, words: &Words) -> Outcome {
    with(state, words, |sorted| {
        let removed = words[2..].iter().filter(|member| sorted.remove(member));
        Reply::count(removed.count())
    })
}

pub(super) fn remove_between(state: &mut State, words: &Words) -> Outcome {
    let ends = ends(words)?;
    with(state, words, |sorted| {
        let all: Vec<_> = sorted.between(ends).cloned().collect();
        all.iter().for_each(|one| _ = sorted.0.remove(one));
        Reply::count(all.len())
    })
}

/// ZRANGE, and ZRANGEBYSCORE, with LIMIT and WITHSCORES: by places, or by scores.
pub(super) fn range(state: &mut State, words: &Words) -> Outcome {
    let mut by_score = words[0].eq_ignore_ascii_case(b"ZRANGEBYSCORE");
    let (mut with_scores, mut limit) = (false, None);
    let mut options = words[4..].iter();
    while let Some(word) = options.next() {
        match (word.as_slice(), options.as_slice()) {
            (b"BYSCORE", _) => by_score = true,
            (b"WITHSCORES", _) => with_scores = true,
            (b"LIMIT", [skipped, most, rest @ ..]) => {
                limit = Some((integer(skipped)?, integer(most)?));
                options = rest.iter();
            }
            _ => return Err(Reply::error("ERR syntax error")),
        }
    }
    if limit.is_some() && !by_score {
        return Err(Reply::error("ERR syntax error"));
    }
    let (skipped, most) = limit.unwrap_or((0, -1));
    // None below 0 are skipped: there is nothing then. And fewer than none are all.
    let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let told = |all: &mut dyn Iterator<Item = &(Rank, Bytes)>| {
        let all = all.skip(skipped).take(most);
        let all = all.flat_map(|(rank, member)| {
            let score = with_scores.then(|| Reply::double(score_at(*rank)));
            [Some(Reply::text(member.clone())), score]
        });
        Reply::List(all.flatten().collect())
    };
    if by_score {
        let ends = ends(words)?;
        return with(state, words, |sorted| told(&mut sorted.between(ends)));
    }
    let (first, last) = (integer(&words[2])?, integer(&words[3])?);
    with(state, words, |sorted| {
        let range = places(first, last, sorted.len());
        told(&mut sorted.0.iter().skip(range.start).take(range.len()))
    })
}
