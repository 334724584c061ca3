//! The servers of crosslock's engines, as small as the library needs them: each is a `Service` of a simulated world.
//!
//! None has more than its clients use. Each is compared with the real one: the same requests, and the same answers.

pub mod etcd;
pub mod redis;
pub mod serve;
pub mod zookeeper;
