//! How soon `crosslock run` has started its command, beside flock(1), with locks in files.
//!
//! `cargo bench -p crosslock-cli --bench command`

use std::process::{Command, Stdio};
use std::time::Instant;

use tempfile::TempDir;

const ROUNDS: usize = 300;

/// Milliseconds until the command's first byte has come, and until the program has ended.
struct Sample {
    started: Vec<f64>,
    ended: Vec<f64>,
}

fn main() {
    let dir = tempfile::tempdir().expect("make a directory");
    let programs = [
        ("the command alone", vec![]),
        ("flock", flock(&dir)),
        ("crosslock run", crosslock(&["run", "name", "--"])),
        (
            "crosslock run --inherit",
            crosslock(&["run", "name", "--inherit", "--"]),
        ),
    ];
    let mut samples: Vec<_> = programs.iter().map(|_| Sample::new()).collect();
    // In turns, so that what else the machine does meets all alike.
    for round in 0..ROUNDS + 10 {
        for ((_, words), sample) in programs.iter().zip(&mut samples) {
            let (started, ended) = measure(words, &dir);
            if round >= 10 {
                sample.started.push(started);
                sample.ended.push(ended);
            }
        }
    }
    println!("| ms | started, p50 | p90 | over, p50 | p90 |\n|---|---|---|---|---|");
    for ((name, _), sample) in programs.iter().zip(&mut samples) {
        let [a, b] = percentiles(&mut sample.started);
        let [c, d] = percentiles(&mut sample.ended);
        println!("| {name} | {a:.2} | {b:.2} | {c:.2} | {d:.2} |");
    }
    let (flock, own) = (
        samples[1].started[ROUNDS / 2],
        samples[2].started[ROUNDS / 2],
    );
    println!(
        "\ncrosslock run starts its command {:.2} ms after flock, {:.1} times its time",
        own - flock,
        own / flock
    );
}

fn flock(dir: &TempDir) -> Vec<String> {
    let file = dir.path().join("flock").display().to_string();
    vec!["flock".to_owned(), file]
}

fn crosslock(args: &[&str]) -> Vec<String> {
    let program = [env!("CARGO_BIN_EXE_crosslock")];
    program
        .iter()
        .chain(args)
        .map(|word| (*word).to_owned())
        .collect()
}

fn measure(words: &[String], dir: &TempDir) -> (f64, f64) {
    let words = words.iter().map(String::as_str).chain(["echo", "x"]);
    let words: Vec<_> = words.collect();
    let begun = Instant::now();
    let mut process = Command::new(words[0])
        .args(&words[1..])
        .env(
            "CROSSLOCK_URL",
            format!("file://{}/locks", dir.path().display()),
        )
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("start a program");
    let mut out = process.stdout.take().expect("it is piped");
    let mut byte = [0];
    std::io::Read::read_exact(&mut out, &mut byte).expect("the command writes");
    let started = begun.elapsed().as_secs_f64() * 1e3;
    assert!(process.wait().expect("reap it").success());
    (started, begun.elapsed().as_secs_f64() * 1e3)
}

fn percentiles(values: &mut [f64]) -> [f64; 2] {
    values.sort_by(f64::total_cmp);
    [values[ROUNDS / 2], values[ROUNDS * 9 / 10]]
}

impl Sample {
    fn new() -> Self {
        Sample {
            started: Vec::new(),
            ended: Vec::new(),
        }
    }
}
