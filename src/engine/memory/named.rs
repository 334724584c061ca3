//! The memories of this process that have a name.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};

use super::Memory;
use crate::base::fork::{AfterFork, ForkLocal, get_or_make};
use crate::base::sys::sync::Mutex;

/// Each for as long as somebody uses it.
#[derive(Debug, Default)]
struct Memories(Mutex<HashMap<String, Weak<Memory>>>);

/// A child begins with none.
impl AfterFork for Memories {
    fn after_fork(&self) -> Self {
        Memories::default()
    }
}

/// That of a name, made if nobody uses it.
pub(super) fn memory_of(name: &str) -> Arc<Memory> {
    static NAMED: OnceLock<ForkLocal<Memories>> = OnceLock::new();
    let named = get_or_make(&NAMED, || ForkLocal::new(Memories::default()));
    let mut memories = named.get().0.lock();
    if let Some(memory) = memories.get(name).and_then(Weak::upgrade) {
        return memory;
    }
    memories.retain(|_, memory| memory.strong_count() > 0);
    let memory = Arc::default();
    memories.insert(name.to_owned(), Arc::downgrade(&memory));
    memory
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_gone_with_its_last_user() {
        let [first, second] = [(); 2].map(|()| memory_of("gone"));
        assert!(Arc::ptr_eq(&first, &second));
        assert!(!Arc::ptr_eq(&first, &memory_of("other")));
        let weak = Arc::downgrade(&first);
        drop((first, second));
        assert!(weak.upgrade().is_none());
    }
}
