//! The loop over messages: each scene on each engine is played once for each of its messages, and each thing that can
//! happen to it, until there are no more messages.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crosslock_world::Message;

use crate::children::{Sum, child, on_all};
use crate::plan::Topology;
use crate::runner::Options;
use crate::scenes::SCENES;

pub const FAULTS: [(&str, Message); 6] = [
    ("drop", Message::Drop),
    ("close", Message::Close),
    ("behind", Message::CloseBehind),
    ("duplicate", Message::Duplicate(Duration::from_millis(20))),
    // Longer than a call waits for its answer.
    ("delay", Message::Delay(Duration::from_millis(600))),
    ("garble", Message::Garble),
];

/// What a quorum doesn't have.
const OTHERS: [&str; 3] = ["shared", "permits", "value"];

pub fn run(options: &Options) -> ExitCode {
    let (began, sum) = (Instant::now(), Mutex::default());
    let engines = options
        .engines
        .iter()
        .filter(|engine| **engine != Topology::Memory);
    for engine in engines {
        for (scene, _) in SCENES {
            if *engine == Topology::Quorum && OTHERS.contains(&scene) {
                continue;
            }
            let before = Instant::now();
            let played = play_all(
                engine.name(),
                scene,
                options.every.unwrap_or(1).max(1),
                &sum,
            );
            println!(
                "{} {scene}: {played} times in {:.1?}",
                engine.name(),
                before.elapsed()
            );
        }
    }
    Sum::print(&sum, began.elapsed())
}

/// How often it was played.
fn play_all(engine: &str, scene: &str, every: usize, sum: &Mutex<Sum>) -> usize {
    let arguments = ["--scene", scene, "--engine", engine].map(str::to_owned);
    let whole = child(&arguments);
    Sum::add(sum, whole.as_ref(), &arguments);
    let Some(whole) = whole else {
        return 1;
    };
    let messages = Duration::try_from_secs_f64(whole.number("messages")).unwrap_or_default();
    let messages = usize::try_from(messages.as_secs()).unwrap_or(0);
    let next = AtomicUsize::new(0);
    on_all(|| {
        let at = next.fetch_add(1, Ordering::Relaxed) * every;
        let (message, fault) = (at / FAULTS.len() + 1, FAULTS[at % FAULTS.len()].0);
        if message > messages {
            return false;
        }
        let mut arguments = arguments.to_vec();
        arguments.extend(["--message".to_owned(), format!("{message}:{fault}")]);
        let told = child(&arguments);
        Sum::add(sum, told.as_ref(), &arguments);
        true
    });
    messages * FAULTS.len() / every + 1
}
