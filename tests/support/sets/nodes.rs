//! What a node of a cluster tells in CLUSTER NODES.

use std::ops::RangeInclusive;

use super::member::Member;

#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) id: String,
    flags: String,
    /// The id of the master that this node follows, or `-`.
    pub(super) master: String,
    pub(super) epoch: u64,
    connected: bool,
    pub(super) slots: Vec<RangeInclusive<u16>>,
    /// Slots that are on their way, such as `[5->-id]`.
    pub(super) open: usize,
}

impl Line {
    pub(super) fn is_master(&self) -> bool {
        self.has("master")
    }

    pub(super) fn is_good(&self) -> bool {
        let bad = ["handshake", "fail", "fail?", "noaddr"];
        self.connected && !bad.iter().any(|flag| self.has(flag))
    }

    pub(super) fn has_slot(&self, slot: u16) -> bool {
        self.slots.iter().any(|range| range.contains(&slot))
    }

    fn has(&self, flag: &str) -> bool {
        self.flags.split(',').any(|word| word == flag)
    }

    fn parse(line: &str) -> Option<Self> {
        let words: Vec<_> = line.split(' ').collect();
        let [
            id,
            _addr,
            flags,
            master,
            _ping,
            _pong,
            epoch,
            link,
            slots @ ..,
        ] = &words[..]
        else {
            return None;
        };
        let (open, slots): (Vec<&str>, Vec<&str>) =
            slots.iter().partition(|word| word.starts_with('['));
        Some(Self {
            id: (*id).to_owned(),
            flags: (*flags).to_owned(),
            master: (*master).to_owned(),
            epoch: epoch.parse().ok()?,
            connected: *link == "connected",
            slots: slots.iter().filter_map(|word| range(word)).collect(),
            open: open.len(),
        })
    }
}

/// Returns what a node knows, or `None` if it doesn't answer.
pub(super) fn seen_by(node: &Member) -> Option<Vec<Line>> {
    if !node.is_running() {
        return None;
    }
    let text: String = node.try_query(&["CLUSTER", "NODES"]).ok()?;
    Some(text.lines().filter_map(Line::parse).collect())
}

pub(super) fn myself(node: &Member) -> Option<Line> {
    seen_by(node)?.into_iter().find(|line| line.has("myself"))
}

fn range(word: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    Some(first.parse().ok()?..=last.parse().ok()?)
}
