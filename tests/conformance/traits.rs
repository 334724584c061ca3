//! Where values of the library may go, whatever engine they are of.

use std::panic::{RefUnwindSafe, UnwindSafe};

use crosslock::{Error, LockGuard, Locker, Semaphore};

const fn goes_anywhere<T: Send + Sync + 'static>() {}
const fn is_shared<T: Clone + Send + Sync + 'static>() {}
/// A panic leaves nothing half done in it.
const fn survives_panics<T: Send + Sync + UnwindSafe + RefUnwindSafe + 'static>() {}

const _: () = {
    goes_anywhere::<Error>();
    survives_panics::<LockGuard>();
    survives_panics::<Locker>();
    is_shared::<Locker>();
    survives_panics::<Semaphore>();
    is_shared::<Semaphore>();
};

#[cfg(feature = "value")]
const _: () = {
    use crosslock::*;
    // What a mutex holds of its type is only in its guards.
    survives_panics::<Mutex<std::rc::Rc<std::cell::Cell<u8>>>>();
    survives_panics::<MutexGuard<String>>();
    survives_panics::<RwLock<std::rc::Rc<std::cell::Cell<u8>>>>();
    survives_panics::<RwLockReadGuard<String>>();
    survives_panics::<RwLockWriteGuard<String>>();
    is_shared::<OnceLock<std::rc::Rc<u8>>>();
    is_shared::<Latch>();
    is_shared::<Barrier>();
    is_shared::<Election>();
};

#[cfg(feature = "delay")]
const _: () = {
    goes_anywhere::<crosslock::DelayQueue<std::rc::Rc<u8>>>();
    goes_anywhere::<crosslock::Task<u8>>();
    goes_anywhere::<crosslock::Workers>();
};
