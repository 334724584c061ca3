//! What `src/base/sys` is in a simulated world: the same names, for the world's time, threads, network and chance.

pub(crate) mod collections;
pub(crate) mod net;
pub(crate) mod sync;
pub(crate) mod time;

use uuid::Uuid;

pub use crosslock_world::channel;
pub(crate) use crosslock_world::{
    Joined, host_name, process_id, random_below, random_fraction, scope, spawn, spawn_joined,
    spawn_scoped, spawn_with_stack, thread_number,
};

pub(crate) fn random_uuid() -> Uuid {
    uuid::Builder::from_random_bytes(crosslock_world::random_bytes()).into_uuid()
}
