//! What the keys of a name are called, and what an entry in its line holds.
//!
//! Names and namespaces can't be mistaken for one another, whatever is in them: the parts of a key are between
//! slashes, and a part of ours has none. An empty namespace is an empty part.
//!
//! The text of an entry has two lines: how the owner wants the name, and the owner. The first is words: `x` (alone),
//! `r` (to read) or `p 2/5` (permits); then `kept`, if nobody has it any more, and its time isn't over; `since=`,
//! when it was written, by its host's clock; `token=`, of a lease that is not the first of its entry. An entry with
//! another text is that of a program that isn't crosslock, such as `etcdctl lock`, and excludes all.

use std::fmt::Write;

use super::client::{KeyValue, Op, Range};
use crate::base::{Key, Mode, Namespace, Owner, percent};
use crate::engine::line::{Entry, Line, Who};

/// The keys of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Keys {
    /// All of them begin with it; its last character is a slash.
    prefix: String,
}

/// The part of those that stand in line.
const LINE: &str = "w/";

impl Keys {
    pub(super) fn of(root: &str, key: &Key) -> Self {
        let namespace = of_namespace(root, key.namespace());
        Keys {
            prefix: format!("{namespace}{}/", escaped(key.name())),
        }
    }

    /// All that stand in line.
    pub(super) fn line(&self) -> Range {
        Range::Prefix(self.line_prefix())
    }

    /// What the keys of [`line`](Self::line) begin with.
    pub(super) fn line_prefix(&self) -> String {
        format!("{}{LINE}", self.prefix)
    }

    /// The entry of one of them.
    pub(super) fn place(&self, id: &str) -> String {
        format!("{}{LINE}{id}", self.prefix)
    }

    /// The holder markers: of all that were let in alone, and haven't released.
    pub(super) fn markers(&self) -> Range {
        Range::Prefix(self.marker_of(""))
    }

    /// Reads some of them: a name whose holders often die may have thousands.
    pub(super) fn some_markers(&self, limit: u32) -> Op {
        Op::List {
            prefix: self.marker_of(""),
            from: None,
            limit,
            keys_only: true,
        }
    }

    pub(super) fn marker_of(&self, id: &str) -> String {
        format!("{}h/{id}", self.prefix)
    }

    /// That this owner's lock was broken.
    pub(super) fn broken(&self, id: &str) -> String {
        format!("{}b/{id}", self.prefix)
    }

    pub(super) fn value(&self) -> String {
        format!("{}value", self.prefix)
    }
}

/// The last part of a key.
pub(super) fn last_part(key: &str) -> &str {
    key.rsplit_once('/').map_or(key, |(_, last)| last)
}

/// The keys of all names of a namespace that begin so.
pub(super) fn of_names(root: &str, namespace: &Namespace, prefix: &str) -> String {
    format!(
        "{}{}",
        of_namespace(root, namespace.as_str()),
        escaped(prefix)
    )
}

/// The name that a key of the namespace is about, and whether the key is that of one in line.
pub(super) fn name_of(root: &str, namespace: &Namespace, key: &str) -> Option<(String, bool)> {
    let rest = key.strip_prefix(&*of_namespace(root, namespace.as_str()))?;
    let (name, rest) = rest.split_once('/')?;
    Some((
        percent::unescaped_text(name, is_plain)?,
        rest.starts_with(LINE),
    ))
}

fn of_namespace(root: &str, namespace: &str) -> String {
    if root.is_empty() {
        format!("{namespace}/")
    } else {
        format!("{root}/{namespace}/")
    }
}

/// A name as a part of a key.
fn escaped(name: &str) -> String {
    percent::escaped(name, is_plain)
}

fn is_plain(_: usize, byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

/// What an owner has written into its entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) mode: Mode,
    /// `None`: its owner has released it, and it stays taken for a while.
    pub(super) owner: Option<Owner>,
    /// In milliseconds since 1970, by the clock of the owner's host. Operators are shown it.
    pub(super) since: u64,
    /// The first token of the lease; `None`: that of its entry's revision.
    pub(super) token: Option<u64>,
}

impl Text {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut text = match self.mode {
            Mode::Permits { .. } => format!("p {}", self.mode),
            mode => mode.to_string(),
        };
        if self.owner.is_none() {
            text.push_str(" kept");
        }
        let _ = write!(text, " since={}", self.since);
        if let Some(token) = self.token {
            let _ = write!(text, " token={token}");
        }
        if let Some(owner) = &self.owner {
            text.push('\n');
            text.push_str(owner.as_str());
        }
        text.into_bytes()
    }

    /// That of an entry, if it is one of ours.
    pub(super) fn of(entry: &Entry) -> Option<Self> {
        (entry.who != Who::Stranger).then(|| Text {
            mode: entry.mode,
            owner: entry.owner().cloned(),
            since: entry.since,
            token: entry.token,
        })
    }

    /// `None` for what no owner has written.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let (first, owner) = match text.split_once('\n') {
            Some((first, owner)) => (first, Some(Owner::from_text(owner))),
            None => (text, None),
        };
        let mut words = first.split(' ').peekable();
        let mode = match words.next()? {
            "p" => Mode::parse(words.next()?)?,
            lock @ ("x" | "r") => Mode::parse(lock)?,
            _ => return None,
        };
        let is_kept = words.next_if_eq(&"kept").is_some();
        let since = words.next()?.strip_prefix("since=")?.parse().ok()?;
        let token = match words.next() {
            Some(word) => Some(word.strip_prefix("token=")?.parse().ok()?),
            None => None,
        };
        let is_whole = words.next().is_none() && is_kept == owner.is_none();
        is_whole.then_some(Text {
            mode,
            owner,
            since,
            token,
        })
    }
}

/// What stands in the line of that name.
pub(super) fn line_of(keys: &Keys, found: Vec<KeyValue>) -> Line {
    Line::of(found.into_iter().map(|found| entry_of(keys, found)))
}

/// What one of its keys holds.
pub(super) fn entry_of(keys: &Keys, found: KeyValue) -> Entry {
    let text = Text::parse(&found.value);
    let who = match &text {
        Some(Text {
            owner: Some(owner), ..
        }) => Who::Owner(owner.clone()),
        Some(_) => Who::Kept,
        None => Who::Stranger,
    };
    let prefix = keys.line_prefix();
    let id = found.key.strip_prefix(&prefix).unwrap_or(&found.key);
    Entry {
        id: id.to_owned(),
        place: found.created,
        mode: text.as_ref().map_or(Mode::Exclusive, |text| text.mode),
        who,
        token: text.as_ref().and_then(|text| text.token),
        since: text.map_or(0, |text| text.since),
        session: found.lease.map(|lease| lease.0),
        version: found.modified,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::{Random, for_any};

    fn key(namespace: &str, name: &str) -> Key {
        let namespace = Namespace::new(namespace).expect("it is valid");
        Key::new(&namespace, name).expect("it is valid")
    }

    #[test]
    fn keys_and_texts_are_what_operators_read() {
        let keys = Keys::of("", &key("crosslock", "counter"));
        assert_eq!(keys.place("x"), "crosslock/counter/w/x");
        assert_eq!(keys.line(), Range::Prefix("crosslock/counter/w/".into()));
        assert_eq!(keys.value(), "crosslock/counter/value");
        let keys = Keys::of("my/app", &key("", "a b/ü"));
        assert_eq!(keys.marker_of("x"), "my/app//a%20b%2F%C3%BC/h/x");
        assert_eq!(keys.broken("x"), "my/app//a%20b%2F%C3%BC/b/x");
        let text = Text {
            mode: Mode::Permits { count: 2, of: 5 },
            owner: Some(Owner::from_text("id/host/1/2")),
            since: 1_700_000_000_000,
            token: Some(4097),
        };
        let expected = b"p 2/5 since=1700000000000 token=4097\nid/host/1/2";
        assert_eq!(text.to_bytes(), expected);
    }

    #[test]
    fn names_and_namespaces_are_apart() {
        for_any(|random| {
            let any = |random: &mut Random| {
                let space = random.text_of("ab.", 0..=2);
                (space, random.text_of("ab/%.w", 1..=3))
            };
            let [one, other] = [(); 2].map(|()| any(random));
            let [first, second] =
                [&one, &other].map(|(space, name)| Keys::of("", &key(space, name)).prefix);
            let begins = first.starts_with(&second) || second.starts_with(&first);
            assert_eq!(one == other, begins, "{first} {second}");
        });
    }

    #[test]
    fn other_keys_have_no_name() {
        let space = Namespace::new("ns").expect("it is valid");
        for other in [
            "",
            "ns",
            "ns/",
            "ns/a",
            "nt/a/w/x",
            "ns/%zz/w/x",
            "ns/%2/w/x",
            "ns/a%41/w/x",
        ] {
            assert_eq!(name_of("", &space, other), None, "{other}");
        }
    }

    fn any_mode(random: &mut Random) -> Mode {
        match random.u8(0..3) {
            0 => Mode::Exclusive,
            1 => Mode::Shared,
            _ => {
                let of = random.u32(1..);
                let count = random.u32(1..=of);
                Mode::Permits { count, of }
            }
        }
    }

    #[test]
    fn text_is_read_as_it_was_written() {
        for_any(|random| {
            let label = random.text_without(char::is_control, 0..=5);
            let owner = Owner::from_text(&format!("id/host/1/2/{label}"));
            let text = Text {
                mode: any_mode(random),
                owner: random.option(|_| owner.clone()),
                since: random.u64(..) >> random.u32(..64),
                token: random.option(|random| random.u64(..) >> random.u32(..64)),
            };
            assert_eq!(Text::parse(&text.to_bytes()), Some(text));
        });
    }

    #[test]
    fn other_texts_are_no_places_of_ours() {
        for other in [
            "",
            "x",
            "x\nid",
            "x since=1",
            "x kept since=1\nid",
            "p 2 since=1\nid",
            "r since=1 token=\nid",
            "r since=1 token=5 more\nid",
            "X since=1\nid",
        ] {
            assert_eq!(Text::parse(other.as_bytes()), None, "{other:?}");
        }
        assert_eq!(Text::parse(b"\xff since=1\nid"), None);
    }
}
