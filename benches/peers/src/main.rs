//! crosslock beside other locks, on a private `redis-server` and in a directory.
//!
//! ```text
//! cargo run --release [-- [--quorum] [SECONDS]]
//! ```
//!
//! Subjects take turns in shuffled rounds of one run, so that noise meets them alike; figures are medians of the
//! rounds. The server has one CPU, all clients another. Read ratios, not times. SECONDS (6) is how long each subject
//! contends in all.
//!
//! - **Alone**: one thread locks and unlocks a free lock.
//! - **Contended**: four processes lock, hold for 1 ms and unlock, again and again.
//! - **Killed**: a holder gets SIGKILL while another waits; how long after the end of its lease the waiter has the
//!   lock.
//! - **Overtime**: a holder works for three times the ttl; does another get in, and what does the holder's unlock say?
//! - **Deleted**: somebody deletes the key; when is the holder told?
//! - **Quorum**: three servers of which a majority decides, with `--quorum` this alone: a free lock, a contended one,
//!   and one of the servers gets SIGKILL meanwhile.

mod alone;
mod contended;
mod delay;
mod failures;
mod files;
mod quorum;
mod server;
mod subject;
mod worker;

use crate::server::Server;

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if contended::serve(&arguments) || failures::serve(&arguments) || worker::serve(&arguments) {
        return;
    }
    let only_quorum = arguments.first().is_some_and(|first| first == "--quorum");
    arguments.drain(..usize::from(only_quorum));
    let seconds = arguments
        .first()
        .map_or(6.0, |seconds| seconds.parse().expect("a number of seconds"));
    let directory = tempfile::tempdir().expect("a temporary directory");
    if !only_quorum {
        let server = Server::start(directory.path());
        server.pin();
        alone::run(&server);
        contended::run(&server, seconds);
        failures::run(&server);
    }
    quorum::run(directory.path(), seconds);
}

/// Of rounds: the one in the middle, which no single burst of noise moves.
fn median(rounds: impl IntoIterator<Item = f64>) -> f64 {
    let mut rounds: Vec<f64> = rounds.into_iter().collect();
    rounds.sort_unstable_by(f64::total_cmp);
    rounds[rounds.len() / 2]
}

/// Subjects in another order each round: what runs before one has an influence on it.
fn shuffled<T: Clone>(subjects: &[T], round: usize) -> Vec<T> {
    let mut order = subjects.to_vec();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64 ^ (round as u64 + 1);
    for last in (1..order.len()).rev() {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        order.swap(last, (random % (last as u64 + 1)) as usize);
    }
    order
}
