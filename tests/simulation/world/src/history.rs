//! What happened, a line for each thing, and a digest of all decisions, by which two runs are compared.

use std::time::Duration;

use crate::events::Nanos;
use crate::scheduler::{Inside, me, with};

#[derive(Default)]
pub(crate) struct History {
    lines: Vec<String>,
    violations: Vec<String>,
    digest: u64,
    decisions: u64,
}

/// How a world ended.
#[derive(Clone, Debug)]
pub struct End {
    pub lines: Vec<String>,
    pub violations: Vec<String>,
    /// Of all that was decided: two runs with the same one were the same.
    pub digest: u64,
    /// How often a thread was chosen.
    pub decisions: u64,
}

impl History {
    pub(crate) fn mix(&mut self, now: Nanos, what: u64) {
        self.decisions += 1;
        for part in [now, what] {
            self.digest = (self.digest ^ part)
                .wrapping_mul(0x0100_0000_01b3)
                .rotate_left(23);
        }
    }

    pub(crate) fn decisions(&self) -> u64 {
        self.decisions
    }

    fn line(&mut self, now: Nanos, text: &str) {
        let mut digest = self.digest;
        for byte in text.bytes() {
            digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.digest = digest;
        let now = Duration::from_nanos(now);
        self.lines
            .push(format!("{:>12.6} {text}", now.as_secs_f64()));
    }

    pub(crate) fn end(&mut self) -> End {
        End {
            lines: std::mem::take(&mut self.lines),
            violations: std::mem::take(&mut self.violations),
            digest: self.digest,
            decisions: self.decisions,
        }
    }

    /// Ends the process: nothing in this world can go on.
    pub(crate) fn stuck(&mut self, text: &str, now: Nanos) -> ! {
        self.line(now, text);
        for line in &self.lines {
            println!("{line}");
        }
        println!("violation: {text}");
        self.violations
            .iter()
            .for_each(|text| println!("violation: {text}"));
        std::process::exit(1)
    }
}

impl Inside {
    pub(crate) fn log(&mut self, text: &str) {
        self.history.line(self.now, text);
    }

    pub(crate) fn violation(&mut self, text: String) {
        self.log(&format!("VIOLATION {text}"));
        self.history.violations.push(text);
    }
}

/// Writes a line about this thread.
pub fn record(text: &str) {
    let mine = me();
    with(|inside| {
        let thread = &inside.threads[mine];
        let text = format!(
            "{}/{}: {text}",
            inside.processes.name(thread.process),
            thread.name
        );
        inside.log(&text);
    });
}

/// Says that something was wrong.
pub fn violation(text: String) {
    with(|inside| inside.violation(text));
}
