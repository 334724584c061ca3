//! What is said to people and to programs: results on standard output, everything else on standard error.

use std::env;
use std::io::{IsTerminal, Write as _, stderr, stdout};

use crate::args::Globals;
use crate::status::Failure;

/// Tells of a failure. Only `-q` doesn't hold it back: without it nobody would know why nothing was done.
pub(crate) fn failure(globals: &Globals, failure: &Failure) {
    if globals.json {
        let told = serde_json::json!({
            "event": "failed",
            "status": failure.status.0,
            "reason": failure.text,
        });
        line(&told.to_string());
    } else {
        line(&format!("crosslock: {}", failure.text));
    }
}

/// Says a line on standard error. Whoever has closed it doesn't want to hear.
pub(crate) fn line(text: &str) {
    let _ = writeln!(stderr().lock(), "{text}");
}

/// Whether people read standard output.
#[allow(dead_code)]
pub(crate) fn is_terminal() -> bool {
    stdout().is_terminal()
}

/// Whether standard output may have colours: on a terminal, unless `NO_COLOR` is set.
#[allow(dead_code)]
pub(crate) fn is_coloured() -> bool {
    is_terminal() && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Has the library's log go to standard error.
pub(crate) fn log_to_stderr() {
    if log::set_logger(&StderrLog).is_ok() {
        log::set_max_level(log::LevelFilter::Debug);
    }
}

struct StderrLog;

impl log::Log for StderrLog {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.target().starts_with("crosslock")
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            let level = record.level().as_str().to_lowercase();
            line(&format!("crosslock: {level}: {}", record.args()));
        }
    }

    fn flush(&self) {}
}
