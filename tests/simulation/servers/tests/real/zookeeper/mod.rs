//! ZooKeeper.

mod faults;
mod records;
mod requests;
mod sessions;
