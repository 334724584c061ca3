//! Three servers of which a majority decides, beside one server and beside others that ask three.

use std::collections::HashMap;
use std::path::Path;
use std::thread;
use std::time::Duration;

use redlock::RedLock;

use crate::contended::{Cycle, HOLD, PROCESSES, Round, logs, monotonic};
use crate::server::Server;
use crate::subject::Subject;
use crate::{alone, contended, median, shuffled};

const TTL: Duration = Duration::from_secs(10);

/// With so many servers.
type Row = (Subject, usize);

const ROWS: [Row; 6] = [
    (Subject::Crosslock, 1),
    (Subject::Crosslock, 3),
    (Subject::Rslock, 3),
    (Subject::RslockOften, 3),
    (Subject::Redlock, 3),
    (Subject::RedlockOften, 3),
];

fn shown((subject, servers): Row) -> String {
    format!("{} | {servers}", subject.name())
}

fn start(directory: &Path, count: usize) -> Vec<Server> {
    let servers: Vec<_> = (0..count).map(|_| Server::start(directory)).collect();
    servers.iter().for_each(Server::pin);
    servers
}

fn url(servers: &[Server], (subject, count): Row) -> String {
    let urls: Vec<_> = servers.iter().map(|server| server.url.clone()).collect();
    let host = |url: &String| url["redis://".len()..].trim_end_matches('/').to_owned();
    match (subject, count) {
        (_, 1) => urls[0].clone(),
        (Subject::Crosslock, _) => {
            let hosts: Vec<_> = urls.iter().map(host).collect();
            format!("redis+quorum://{}/?rejoin=0s", hosts.join(","))
        }
        _ => urls.join(","),
    }
}

pub fn run(directory: &Path, seconds: f64) {
    let servers = start(directory, 3);
    alone(&servers);
    contended(&servers, seconds);
    drop(servers);
    killed(directory);
}

fn alone(servers: &[Server]) {
    let directory = &servers[0].directory;
    let mut clients = ROWS.map(|row| (row.0).client(&url(servers, row), directory, "alone", TTL));
    let mut medians = ROWS.map(|_| Vec::new());
    // The first round connects, loads scripts and warms caches.
    for round in 0..=alone::ROUNDS {
        for at in shuffled(&[0, 1, 2, 3, 4, 5], round) {
            let median = alone::cycle(clients[at].as_mut());
            if round > 0 {
                medians[at].push(median);
            }
        }
    }
    let medians = medians.map(median);
    println!(
        "\nQuorum, alone\n\n| lock | servers | lock + unlock, p50 | ratio |\n|---|---|---|---|"
    );
    for (row, time) in ROWS.into_iter().zip(medians) {
        let ratio = time / medians[0];
        println!("| {} | {time:.0} us | {ratio:.2} |", shown(row));
    }
}

fn contended(servers: &[Server], seconds: f64) {
    let length = Duration::from_secs_f64(seconds / contended::ROUNDS as f64);
    let mut rounds: HashMap<String, Vec<Round>> = HashMap::new();
    for round in 0..contended::ROUNDS {
        for row in shuffled(&ROWS, round) {
            let commands = || {
                let works = servers
                    .iter()
                    .map(|server| server.work(row.0 == Subject::Crosslock));
                works.map(|work| work.commands).sum::<u64>()
            };
            let mut before = 0;
            let (url, directory) = (url(servers, row), &servers[0].directory);
            let logs = logs(row.0, &url, directory, length, || before = commands());
            let round = Round::of(&logs, length, (commands() - before) as f64, 0.0);
            rounds.entry(shown(row)).or_default().push(round);
        }
    }
    println!("\nQuorum, contended: {PROCESSES} processes, each holds for {HOLD:?}\n");
    println!(
        "| lock | servers | acquisitions/s | ratio | least / most served | commands, of all servers | overlaps |"
    );
    println!("|---|---|---|---|---|---|---|");
    let of = |row, field: fn(&Round) -> f64| median(rounds[&shown(row)].iter().map(field));
    for row in ROWS {
        let rate = of(row, |round| round.acquisitions);
        println!(
            "| {} | {rate:.0} | {:.2} | {:.2} | {:.2} | {} |",
            shown(row),
            rate / of(ROWS[0], |round| round.acquisitions),
            of(row, |round| round.fairness),
            of(row, |round| round.commands),
            rounds[&shown(row)]
                .iter()
                .map(|round| round.overlaps)
                .sum::<usize>(),
        );
    }
}

/// How many servers are killed for each row: only one hand-off of each round is the next.
const KILLS: usize = 60;

/// For how long the processes go on before and after that.
const AROUND: Duration = Duration::from_millis(400);

/// The first server is crosslock's queue, the third is asked beside it. Nobody uses the fourth: its row says what the
/// end of a process costs by itself.
fn killed(directory: &Path) {
    // The others don't always wait when a lock is released, or fail.
    let (own, other) = (ROWS[1], ROWS[3]);
    let rows = [(own, 0), (own, 2), (own, 3), (other, 0), (other, 2)];
    let mut found: HashMap<(String, usize), Vec<[f64; 5]>> = HashMap::new();
    for round in 0..KILLS {
        for (row, which) in shuffled(&rows, round) {
            let servers = start(directory, 4);
            let (url, pid) = (url(&servers[..3], row), servers[which].pid());
            let kill = move || {
                thread::sleep(AROUND);
                let killed = monotonic();
                rustix::process::kill_process(pid, rustix::process::Signal::KILL)
                    .expect("a server");
                killed
            };
            let mut killer = None;
            let begin = || killer = Some(thread::spawn(kill));
            let logs = logs(row.0, &url, directory, 2 * AROUND, begin);
            let killed = killer.expect("it began").join().expect("no panic");
            let figures = hand_offs(&logs, killed);
            found.entry((shown(row), which)).or_default().push(figures);
        }
    }
    println!(
        "\nQuorum, one of three gets SIGKILL, or a fourth that nobody uses: from release to the next that waits, in \
         ms, medians of {KILLS} kills\n"
    );
    println!(
        "| lock | servers | killed | p50 before | longest before | p50 after | longest after | next after it |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (row, which) in rows {
        let figures = &found[&(shown(row), which)];
        let [p50, most, p50_after, most_after, next] =
            [0, 1, 2, 3, 4].map(|at| median(figures.iter().map(|figures| figures[at])));
        println!(
            "| {} | {which} | {p50:.2} | {most:.1} | {p50_after:.2} | {most_after:.1} | {next:.2} |",
            shown(row)
        );
    }
    let mut servers = start(directory, 3);
    let urls = servers.iter().map(|server| server.url.clone());
    let redlock = RedLock::new(urls.collect());
    servers.pop();
    let found = redlock.lock(b"down", 1000).map(|lock| lock.is_some());
    println!("\nredlock 2.0, one of three down: {found:?}");
}

/// Of those before and after that time the median and the longest; and the first that ended after it.
fn hand_offs(logs: &[Vec<Cycle>], killed: u64) -> [f64; 5] {
    let mut all: Vec<_> = logs.iter().flatten().copied().collect();
    all.sort_unstable_by_key(|[_, had, _]| *had);
    let waited = all.windows(2).filter(|pair| pair[1][0] < pair[0][2]);
    let taken = waited.map(|pair| {
        (
            pair[1][1],
            pair[1][1].saturating_sub(pair[0][2]) as f64 / 1e6,
        )
    });
    let (before, after): (Vec<_>, Vec<_>) = taken.partition(|(had, _)| *had < killed);
    let of = |some: &[(u64, f64)]| {
        let times: Vec<_> = some.iter().map(|(_, took)| *took).collect();
        let most = times.iter().copied().fold(0.0, f64::max);
        (median(times), most)
    };
    let ((p50, most), (p50_after, most_after)) = (of(&before), of(&after));
    let (_, next) = after[0];
    [p50, most, p50_after, most_after, next]
}
