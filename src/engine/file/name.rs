//! Which file a name has.

use std::path::{Path, PathBuf};

use crate::base::name::{Key, Namespace};
use crate::base::percent;

/// An injective name, also where the file system folds case: `namespace+name.lock`, where all but
/// `a-z 0-9 . _ -` is `%xx`, and where parts longer than a file name may be are directories.
pub(super) fn file_name(key: &Key) -> PathBuf {
    const PART: usize = 200;
    let text = format!("{}+{}", escaped(key.namespace()), escaped(key.name()));
    let mut rest = text.as_str();
    let mut path = PathBuf::new();
    while rest.len() > PART {
        let (part, after) = rest.split_at(PART);
        path.push(format!("{part}~"));
        rest = after;
    }
    path.push(format!("{rest}.lock"));
    path
}

/// Beside it: what the lock protects.
pub(super) fn value_name(key: &Key) -> PathBuf {
    file_name(key).with_extension("value")
}

/// The name whose file this is, if it is one of the namespace.
pub(super) fn key_of(namespace: &Namespace, path: &Path) -> Option<Key> {
    let parts: Option<Vec<_>> = path.iter().map(|part| part.to_str()).collect();
    let parts = parts?;
    let (last, before) = parts.split_last()?;
    let mut text = String::new();
    for part in before {
        text.push_str(part.strip_suffix('~')?);
    }
    text.push_str(last.strip_suffix(".lock")?);
    let (found, name) = text.split_once('+')?;
    if unescaped(found)? != namespace.as_str() {
        return None;
    }
    let key = Key::new(namespace, &unescaped(name)?).ok()?;
    // No other spelling of it is its file.
    (file_name(&key) == path).then_some(key)
}

fn unescaped(text: &str) -> Option<String> {
    String::from_utf8(percent::unescaped(text)?).ok()
}

/// In lower case, as is all that stands in it unescaped.
fn escaped(text: &str) -> String {
    let is_plain = |_, byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
    percent::escaped(text, is_plain).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::{WORD, for_any};
    use std::path::Component;

    fn key(namespace: &str, name: &str) -> Key {
        Key::new(&Namespace::new(namespace).unwrap(), name).unwrap()
    }

    #[test]
    fn file_names_are_injective_short_and_inside_the_directory() {
        for_any(|random| {
            let (namespace, name) = (random.text_of(WORD, 0..=64), random.text(1..=128));
            let key = key(&namespace, &name);
            let path = file_name(&key);
            // Which can only be told when it is injective.
            assert_eq!(
                key_of(&Namespace::new(&namespace).unwrap(), &path),
                Some(key)
            );
            for part in path.components() {
                assert!(
                    matches!(part, Component::Normal(p) if p.len() <= 255),
                    "{:?}",
                    part
                );
            }
            let text = path.to_str().unwrap();
            assert_eq!(text.to_lowercase(), text);
        });
    }

    #[test]
    fn longest_name_has_short_parts() {
        let path = file_name(&key("x", &"\u{ff}".repeat(256)));
        assert!(path.iter().count() > 5 && path.iter().all(|part| part.len() <= 255));
    }

    #[test]
    fn other_files_have_no_name() {
        let namespace = Namespace::new("x").unwrap();
        for path in [
            "",
            "a",
            "x+a",
            "x+.lock",
            "x+A.lock",
            "x+%41%.lock",
            "x+%4.lock",
            "x+%zz.lock",
            "y+a.lock",
            "x+a.value",
            "x+%ff.lock",
            "x+%61.lock",
            "x+a.lock/b",
            "x+a~/b.lock",
            ".breaking",
        ] {
            assert_eq!(key_of(&namespace, Path::new(path)), None, "{path}");
        }
        let key = key_of(&namespace, Path::new("x+%41.lock"));
        assert_eq!(key.unwrap().name(), "A");
    }
}
