//! What is logged, and at which level.
//!
//! Each test has lock names of its own, by which it knows its lines: the logger is that of the whole process.

#[cfg(feature = "file")]
mod environment;
#[cfg(feature = "redis")]
mod release;
#[cfg(feature = "redis")]
mod sets;
#[cfg(feature = "value")]
mod values;
mod waiting;

use std::sync::{Mutex, Once, PoisonError};

use log::{Level, LevelFilter, Log, Metadata, Record};

/// A line of the log.
#[derive(Clone, Debug)]
struct Line {
    level: Level,
    text: String,
}

/// Keeps what the library logs.
struct Kept(Mutex<Vec<Line>>);

static KEPT: Kept = Kept(Mutex::new(Vec::new()));

impl Log for Kept {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("crosslock")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let (level, text) = (record.level(), record.args().to_string());
            let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            lines.push(Line { level, text });
        }
    }

    fn flush(&self) {}
}

/// Begins to keep what is logged.
fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        log::set_logger(&KEPT).unwrap();
        log::set_max_level(LevelFilter::Debug);
    });
}

/// The lines so far that have this text in them.
fn lines_with(text: &str) -> Vec<Line> {
    let lines = KEPT.0.lock().unwrap_or_else(PoisonError::into_inner);
    let found = lines.iter().filter(|line| line.text.contains(text));
    found.cloned().collect()
}
