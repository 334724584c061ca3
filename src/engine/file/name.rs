//! Which file a name has.

use std::path::PathBuf;

use crate::base::name::Key;

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

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-' => out.push(byte.into()),
            _ => out.push_str(&format!("%{byte:02x}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::name::Namespace;
    use crate::base::random::{WORD, for_any};
    use std::path::{Component, Path};

    fn key(namespace: &str, name: &str) -> Key {
        Key::new(&Namespace::new(namespace).unwrap(), name).unwrap()
    }

    /// What `file_name` was made of, which can only be told when it is injective.
    fn unescaped(path: &Path) -> String {
        let parts: Vec<_> = path.iter().map(|part| part.to_str().unwrap()).collect();
        let (last, before) = parts.split_last().unwrap();
        let mut text: String = before
            .iter()
            .map(|part| part.strip_suffix('~').unwrap())
            .collect();
        text.push_str(last.strip_suffix(".lock").unwrap());
        let (namespace, name) = text.split_once('+').unwrap();
        let decode = |text: &str| {
            let mut bytes = text.bytes();
            let mut out = Vec::new();
            while let Some(byte) = bytes.next() {
                if byte != b'%' {
                    out.push(byte);
                    continue;
                }
                let hex = [bytes.next().unwrap(), bytes.next().unwrap()];
                out.push(u8::from_str_radix(str::from_utf8(&hex).unwrap(), 16).unwrap());
            }
            String::from_utf8(out).unwrap()
        };
        format!("{}:{}", decode(namespace), decode(name))
    }

    #[test]
    fn file_names_are_injective_short_and_inside_the_directory() {
        for_any(|random| {
            let (namespace, name) = (random.text_of(WORD, 0..=64), random.text(1..=128));
            let path = file_name(&key(&namespace, &name));
            assert_eq!(unescaped(&path), format!("{namespace}:{name}"));
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
}
