//! What users call their locks.

use std::fmt;
use std::sync::Arc;

use crate::base::error::{Error, Result};

const LONGEST_NAME: usize = 512;
const LONGEST_NAMESPACE: usize = 64;

/// A prefix that keeps applications apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Namespace(Arc<str>);

/// That of a locker for which none was set.
impl Default for Namespace {
    fn default() -> Self {
        Namespace("crosslock".into())
    }
}

impl Namespace {
    pub(crate) fn new(text: &str) -> Result<Self> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
        if text.len() <= LONGEST_NAMESPACE && text.chars().all(allowed) {
            return Ok(Namespace(text.into()));
        }
        let shown = shortened(text);
        Err(Error::InvalidOption {
            option: "namespace",
            reason: format!(
                "{shown:?} must have at most {LONGEST_NAMESPACE} characters, out of A-Z a-z 0-9 . _ -"
            ),
        })
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// One lock: a name in a namespace.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    namespace: Namespace,
    name: Arc<str>,
    /// Which part of a delay queue it is.
    pub(crate) shard: Option<Shard>,
}

/// A part of a delay queue that lies on several servers: its number from 0 on, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Shard {
    pub(crate) at: u16,
    pub(crate) of: u16,
}

impl Key {
    pub(crate) fn new(namespace: &Namespace, name: &str) -> Result<Self> {
        if (1..=LONGEST_NAME).contains(&name.len()) {
            return Ok(Key {
                namespace: namespace.clone(),
                name: name.into(),
                shard: None,
            });
        }
        let reason = format!(
            "it has {} bytes; a name must have 1 to {LONGEST_NAME}",
            name.len()
        );
        Err(Error::InvalidName {
            name: shortened(name),
            reason,
        })
    }

    /// One that shows several, for errors and logs.
    pub(crate) fn of_all(keys: &[Key]) -> Self {
        let names: Vec<_> = keys.iter().map(Key::name).collect();
        Key {
            namespace: keys[0].namespace.clone(),
            name: names.join(", ").into(),
            shard: None,
        }
    }

    /// The shards of a queue of that name.
    #[cfg(feature = "delay")]
    pub(crate) fn shards(&self, count: u16) -> impl Iterator<Item = Key> + use<'_> {
        let shard = move |at| Key {
            shard: Some(Shard { at, of: count }),
            ..self.clone()
        };
        (0..count).map(shard)
    }

    pub(crate) fn namespace(&self) -> &str {
        self.namespace.as_str()
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?}",
            format_args!("{}:{}", self.namespace(), self.name())
        )
    }
}

fn shortened(text: &str) -> String {
    const SHOWN: usize = 64;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_shows_a_long_name_shortened() {
        let namespace = Namespace::new("app").unwrap();
        let error = Key::new(&namespace, &"é".repeat(5_000))
            .unwrap_err()
            .to_string();
        assert!(error.len() < 300, "{error}");
        assert!(error.contains("10000 bytes"), "{error}");
    }
}
