//! Replies of a Redis server, in pieces.
#![no_main]

use crosslock::fuzzing::redis_replies;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let [piece, bytes @ ..] = bytes {
        redis_replies(bytes, (*piece).into());
    }
});
