//! What the nodes of a lock are called, and what they tell: by their names, and by what is in them.
//!
//! A name has a node of its own, `/<chroot>/<namespace>/<name>`, and below it:
//!
//! | node | it is |
//! |---|---|
//! | `x-<uuid>-lock-<number>` | an owner that wants the lock, or has it: exclusively, |
//! | `r-<uuid>-lock-<number>` | to read, |
//! | `p2of5-<uuid>-lock-<number>` | or two of five permits |
//! | `kx-…`, `kr-…`, `kp2of5-…` | a place that is kept after its owner has released it |
//! | `_c_<uuid>-lock-<number>` | the same of Apache Curator's `InterProcessMutex`: exclusively |
//! | `held` | the holder marker: which exclusive owner was let in last and hasn't released the lock |
//! | `b-<uuid>` | an owner whose lock somebody broke |
//! | `value` | the value that the lock protects |
//!
//! The servers number the nodes of owners in the order in which they came. Curator sorts nodes by what stands behind
//! the last `lock-`, and those without it after all numbers: so both stand in one line. No other node may have
//! `lock-` in its name.

use std::time::Duration;

use super::client::Stat;
use crate::base::{BootInstant, Key, Mode, Owner, percent, sys};
use crate::engine::line::{Entry, Line, Who, uuid_of};

pub(super) const MARKER: &str = "held";
pub(super) const VALUE: &str = "value";
const BROKEN: &str = "b-";
/// What stands before the number.
const LOCK: &str = "-lock-";
/// How the nodes of Curator begin.
const CURATOR: &str = "_c_";
const UUID: usize = 36;

/// A name, or one of several.
#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) path: String,
}

impl Name {
    pub(super) fn child(&self, node: &str) -> String {
        format!("{}/{node}", self.path)
    }
}

/// The node of a namespace.
pub(super) fn namespace_path(chroot: &str, namespace: &str) -> String {
    let name = match namespace {
        // No other name is encoded like this.
        "" => "%".to_owned(),
        // The servers' own, if there is no chroot.
        "zookeeper" => "%7Aookeeper".to_owned(),
        other => encoded(other),
    };
    format!("{chroot}/{name}")
}

/// The node of a name.
pub(super) fn name_path(chroot: &str, key: &Key) -> String {
    let namespace = namespace_path(chroot, key.namespace());
    format!("{namespace}/{}", encoded(key.name()))
}

/// A name that every server takes for a node: some characters and `.` at the beginning aren't allowed there.
fn encoded(text: &str) -> String {
    percent::escaped(text, is_plain)
}

fn is_plain(place: usize, byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-".contains(&byte) || (byte == b'.' && place > 0)
}

/// The name whose node is called so; `None` of a node that isn't a name's.
pub(super) fn decoded(node: &str) -> Option<String> {
    percent::unescaped_text(node, is_plain)
}

/// What an owner's node is called, without the number.
pub(super) fn unnumbered(mode: Mode, uuid: &str) -> String {
    format!("{}-{uuid}{LOCK}", tag(mode))
}

/// A node can't have a `/` in its name.
fn tag(mode: Mode) -> String {
    match mode {
        Mode::Permits { count, of } => format!("p{count}of{of}"),
        mode => mode.to_string(),
    }
}

fn mode_of(tag: &str) -> Option<Mode> {
    match tag.strip_prefix('p') {
        Some(permits) => {
            let mode = Mode::parse(&permits.replace("of", "/"))?;
            mode.of_permits().map(|_| mode)
        }
        None => Mode::parse(tag),
    }
}

/// The node that tells an owner that somebody broke its lock.
pub(super) fn broken(uuid: &str) -> String {
    format!("{BROKEN}{uuid}")
}

/// A node that is made to learn the leader's time, and deleted at once.
pub(super) fn clock() -> String {
    format!("time-{}", sys::random_uuid())
}

/// The owner that such a node is about; `None` of another node.
pub(super) fn broken_owner(node: &str) -> Option<&str> {
    node.strip_prefix(BROKEN)
}

/// The entry in line that a node is; `None` of another node. Of an owner only the uuid is known. The place is the order
/// among all, until the servers' counter begins anew.
pub(super) fn entry_of(node: &str) -> Option<Entry> {
    let (tag, rest, is_curators) = match node.strip_prefix(CURATOR) {
        Some(rest) => ("x", rest, true),
        None => node.split_once('-').map(|(tag, rest)| (tag, rest, false))?,
    };
    let (uuid, number) = (rest.get(..UUID)?, rest.get(UUID..)?.strip_prefix(LOCK)?);
    let kept = tag.strip_prefix('k');
    Some(Entry {
        id: node.to_owned(),
        place: place_of(number.parse().ok()?),
        mode: mode_of(kept.unwrap_or(tag))?,
        who: match kept {
            Some(_) => Who::Kept,
            None if is_curators => Who::Stranger,
            None => Who::Owner(Owner::from_text(uuid)),
        },
        token: None,
        since: 0,
        session: None,
        version: 0,
    })
}

/// The servers' numbers in the same order, from 0 on.
pub(super) fn place_of(number: i32) -> u64 {
    u64::from(number.cast_unsigned() ^ (1 << 31))
}

/// The node of another owner, or way to hold, at the same place.
pub(super) fn replaced(node: &str, mode: Mode, uuid: &str) -> String {
    format!("{}-{uuid}{}", tag(mode), number(node))
}

/// What stands behind the uuid.
fn number(node: &str) -> &str {
    node.rfind(LOCK).map_or("", |at| &node[at..])
}

/// Whether these paths are of nodes at the same place in the line of the same name.
pub(super) fn is_at_place_of(path: &str, other: &str) -> bool {
    let name = |path: &str| path.rsplit_once('/').map(|(name, _)| name.to_owned());
    name(path) == name(other) && number(path) == number(other)
}

/// The node that keeps the place when its owner has left.
pub(super) fn kept(node: &str) -> String {
    format!("k{node}")
}

/// A path and those above it, from the top.
pub(super) fn parents(path: &str) -> Vec<String> {
    let ends = path.match_indices('/').map(|(at, _)| at).skip(1);
    let ends = ends.chain([path.len()]);
    ends.map(|end| path[..end].to_owned()).collect()
}

/// What the children of a name's node tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Children {
    /// Of each owner only the uuid is known.
    pub(super) line: Line,
    /// Whether an exclusive owner was let in and hasn't released the lock.
    pub(super) has_marker: bool,
    /// Owners whose locks were broken.
    pub(super) broken: Vec<String>,
    /// Which transaction made or deleted a child last; 0 of a name without a node.
    pub(super) changed: i64,
}

impl Children {
    /// Nothing, of a name that has no node.
    pub(super) fn of(node: Option<(Vec<String>, Stat)>) -> Self {
        let Some((nodes, stat)) = node else {
            return Children::default();
        };
        let mut children = Children {
            changed: stat.pzxid,
            ..Children::default()
        };
        let mut entries = Vec::new();
        for node in &nodes {
            match broken_owner(node) {
                _ if node == MARKER => children.has_marker = true,
                Some(owner) => children.broken.push(owner.to_owned()),
                None => entries.extend(entry_of(node)),
            }
        }
        // The servers' counter goes on below zero after its largest number.
        let has_wrapped = |place: u64| place < place_of(-FAR);
        if entries.iter().any(|entry| entry.place > place_of(FAR)) {
            for entry in entries.iter_mut().filter(|entry| has_wrapped(entry.place)) {
                entry.place += 1 << 32;
            }
        }
        children.line = Line::of(entries);
        children
    }

    /// Whether somebody broke the owner's lock.
    pub(super) fn is_broken(&self, owner: &Owner) -> bool {
        self.broken.iter().any(|broken| broken == uuid_of(owner))
    }

    /// The owner that is first, if it excludes all others, and says in `held` that it was let in.
    pub(super) fn first_exclusive(&self) -> Option<&str> {
        let first = self.line.0.first()?;
        let owner = first.owner().filter(|_| first.mode == Mode::Exclusive)?;
        Some(uuid_of(owner))
    }
}

/// No line is so long.
const FAR: i32 = 1 << 30;

/// What is in an owner's node: itself, for how long its lease lasts without renewal, and the token of a lease that
/// isn't of its own place in the order of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeData {
    pub(super) owner: Owner,
    pub(super) ttl_millis: u64,
    pub(super) token: Option<u64>,
}

impl NodeData {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut text = format!("{}\n{}", self.owner.as_str(), self.ttl_millis);
        if let Some(token) = self.token {
            text.push_str(&format!("\n{token}"));
        }
        text.into_bytes()
    }

    /// Of a node that somebody else has written, what is understood.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.split('\n');
        NodeData {
            owner: Owner::from_text(lines.next().unwrap_or_default()),
            ttl_millis: lines.next().and_then(|ttl| ttl.parse().ok()).unwrap_or(0),
            token: lines.next().and_then(|token| token.parse().ok()),
        }
    }
}

/// The content of the holder marker: its owner, and whether that owner was told that the one before never released.
pub(super) fn marker(owner: &Owner, abandoned: bool) -> Vec<u8> {
    let uuid = uuid_of(owner);
    let told = if abandoned { "\nabandoned" } else { "" };
    format!("{uuid}{told}").into_bytes()
}

/// The uuid of the marker's owner, and whether that owner was told so.
pub(super) fn read_marker(bytes: &[u8]) -> (String, bool) {
    let text = String::from_utf8_lossy(bytes);
    let (uuid, told) = text.split_once('\n').unwrap_or((&text, ""));
    (uuid.to_owned(), told == "abandoned")
}

/// The leader's clock, in milliseconds since 1970, as it was then or before.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeadersClock(pub(super) i64, pub(super) BootInstant);

impl LeadersClock {
    pub(super) fn at(self, now: BootInstant) -> i64 {
        let LeadersClock(then, at) = self;
        let passed = now.since(at).as_millis();
        then.saturating_add(passed.try_into().unwrap_or(i64::MAX))
    }
}

// A kept place says for how many milliseconds, and the servers when it was made, by the leader's clock. Whoever finds
// one in its way that is over deletes it.

/// What is in the node of a place that is kept for so long.
pub(super) fn kept_content(keep: Duration) -> Vec<u8> {
    // Rounded up: it is kept for no less.
    let millis = keep.as_nanos().div_ceil(1_000_000);
    millis.to_string().into_bytes()
}

/// For how long a place with that content is kept at this time of the leader.
pub(super) fn left(content: &[u8], stat: &Stat, leaders_now: i64) -> Duration {
    let millis = String::from_utf8_lossy(content).parse::<u64>().unwrap_or(0);
    let passed = u64::try_from(leaders_now.saturating_sub(stat.ctime)).unwrap_or(0);
    Duration::from_millis(millis.saturating_sub(passed))
}

#[cfg(test)]
mod tests;
