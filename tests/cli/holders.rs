//! Programs that hold locks, and wait for them, until a test is over, or tell all the time that they run, so that a
//! test sees whether two ran at a time; and what is printed of them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

use support::wait_until;

use crate::PATIENCE;
use crate::tool::{Place, Running};

pub(crate) fn holder(place: &Place, options: &str, end: &str) -> Running {
    static STARTED: AtomicU32 = AtomicU32::new(0);
    let began = format!("began-{}", STARTED.fetch_add(1, Ordering::Relaxed));
    let script = format!("echo > {began}; while ! test -e {end}; do sleep 0.02; done");
    let running = place.run(options, &script).start();
    place.wait_for(&began);
    running
}

pub(crate) fn end(place: &Place, end: &str) {
    std::fs::write(place.path(end), "").expect("write a file");
}

#[track_caller]
pub(crate) fn wait_for_waiters(place: &Place, name: &str, count: usize) {
    wait_until("the waiters", PATIENCE, || {
        let seen = json(&place.tool(&format!("--json show {name}")).done().out);
        let waiters = seen["waiters"].as_array();
        waiters.is_some_and(|waiters| waiters.len() == count)
    });
}

#[track_caller]
pub(crate) fn json(printed: &str) -> serde_json::Value {
    serde_json::from_str(printed).unwrap_or_else(|e| panic!("{e}: {printed}"))
}

/// What was printed, with a blank between columns and words for the host and these processes, for tokens, and for times
/// in seconds or of a day.
pub(crate) fn shape(printed: &str, pids: &[u32]) -> String {
    let host = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    let word = |word: &str| {
        let is_time = |c: char| c.is_ascii_digit() || ".:-TZ".contains(c);
        let (place, number) = match word.strip_prefix(&format!("{host}/")) {
            Some(pid) => ("HOST/", pid),
            None => ("", word),
        };
        let pid = pids.iter().position(|pid| pid.to_string() == number);
        match pid {
            Some(index) => format!("{place}PID-{index}"),
            None if word.len() > 12 && word.parse::<u64>().is_ok() => "TOKEN".to_owned(),
            None if word.contains(['.', ':']) && word.chars().all(is_time) => "TIME".to_owned(),
            None => word.to_owned(),
        }
    };
    let lines = printed.lines().map(|line| {
        let words: Vec<_> = line.split_whitespace().map(word).collect();
        words.join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

pub(crate) fn pid(running: &Running) -> u32 {
    running.pid().as_raw_nonzero().get().cast_unsigned()
}

/// Writes the lock's token into `beats`, over and over.
pub(crate) const BEAT: &str = "while :; do echo $CROSSLOCK_TOKEN >> beats; sleep 0.01; done";

/// The same, by a child of the shell, and by a child of that one, while the shell waits.
pub(crate) const BEAT_BELOW: &str = "sh -c 'sh -c \"while :; do echo $CROSSLOCK_TOKEN >> beats; sleep 0.01; done\" & \
     while :; do echo $CROSSLOCK_TOKEN >> beats; sleep 0.01; done' & wait";

/// The same, and SIGTERM doesn't end it.
pub(crate) const BEAT_ON: &str =
    "trap : TERM; while :; do echo $CROSSLOCK_TOKEN >> beats; sleep 0.01; done";

impl Place {
    fn beats(&self) -> Vec<u64> {
        let beats = self.read("beats");
        // The last line may be half written.
        let lines = beats
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'));
        lines.filter_map(|line| line.trim().parse().ok()).collect()
    }

    /// Waits until so many commands have run, each under another token.
    #[track_caller]
    pub(crate) fn wait_for_beats_of(&self, commands: usize) {
        wait_until("commands to run", PATIENCE, || {
            self.beats().into_iter().collect::<BTreeSet<_>>().len() >= commands
        });
    }

    /// Waits until the one that runs now has told so many times more.
    #[track_caller]
    pub(crate) fn wait_for_more_beats(&self, more: usize) {
        let before = self.beats().len();
        wait_until("a command to run on", PATIENCE, || {
            self.beats().len() >= before + more
        });
    }

    pub(crate) fn is_silent(&self) -> bool {
        let before = self.beats().len();
        crate::tool::pause(300);
        self.beats().len() == before
    }

    /// Whoever runs later has a larger token: nobody runs on when the next one has begun.
    #[track_caller]
    pub(crate) fn assert_that_none_ran_beside_another(&self) {
        let beats = self.beats();
        assert!(
            beats.is_sorted(),
            "two ran at a time: {}",
            self.read("beats")
        );
    }
}
