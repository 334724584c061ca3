//! One thread, one free lock.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::server::Server;
use crate::subject::Subject;
use crate::{median, shuffled};

const ROUNDS: usize = 25;
const CYCLES: usize = 100;

pub fn run(server: &Server) {
    let ttl = Duration::from_secs(10);
    let mut clients = Subject::ALL
        .map(|subject| subject.client(&server.url, &server.directory, subject.name(), ttl));
    let mut medians: HashMap<&str, Vec<f64>> = HashMap::new();
    // The first round connects, loads scripts and warms caches.
    for round in 0..=ROUNDS {
        for subject in shuffled(round) {
            let index = Subject::ALL
                .iter()
                .position(|other| *other == subject)
                .expect("one of them");
            let client = &mut clients[index];
            let times = (0..CYCLES).map(|_| {
                let start = Instant::now();
                client.lock();
                client.unlock();
                start.elapsed().as_secs_f64() * 1e6
            });
            let median = median(times);
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
