//! What the nodes of a name tell: by how they are called, and by what is in them.

use std::time::Duration;

use super::client::Stat;
use super::nodes::{self, HELD};
use crate::base::claim::Mode;
use crate::base::clock::BootInstant;
use crate::base::owner::Owner;
use crate::engine::line::{Line, uuid_of};

/// What the children of a name's node tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Children {
    /// Of each owner only the uuid is known.
    pub(super) line: Line,
    /// Whether an exclusive owner was let in and hasn't released the lock.
    pub(super) is_marked: bool,
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
            match nodes::broken_owner(node) {
                _ if node == HELD => children.is_marked = true,
                Some(owner) => children.broken.push(owner.to_owned()),
                None => entries.extend(nodes::entry_of(node)),
            }
        }
        // The servers' counter goes on below zero after its largest number.
        let has_wrapped = |place: u64| place < nodes::place_of(-FAR);
        if entries
            .iter()
            .any(|entry| entry.place > nodes::place_of(FAR))
        {
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

/// What is in an owner's node: itself, for how long its lease lasts without renewal, and the token of a lease that isn't of its
/// own place in the order of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Card {
    pub(super) owner: Owner,
    pub(super) ttl_millis: u64,
    pub(super) token: Option<u64>,
}

impl Card {
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
        Card {
            owner: Owner::from_text(lines.next().unwrap_or_default()),
            ttl_millis: lines.next().and_then(|ttl| ttl.parse().ok()).unwrap_or(0),
            token: lines.next().and_then(|token| token.parse().ok()),
        }
    }
}

/// What `held` says: who was let in, and whether that one was told that the one before never released the lock.
pub(super) fn mark(owner: &Owner, abandoned: bool) -> Vec<u8> {
    let uuid = uuid_of(owner);
    let told = if abandoned { "\nabandoned" } else { "" };
    format!("{uuid}{told}").into_bytes()
}

/// Who that is, and whether it was told so.
pub(super) fn marked(bytes: &[u8]) -> (String, bool) {
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

// A kept place says for how many milliseconds, and the servers when it was made, by the leader's clock. Whoever finds one in
// its way that is over deletes it.

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
mod tests {
    use super::*;
    use crate::base::random::for_any;
    use crate::engine::line::Standing;

    fn uuid(number: u32) -> String {
        format!("{number:08x}-89ab-4def-8123-456789abcdef")
    }

    fn node(tag: &str, number: i32) -> String {
        let owner = uuid(number.unsigned_abs());
        format!("{tag}-{owner}-lock-{number:010}")
    }

    fn children(nodes: &[String]) -> Children {
        Children::of(Some((nodes.to_vec(), Stat::default())))
    }

    #[test]
    fn owners_stand_in_the_order_of_their_numbers() {
        for_any(|random| {
            let first = random.u32(..).cast_signed();
            let count = random.u32(1..20).cast_signed();
            let numbers = (0..count).map(|at| first.wrapping_add(at));
            let expected: Vec<_> = numbers.map(|number| node("x", number)).collect();
            let mut nodes = expected.clone();
            let swapped = random.usize(..nodes.len());
            nodes.swap(0, swapped);
            nodes.push(HELD.to_owned());
            let children = children(&nodes);
            let found = children.line.0.iter().map(|entry| entry.id.clone());
            assert_eq!(found.collect::<Vec<_>>(), expected);
            assert!(children.is_marked);
        });
    }

    #[test]
    fn kept_place_is_no_owners_and_keeps_others_out() {
        let found = children(&[node("r", 3), node("x", 4), node("kx", 2), node("r", 5)]);
        assert_eq!(found.line.standing(1), Standing::Behind(0));
        let at = |number| {
            let owner = Owner::from_text(&uuid(number));
            found.line.find(&owner).map(|(at, _)| at)
        };
        assert_eq!((at(2), at(4)), (None, Some(2)));
        assert_eq!(found.first_exclusive(), None);
        assert_eq!(children(&[node("x", 4)]).first_exclusive(), Some(&*uuid(4)));
    }

    #[test]
    fn broken_owners_and_other_nodes_are_not_in_line() {
        let one = Owner::from_text(&uuid(1));
        let nodes = [
            nodes::broken(&uuid(1)),
            nodes::VALUE.into(),
            "lock-0000000001".into(),
        ];
        let children = children(&nodes);
        assert!(children.line.0.is_empty() && children.is_broken(&one));
        assert!(!children.is_broken(&Owner::from_text(&uuid(2))));
    }

    #[test]
    fn place_is_kept_for_no_less_than_was_said() {
        let stat = Stat {
            ctime: 1_000_000,
            ..Stat::default()
        };
        let content = kept_content(Duration::from_micros(99_001));
        assert_eq!(content, b"100");
        for (now, millis) in [
            (1_000_000, 100),
            (999_000, 100),
            (1_000_099, 1),
            (1_000_100, 0),
            (i64::MAX, 0),
        ] {
            let expected = Duration::from_millis(millis);
            assert_eq!(left(&content, &stat, now), expected, "{now}");
        }
        assert_eq!(left(b"x", &stat, 1_000_000), Duration::ZERO);
    }

    #[test]
    fn longest_time_fits() {
        let stat = Stat::default();
        let longest = crate::base::limits::LONGEST_KEEP;
        assert_eq!(left(&kept_content(longest), &stat, 0), longest);
    }
}
