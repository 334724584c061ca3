//! The value that a lock protects.

use std::sync::Arc;

/// A value that a lock protects, as it is stored; `None` when there is none.
pub(crate) type Stored = Option<Arc<[u8]>>;
