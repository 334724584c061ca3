//! Where the server keeps what belongs to a name.

use crate::base::name::Key;

/// The keys of a name, all on one cluster slot.
#[derive(Debug, PartialEq)]
pub(super) struct Keys {
    pub(super) lock: String,
    /// The names of the others, one behind the other: memory is asked for once.
    others: String,
    tag: usize,
}

/// What the others end in, in the order in which the scripts have them.
const OTHERS: [&str; 6] = [
    ":fence", ":queue", ":waiters", ":readers", ":holders", ":value",
];

/// Where the queue, the first of the keys of waiters, stands among the keys, and where the holders do, behind them.
pub(super) const QUEUE: usize = 2;
pub(super) const HOLDERS: usize = 5;

/// The value is the last of the keys.
pub(super) const VALUE: usize = OTHERS.len();

impl Keys {
    pub(super) fn of(key: &Key) -> Self {
        let (namespace, name) = (key.namespace(), key.name());
        if !namespace.is_empty() {
            let lock = ["{", namespace, ":", name, "}"].concat();
            return Keys::beside(lock, None);
        }
        // Without a namespace the lock is where other programs have it.
        let tag = if !has_hash_tag(name) {
            ["{", name, "}"].concat()
        } else if name.starts_with('{') && name.ends_with('}') {
            // Those of `{x}` are not those of `x`.
            [name, ":"].concat()
        } else {
            name.to_owned()
        };
        Keys::beside(name.to_owned(), Some(tag))
    }

    /// `tag` decides on the slot, if the lock's key doesn't.
    fn beside(lock: String, tag: Option<String>) -> Self {
        let tag = tag.as_deref().unwrap_or(&lock);
        let length: usize = OTHERS.iter().map(|other| tag.len() + other.len()).sum();
        let mut others = String::with_capacity(length);
        for other in OTHERS {
            others.push_str(tag);
            others.push_str(other);
        }
        Keys {
            tag: tag.len(),
            others,
            lock,
        }
    }

    pub(super) fn all(&self) -> [&str; VALUE + 1] {
        let mut keys = [self.lock.as_str(); VALUE + 1];
        let mut rest = self.others.as_str();
        for (key, other) in keys[1..].iter_mut().zip(OTHERS) {
            (*key, rest) = rest.split_at(self.tag + other.len());
        }
        keys
    }
}

/// Whether a cluster hashes only the part of `key` between its first braces.
fn has_hash_tag(key: &str) -> bool {
    let Some((_, behind)) = key.split_once('{') else {
        return false;
    };
    behind.find('}').is_some_and(|length| length > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::name::Namespace;
    use crate::base::random::{WORD, for_any};

    fn keys(namespace: &str, name: &str) -> Keys {
        Keys::of(&Key::new(&Namespace::new(namespace).unwrap(), name).unwrap())
    }

    /// The part of a key that decides on its slot, as the cluster specification has it.
    fn hashed(key: &str) -> &str {
        let Some((_, behind)) = key.split_once('{') else {
            return key;
        };
        match behind.split_once('}') {
            Some((tag, _)) if !tag.is_empty() => tag,
            _ => key,
        }
    }

    #[test]
    fn keys_are_as_documented() {
        for (namespace, name, lock, tag) in [
            ("app", "counter", "{app:counter}", "{app:counter}"),
            ("", "counter", "counter", "{counter}"),
            ("", "{user}:1", "{user}:1", "{user}:1"),
            ("", "{user}", "{user}", "{user}:"),
        ] {
            let kinds = ["fence", "queue", "waiters", "readers", "holders", "value"];
            let others = kinds.map(|kind| format!("{tag}:{kind}"));
            let keys = keys(namespace, name);
            assert_eq!(keys.all()[0], lock);
            assert_eq!(keys.all()[1..], others);
        }
    }

    #[test]
    fn keys_of_a_name_share_a_slot() {
        for_any(|random| {
            let namespace = random.text_of(WORD, 1..=64);
            let name = match random.bool() {
                true => random.text_of("a{}:", 1..=20),
                false => random.text(1..=99),
            };
            let keys = keys(&namespace, &name);
            for key in keys.all() {
                assert_eq!(hashed(key), hashed(&keys.lock));
            }
        });
    }

    #[test]
    fn no_two_names_of_the_empty_namespace_share_what_stands_beside_them() {
        for_any(|random| {
            let [x, y] = [(); 2].map(|()| random.text_of("a{}", 1..=6));
            if x == y {
                return;
            }
            let (one, two) = (keys("", &x), keys("", &y));
            assert_ne!(&one.lock, &two.lock);
            for key in &one.all()[1..] {
                assert!(!two.all().contains(key), "{} {}", x, y);
            }
        });
    }

    #[test]
    fn keys_are_injective() {
        for_any(|random| {
            let [a, b] = [(); 2].map(|()| random.text_of("abc", 1..=2));
            let [x, y] = [(); 2].map(|()| random.text_of("a{}:", 1..=8));
            if (&a, &x) == (&b, &y) {
                return;
            }
            let (one, two) = (keys(&a, &x), keys(&b, &y));
            for key in one.all() {
                assert!(!two.all().contains(&key));
            }
        });
    }
}
