//! The texts of tickets, which are the same when they are written again.
#![no_main]

use crosslock::LeaseTicket;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(ticket) = text.parse::<LeaseTicket>() {
        let secret = ticket.to_secret();
        let again: LeaseTicket = secret.parse().expect("a ticket's own text is one");
        assert_eq!(again.to_secret(), secret);
        assert_eq!(again.name(), ticket.name());
    }
});
