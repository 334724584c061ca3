//! Values that have methods of their own.

use crosslock::{Locker, MutexGuard};
use serde::{Deserialize, Serialize};

/// A value with methods of the names that the functions of guards and the facts of leases have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Flat {
    name: String,
    unlocked: u32,
}

impl Flat {
    pub(super) fn in_the(name: &str) -> Self {
        Flat {
            name: name.to_owned(),
            unlocked: 0,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn lease(&self) -> &'static str {
        "for ten years"
    }

    pub(super) fn is_held(&self) -> &'static str {
        "by a tenant"
    }

    pub(super) fn unlock(&mut self) -> u32 {
        self.unlocked += 1;
        self.unlocked
    }

    pub(super) fn discard(&mut self) {
        self.name.clear();
    }

    pub(super) fn downgrade(&mut self) {
        self.name.push_str(", in the basement");
    }
}

pub(crate) fn mutex_guard_hides_none(lock: &Locker) {
    let flat = lock.mutex("a", Flat::in_the("attic")).unwrap();
    let mut guard = flat.lock().unwrap();
    assert_eq!((guard.name(), guard.lease()), ("attic", "for ten years"));
    assert_eq!((guard.is_held(), guard.unlock()), ("by a tenant", 1));
    assert_eq!(guard.unlock(), 2);
    assert_eq!(MutexGuard::lease(&guard).name(), "a");
    MutexGuard::unlock(guard).unwrap();
    assert_eq!(flat.peek().unwrap().unlocked, 2);
    let mut guard = flat.lock().unwrap();
    guard.discard();
    assert_eq!(guard.name(), "");
    MutexGuard::discard(guard).unwrap();
    assert_eq!(flat.peek().unwrap().name, "attic");
}
