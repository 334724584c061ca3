//! The simulated ZooKeeper beside the real one.

mod faults;
mod records;
mod requests;
mod servers;
mod sessions;
