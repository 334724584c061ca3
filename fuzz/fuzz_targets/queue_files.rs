//! The file of a delay queue.
#![no_main]

mod file;

use crosslock::fuzzing::queue_file;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| file::with_file(bytes, queue_file));
