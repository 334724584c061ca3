//! Names that were found taken lately, and not found free since: an engine that asks for a free lock in another way
//! than for a taken one asks for these in the latter.

use crate::base::sys::{collections::HashSet, sync::Mutex};

#[derive(Debug, Default)]
pub(super) struct Contended(Mutex<HashSet<String>>);

impl Contended {
    /// A name that isn't here any more costs a request.
    const MOST: usize = 1024;

    /// Whether one of the names is.
    pub(super) fn has<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> bool {
        let all = self.0.lock();
        !all.is_empty() && names.into_iter().any(|name| all.contains(name))
    }

    pub(super) fn insert<'a>(&self, names: impl IntoIterator<Item = &'a str>) {
        let mut all = self.0.lock();
        if all.len() >= Contended::MOST {
            all.clear();
        }
        all.extend(names.into_iter().map(str::to_owned));
    }

    pub(super) fn remove<'a>(&self, names: impl IntoIterator<Item = &'a str>) {
        let mut all = self.0.lock();
        if !all.is_empty() {
            names.into_iter().for_each(|name| _ = all.remove(name));
        }
    }
}
