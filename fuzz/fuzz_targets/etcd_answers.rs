//! The JSON of etcd's answers.
#![no_main]

use crosslock::fuzzing::etcd_answers;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| etcd_answers(bytes));
