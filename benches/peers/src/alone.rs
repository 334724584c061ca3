//! One thread, one free lock.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::server::Server;
use crate::subject::{Client, Subject};
use crate::{median, shuffled};

pub const ROUNDS: usize = 25;
const CYCLES: usize = 100;

pub fn run(server: &Server) {
    let ttl = Duration::from_secs(10);
    let mut clients = Subject::ALL
        .map(|subject| subject.client(&server.url, &server.directory, subject.name(), ttl));
    let mut medians: HashMap<&str, Vec<f64>> = HashMap::new();
    // The first round connects, loads scripts and warms caches.
    for round in 0..=ROUNDS {
        for subject in shuffled(&Subject::ALL, round) {
            let index = Subject::ALL
                .iter()
                .position(|other| *other == subject)
                .expect("one of them");
            let median = cycle(clients[index].as_mut());
            if round > 0 {
                medians.entry(subject.name()).or_default().push(median);
            }
        }
    }
    let of = |subject: Subject| median(medians[subject.name()].clone());
    println!("\nAlone\n\n| lock | lock + unlock, p50 | ratio |\n|---|---|---|");
    for subject in Subject::ALL {
        let (time, floor) = (of(subject), of(subject.floor()));
        println!(
            "| {} | {time:.0} us | {:.2} |",
            subject.name(),
            time / floor
        );
    }
}

/// How long it takes to lock and unlock, in microseconds: the median of some.
pub fn cycle(client: &mut dyn Client) -> f64 {
    median((0..CYCLES).map(|_| {
        let start = Instant::now();
        client.lock();
        client.unlock();
        start.elapsed().as_secs_f64() * 1e6
    }))
}
