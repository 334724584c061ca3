//! Maps and sets in which the order of a walk is the same in each run.

use std::collections;
use std::hash::{BuildHasherDefault, DefaultHasher};

type Hasher = BuildHasherDefault<DefaultHasher>;

pub(crate) type HashMap<K, V> = collections::HashMap<K, V, Hasher>;
pub(crate) type HashSet<T> = collections::HashSet<T, Hasher>;
