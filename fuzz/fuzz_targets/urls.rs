//! URLs of servers.
#![no_main]

use crosslock::fuzzing::url;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| url(text));
