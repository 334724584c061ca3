//! Processes that want one lock: how fast it goes from one to the next, and what that costs.
//!
//! ```text
//! cargo bench --bench hand_off [-- SECONDS]
//! ```
//!
//! A private `redis-server` is started on one CPU, and on another P processes that lock, hold and unlock in a loop, by
//! TCP. The same goes for a master behind three sentinels, and for a cluster of three masters, of which each process
//! is told another node first; none has replicas, and all servers share their CPU. Each row is measured for SECONDS
//! (3), in rounds that are interleaved in one run, with new processes each time; rates and ratios are medians of the
//! rounds, times are of all of them. All processes of a round begin together, and what they do at first, when they
//! meet and open their inboxes, isn't counted.
//!
//! How to read it: a lock that is held for 1 ms can be taken 1000 times a second, if it cost nothing to give it to
//! the next; `ratio` is against that. With nothing to hold, it is against what one process alone does in the
//! same run: a cycle of lock and unlock is two round trips. `hand-offs` are acquisitions after another process, and
//! have the same ratio beside them. `gap` is the median time from one holder's last moment to the first of the next.
//! `p50` and `p99` are of the time from asking for the lock to having it, and `held` is what a sleep of the time to
//! hold came to. Per acquisition there are `evalsha`, the commands that the processes sent, and `all`, with those
//! that the scripts run for them, `script`, the microseconds that the servers spend in EVALSHA, and `cpu`, all of
//! their CPU time in microseconds; of a cluster that is the CPU time of three, two of which have nothing to do.
//! `fair` is how often the least served process had the lock, against the most served.
//!
//! That no two held it at once, and that tokens increase from holder to holder, is checked of every round.

mod support;

use std::time::Duration;

use support::{Column, Counting, P50, P99, Place, Round, Subject, Table, Task, Worker};
use support::{column, contest, per, ratio_of};

const ROUNDS: u32 = 5;

const COLUMNS: [Column; 13] = [
    column("locks/s", "locks/s", P50, 0),
    ratio_of("locks/s", "most/s"),
    column("hand-offs", "changes/s", P50, 0),
    ratio_of("changes/s", "most/s"),
    column("gap us", "gap us", P50, 0),
    column("p50 ms", "wait ms", P50, 3),
    column("p99 ms", "wait ms", P99, 3),
    column("evalsha", "evalsha", P50, 2),
    column("all", "all", P50, 1),
    column("script", "script us", P50, 1),
    column("cpu", "cpu us", P50, 0),
    column("held", "held ms", P50, 2),
    column("fair", "fair", P50, 2),
];

fn main() {
    if support::serve(|_, _| None) {
        return;
    }
    let seconds = support::argument().unwrap_or(3.0_f64);
    let length = Duration::from_secs_f64(seconds) / ROUNDS;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let start = [Place::single, Place::sentinels, Place::cluster];
    let places = start.map(|start| start(directory.path()));
    support::pin_places(&places);
    let mut subjects = Vec::new();
    for (place, processes) in places.iter().zip([&[1, 2, 4, 16][..], &[4], &[4]]) {
        for hold in [0, 1] {
            let subject = |processes: &usize| subject(place, *processes, hold, length);
            subjects.extend(processes.iter().map(subject));
        }
    }
    let table = Table::new(&["", "P", "hold ms"], &COLUMNS, ROUNDS as usize);
    table.run(subjects);
}

/// So many processes, which hold for as long.
fn subject(place: &Place, processes: usize, hold_ms: u64, length: Duration) -> Subject<'_> {
    let name = format!("{}|{processes}|{hold_ms}", place.kind);
    let floor = match hold_ms {
        0 => "one server|1|0",
        _ => &name,
    };
    let hold = Duration::from_millis(hold_ms);
    let run = move || round(place, processes, hold, length);
    Subject::new(&name, run).to(floor)
}

fn round(place: &Place, processes: usize, hold: Duration, length: Duration) -> Round {
    let servers = place.admins();
    let task = Task::holding(hold);
    let spawn = |process| Worker::spawn(&place.url(process), "bench", &task);
    let workers = (0..processes).map(spawn).collect();
    let (outcome, usage) = contest(workers, length, || {
        let counting = Counting::start(servers);
        || counting.end()
    });
    let mut round = outcome.round();
    let (locks, each) = (outcome.count(), 1.0 / per(outcome.count(), 1));
    // As often as possible with what is held, or else as one process alone has it.
    round.add(
        "most/s",
        match hold {
            Duration::ZERO => outcome.per_second(locks),
            _ => 1.0 / hold.as_secs_f64(),
        },
    );
    round
        .with("evalsha", per(usage.evalsha, locks))
        .with("all", per(usage.all, locks))
        .with("script us", usage.script * each)
        .with("cpu us", usage.cpu * 1e6 * each)
}
