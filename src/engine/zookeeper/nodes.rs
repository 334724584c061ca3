//! What the nodes of a lock are called.
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
//! | `held` | which exclusive owner was let in last and hasn't released the lock |
//! | `b-<uuid>` | an owner whose lock somebody broke |
//! | `value` | the value that the lock protects |
//!
//! The servers number the nodes of owners in the order in which they came. Curator sorts nodes by what stands behind the last
//! `lock-`, and those without it after all numbers: so both stand in one line. No other node may have `lock-` in its name.

use crate::base::claim::Mode;
use crate::base::name::Key;
use crate::base::owner::Owner;
use crate::base::percent;
use crate::base::sys;
use crate::engine::line::{Entry, Who};

pub(super) const HELD: &str = "held";
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

/// Whose node that is, if it is such a one.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::name::Namespace;
    use crate::base::random::for_any;

    const ONE: &str = "01234567-89ab-4def-8123-456789abcdef";

    fn path(namespace: &str, name: &str) -> String {
        let namespace = Namespace::new(namespace).expect("it is valid");
        name_path("", &Key::new(&namespace, name).expect("it is valid"))
    }

    #[test]
    fn names_of_all_kinds_have_nodes_of_their_own() {
        for (namespace, name, expected) in [
            ("app", "a", "/app/a"),
            ("", "a", "/%/a"),
            ("..", ".a.b", "/%2E./%2Ea.b"),
            ("zookeeper", "zookeeper", "/%7Aookeeper/zookeeper"),
            ("a", "b/c %\u{1}Ü", "/a/b%2Fc%20%25%01%C3%9C"),
        ] {
            assert_eq!(path(namespace, name), expected);
        }
    }

    #[test]
    fn name_is_read_back_from_its_node() {
        for_any(|random| {
            let name = random.text(1..=60);
            let node = encoded(&name);
            assert!(
                node.bytes()
                    .all(|byte| byte.is_ascii_graphic() && byte != b'/')
            );
            assert!(!node.starts_with('.'), "{node}");
            assert_eq!(decoded(&node), Some(name));
        });
        for other in ["%", "%4", "%41", "a b", "%2e", "%FF", ".", "%é"] {
            assert_eq!(decoded(other), None, "{other}");
        }
    }

    #[test]
    fn entries_are_read_back_from_their_nodes() {
        for (mode, tag) in [
            (Mode::Exclusive, "x"),
            (Mode::Shared, "r"),
            (Mode::Permits { count: 2, of: 5 }, "p2of5"),
        ] {
            for number in [0, 7, i32::MAX, i32::MIN] {
                let node = format!("{}{number:010}", unnumbered(mode, ONE));
                assert!(node.starts_with(tag));
                let entry = entry_of(&node).expect("it is one");
                assert_eq!((entry.mode, entry.place), (mode, place_of(number)));
                assert_eq!(entry.owner(), Some(&Owner::from_text(ONE)));
                let kept = entry_of(&kept(&node)).expect("it is one");
                assert_eq!((kept.mode, kept.place), (mode, entry.place));
                assert!(kept.is_kept());
            }
        }
        let others = [HELD, VALUE, "x", "x-1-2", "y-", "b-", &broken(ONE)];
        for other in others.map(String::from) {
            assert_eq!(entry_of(&other), None, "{other}");
        }
        assert!(place_of(i32::MIN) == 0 && place_of(-1) + 1 == place_of(0));
    }

    /// By what it sorts the nodes of a lock.
    fn as_curator_sorts(node: &str) -> &str {
        let place = node.rfind("lock-");
        place.map_or(node, |place| &node[place + "lock-".len()..])
    }

    #[test]
    fn curators_nodes_stand_in_the_same_line() {
        let curators = format!("_c_{ONE}-lock-0000000012");
        let entry = entry_of(&curators).expect("it is one");
        assert_eq!((entry.who, entry.mode), (Who::Stranger, Mode::Exclusive));
        assert_eq!(entry.place, place_of(12));
        for mode in [Mode::Exclusive, Mode::Permits { count: 2, of: 5 }] {
            let own = format!("{}0000000011", unnumbered(mode, ONE));
            for node in [&own, &kept(&own)] {
                assert_eq!(as_curator_sorts(node), "0000000011");
            }
        }
        for node in [HELD, VALUE, &broken(ONE), &clock()] {
            assert!(
                as_curator_sorts(node) > as_curator_sorts(&curators),
                "{node}"
            );
        }
    }

    #[test]
    fn place_stays_when_its_owner_changes() {
        let other = ONE.replace('0', "f");
        let node = format!("x-{ONE}-lock--2147483648");
        let expected = format!("r-{other}-lock--2147483648");
        assert_eq!(replaced(&node, Mode::Shared, &other), expected);
    }

    #[test]
    fn all_above_a_path_are_made_before_it() {
        assert_eq!(parents("/a/b/c"), ["/a", "/a/b", "/a/b/c"]);
        assert_eq!(parents("/a"), ["/a"]);
    }
}
