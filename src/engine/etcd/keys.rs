//! What the keys of a name are called.
//!
//! Names and namespaces can't be mistaken for one another, whatever is in them: the parts of a key are between slashes, and
//! a part of ours has none. An empty namespace is an empty part.

use super::client::Range;
use crate::base::name::{Key, Namespace};
use crate::base::percent;

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

    /// All that were let in alone, and haven't released.
    pub(super) fn entered(&self) -> Range {
        Range::Prefix(format!("{}h/", self.prefix))
    }

    pub(super) fn entered_by(&self, id: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::{WORD, for_any};

    fn key(namespace: &str, name: &str) -> Key {
        let namespace = Namespace::new(namespace).expect("it is valid");
        Key::new(&namespace, name).expect("it is valid")
    }

    #[test]
    fn keys_are_what_operators_type() {
        let keys = Keys::of("", &key("crosslock", "counter"));
        assert_eq!(keys.place("x"), "crosslock/counter/w/x");
        assert_eq!(keys.line(), Range::Prefix("crosslock/counter/w/".into()));
        assert_eq!(keys.value(), "crosslock/counter/value");
        let keys = Keys::of("my/app", &key("", "a b/ü"));
        assert_eq!(keys.entered_by("x"), "my/app//a%20b%2F%C3%BC/h/x");
        assert_eq!(keys.broken("x"), "my/app//a%20b%2F%C3%BC/b/x");
    }

    #[test]
    fn name_is_found_in_its_keys() {
        for_any(|random| {
            let (namespace, name) = (random.text_of(WORD, 0..=8), random.text(1..=20));
            if name.is_empty() {
                return;
            }
            let root = ["", "root", "a/b"][random.usize(..3)];
            let (key, space) = (
                key(&namespace, &name),
                Namespace::new(&namespace).expect("it is valid"),
            );
            let keys = Keys::of(root, &key);
            let found = |key: &str| name_of(root, &space, key);
            assert_eq!(found(&keys.place("id")), Some((name.clone(), true)));
            assert_eq!(found(&keys.value()), Some((name.clone(), false)));
            assert_eq!(found(&keys.broken("id")), Some((name.clone(), false)));
            for (end, _) in name.char_indices() {
                let prefix = of_names(root, &space, &name[..end]);
                assert!(keys.value().starts_with(&prefix));
            }
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

    #[test]
    fn names_and_namespaces_are_apart() {
        for_any(|random| {
            let [one, other] = [(); 2].map(|()| {
                (
                    random.text_of("ab.", 0..=2),
                    random.text_of("ab/%.w", 1..=3),
                )
            });
            let [first, second] =
                [&one, &other].map(|(space, name)| Keys::of("", &key(space, name)).prefix);
            let begins = first.starts_with(&second) || second.starts_with(&first);
            assert_eq!(one == other, begins, "{first} {second}");
        });
    }
}
