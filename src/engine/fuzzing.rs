//! The parsers of what servers and other processes write, for fuzz targets. It needs the features of all engines.

use std::fs::File;

use super::{etcd, file, redis, zookeeper};

/// Reads replies of Redis, which come in pieces of up to so many bytes.
pub fn redis_replies(bytes: &[u8], piece: usize) {
    redis::fuzzing::replies(bytes, piece);
}

/// Reads records of ZooKeeper.
pub fn zookeeper_records(bytes: &[u8]) {
    zookeeper::fuzzing::records(bytes);
}

/// Reads an answer by HTTP, cut there.
pub fn etcd_http(bytes: &[u8], cut: usize) {
    etcd::fuzzing::http(bytes, cut);
}

/// Understands the JSON of an answer of etcd.
pub fn etcd_answers(bytes: &[u8]) {
    etcd::fuzzing::answers(bytes);
}

/// Understands a URL of each engine with servers. `Locker::open` would connect.
pub fn url(url: &str) {
    redis::fuzzing::url(url);
    etcd::fuzzing::url(url);
    zookeeper::fuzzing::url(url);
}

/// Reads the file of a lock.
pub fn lock_file(file: &File) {
    file::fuzzing::lock_file(file);
}

/// Reads the text in the file of a lock.
pub fn lock_text(text: &str) {
    file::fuzzing::text(text);
}

/// Reads the file of a delay queue.
pub fn queue_file(file: &File) {
    file::fuzzing::queue_file(file);
}
