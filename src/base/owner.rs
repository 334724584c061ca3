//! The proof that a lease is one's own.

use std::fmt;
use std::sync::Arc;

/// The proof of ownership: `<uuid v4>/<host>/<pid>/<thread>`, and `/<label>` if the locker has one. Whoever knows it can
/// release the lock, so it is shown nowhere.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    text: Arc<str>,
}

impl Owner {
    /// One that another process has passed on, or that was written down.
    pub(crate) fn from_text(text: &str) -> Self {
        Owner { text: text.into() }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Whom to ask about it: `<host>/<pid>/<thread>`, and `/<label>`, which proves nothing.
    pub(crate) fn holder(&self) -> &str {
        self.as_str()
            .split_once('/')
            .map_or("", |(_, holder)| holder)
    }
}

impl From<Arc<str>> for Owner {
    fn from(text: Arc<str>) -> Self {
        Owner { text }
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Owner(..)")
    }
}
