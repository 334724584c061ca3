//! An answer by HTTP, cut somewhere.
#![no_main]

use crosslock::fuzzing::etcd_http;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let [cut, bytes @ ..] = bytes {
        etcd_http(bytes, (*cut).into());
    }
});
