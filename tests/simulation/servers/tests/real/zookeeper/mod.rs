//! ZooKeeper.

mod records;
mod requests;
mod sessions;
