//! Serves simulated servers, and prints their ports, one a line, until its input ends: `serve redis`.
//!
//! A line of its input is a fault of a host: `kill 0`, `start 0`, `pause 0`, `resume 0`, `cut 0`, `heal 0`, `own 0 2`.

use std::io;

use crosslock_world::service::Fault;

use crosslock_servers::{redis, serve};

fn main() -> io::Result<()> {
    let which = std::env::args().nth(1).unwrap_or_default();
    let served = match which.as_str() {
        "redis" => serve::serve(1, |mut at| redis::Single::at(at.remove(0), None))?,
        "sentinels" => serve::serve(6, redis::Sentinels::at)?,
        "cluster" => serve::serve(6, redis::Cluster::at)?,
        _ => return Err(io::Error::other("which? redis, sentinels or cluster")),
    };
    for address in served.addresses() {
        println!("{}", address.port());
    }
    for line in io::stdin().lines() {
        let line = line?;
        let words: Vec<_> = line.split(' ').collect();
        let number = |at: usize| {
            words
                .get(at)
                .and_then(|word| word.parse().ok())
                .unwrap_or(0)
        };
        let fault = match words[0] {
            "kill" => Fault::Kill,
            "start" => Fault::Start { with_data: true },
            "pause" => Fault::Pause,
            "resume" => Fault::Resume,
            "cut" => Fault::Cut,
            "heal" => Fault::Heal,
            "own" => Fault::Own(number(2)),
            other => {
                eprintln!("no fault: {other}");
                continue;
            }
        };
        served.fault(number(1), fault);
    }
    Ok(())
}
