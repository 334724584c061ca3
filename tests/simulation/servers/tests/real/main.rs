//! The simulated servers beside the real ones: the same requests are sent to both, and the answers have to be the same.
//! And what faults do to simulated servers.

mod etcd;
mod peers;
mod redis;
mod redis_sets;
mod zookeeper;
