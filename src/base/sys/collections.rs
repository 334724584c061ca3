//! The collections whose order is random. They are made by `default()`, which works with any hasher.

pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V>;
pub(crate) type HashSet<T> = std::collections::HashSet<T>;
