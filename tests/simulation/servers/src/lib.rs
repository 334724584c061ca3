//! The servers of crosslock's engines, as small as the library needs them: each is a `Service` of a simulated world.
//!
//! None has more than its clients use, and each is compared with the real one: the same requests, and the same answers.

pub mod desk;
pub mod etcd;
mod health;
pub mod redis;
pub mod zookeeper;

/// The begin of what was stored, for people.
fn short(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().take(60).collect()
}
