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

pub(super) const HELD: &str = "held";
pub(super) const VALUE: &str = "value";
const BROKEN: &str = "b-";
/// What stands before the number.
const LOCK: &str = "-lock-";
/// How the nodes of Curator begin.
const CURATOR: &str = "_c_";
const UUID: usize = 36;

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

/// The part of an owner by which its nodes are found.
pub(super) fn uuid_of(owner: &Owner) -> &str {
    owner.as_str().get(..UUID).unwrap_or(owner.as_str())
}

/// What an owner's node is called, without the number.
pub(super) fn unnumbered(mode: Mode, uuid: &str) -> String {
    format!("{}-{uuid}{LOCK}", tag(mode))
}

fn tag(mode: Mode) -> String {
    match mode {
        Mode::Exclusive => "x".to_owned(),
        Mode::Shared => "r".to_owned(),
        Mode::Permits { count, of } => format!("p{count}of{of}"),
    }
}

fn mode_of(tag: &str) -> Option<Mode> {
    match tag {
        "x" => Some(Mode::Exclusive),
        "r" => Some(Mode::Shared),
        _ => {
            let (count, of) = tag.strip_prefix('p')?.split_once("of")?;
            Some(Mode::Permits {
                count: count.parse().ok()?,
                of: of.parse().ok()?,
            })
        }
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

/// A place in the line of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) mode: Mode,
    /// Whether it is kept without an owner.
    pub(super) is_kept: bool,
    pub(super) uuid: String,
    /// Its place among all, until the servers' counter begins anew.
    pub(super) number: i32,
    /// What its node is called.
    pub(super) node: String,
}

impl Member {
    /// `None`: the node is no place in the line.
    pub(super) fn of(node: &str) -> Option<Self> {
        let (tag, rest) = match node.strip_prefix(CURATOR) {
            Some(rest) => ("x", rest),
            None => node.split_once('-')?,
        };
        let (uuid, number) = (rest.get(..UUID)?, rest.get(UUID..)?.strip_prefix(LOCK)?);
        let kept = tag.strip_prefix('k');
        Some(Member {
            mode: mode_of(kept.unwrap_or(tag))?,
            is_kept: kept.is_some(),
            uuid: uuid.to_owned(),
            number: number.parse().ok()?,
            node: node.to_owned(),
        })
    }

    /// The node of another owner, or way to hold, at the same place.
    pub(super) fn replaced_by(&self, mode: Mode, uuid: &str) -> String {
        let digits = self.node.rsplit_once(&self.uuid);
        let digits = digits.map_or("", |(_, digits)| digits);
        format!("{}-{uuid}{digits}", tag(mode))
    }

    /// Whether it is of a program that uses Curator.
    pub(super) fn is_curators(&self) -> bool {
        self.node.starts_with(CURATOR)
    }

    /// The node that keeps the place when its owner has left.
    pub(super) fn kept(&self) -> String {
        format!("k{}", self.node)
    }
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
    fn members_are_read_back_from_their_nodes() {
        for (mode, tag) in [
            (Mode::Exclusive, "x"),
            (Mode::Shared, "r"),
            (Mode::Permits { count: 2, of: 5 }, "p2of5"),
        ] {
            for number in [0, 7, i32::MAX, i32::MIN] {
                let node = format!("{}{number:010}", unnumbered(mode, ONE));
                assert!(node.starts_with(tag));
                let member = Member::of(&node).expect("it is one");
                assert_eq!((member.mode, member.number), (mode, number));
                assert_eq!((&*member.uuid, member.is_kept), (ONE, false));
                let kept = Member::of(&member.kept()).expect("it is one");
                assert_eq!((kept.mode, kept.number), (mode, number));
                assert!(kept.is_kept);
            }
        }
        let others = [HELD, VALUE, "x", "x-1-2", "y-", "b-", &broken(ONE)];
        for other in others.map(String::from) {
            assert_eq!(Member::of(&other), None, "{other}");
        }
    }

    /// By what it sorts the nodes of a lock.
    fn as_curator_sorts(node: &str) -> &str {
        let place = node.rfind("lock-");
        place.map_or(node, |place| &node[place + "lock-".len()..])
    }

    #[test]
    fn curators_nodes_stand_in_the_same_line() {
        let curators = format!("_c_{ONE}-lock-0000000012");
        let member = Member::of(&curators).expect("it is one");
        assert!(member.is_curators() && !member.is_kept);
        assert_eq!((member.mode, member.number), (Mode::Exclusive, 12));
        for mode in [Mode::Exclusive, Mode::Permits { count: 2, of: 5 }] {
            let own = format!("{}0000000011", unnumbered(mode, ONE));
            let kept = Member::of(&own).expect("it is one").kept();
            for node in [&own, &kept] {
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
        let member = Member::of(&format!("x-{ONE}-lock--2147483648")).expect("it is one");
        let node = member.replaced_by(Mode::Shared, &other);
        assert_eq!(node, format!("r-{other}-lock--2147483648"));
    }
}
