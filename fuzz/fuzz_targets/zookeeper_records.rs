//! What a ZooKeeper server sends.
#![no_main]

use crosslock::fuzzing::zookeeper_records;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| zookeeper_records(bytes));
