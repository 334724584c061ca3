//! The simulated ZooKeeper beside the real one.

mod records;
mod requests;
mod servers;
