//! The signals that end a wait, or that this process forwards to the command.

use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, io, sync::Arc, thread};

use crosslock::crossbeam_channel::{Receiver, unbounded};
use rustix::process::{Signal, getpid, kill_process};
use signal_hook::consts::{
    SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2,
};
use signal_hook::iterator::Signals;

/// They end a wait. While a command runs, they are forwarded to it.
const FORWARDED: [i32; 6] = [SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2];

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Forward it to the command, or end the wait.
    Forward(Signal),
    /// A child has ended, stopped or continued.
    Child,
    /// This process continues after a stop.
    Continued,
    /// The terminal asks this job to stop.
    Stop,
}

/// Receives signals on its own thread.
pub(crate) struct Listener {
    pub(crate) heard: Receiver<Heard>,
    /// While this is set, `Stop` stops this process at once.
    waiting: Arc<AtomicBool>,
}

impl Listener {
    /// The thread calls `on_forward` as soon as a signal arrives that has to be forwarded.
    pub(crate) fn start(on_forward: impl Fn() + Send + 'static) -> io::Result<Self> {
        let ignored = ignored();
        let ours = FORWARDED.into_iter().chain([SIGTSTP]);
        // Ignored signals stay ignored, also for the command: nohup(1) relies on that.
        let ours = ours.filter(|signal| !is_in(ignored, *signal));
        let mut signals = Signals::new(ours.chain([SIGCHLD, SIGCONT]))?;
        let (told, heard) = unbounded();
        let waiting = Arc::new(AtomicBool::new(true));
        let is_waiting = waiting.clone();
        let listen = move || {
            for signal in signals.forever() {
                let heard = meaning(signal);
                if heard == Some(Heard::Stop) && is_waiting.load(Ordering::SeqCst) {
                    stop_alone();
                }
                if heard.is_some_and(|heard| told.send(heard).is_err()) {
                    return;
                }
                // After the message, so that the woken thread finds the signal.
                if matches!(heard, Some(Heard::Forward(_))) {
                    on_forward();
                }
            }
        };
        thread::Builder::new()
            .name("crosslock-signals".to_owned())
            .spawn(listen)?;
        Ok(Listener { heard, waiting })
    }

    /// Ends the wait: from now on the receiver handles `Stop`. Returns the signal that has arrived before and ends the
    /// wait, if there is one.
    pub(crate) fn end_of_wait(&self) -> Option<Signal> {
        self.waiting.store(false, Ordering::SeqCst);
        let forwarded = |heard| match heard {
            Heard::Forward(signal) => Some(signal),
            _ => None,
        };
        self.heard.try_iter().find_map(forwarded)
    }
}

fn meaning(signal: i32) -> Option<Heard> {
    Some(match signal {
        SIGCHLD => Heard::Child,
        SIGCONT => Heard::Continued,
        SIGTSTP => Heard::Stop,
        _ => Heard::Forward(Signal::from_named_raw(signal)?),
    })
}

/// Stops this process, as the terminal asked, unless nobody could continue it.
fn stop_alone() {
    if super::terminal::may_stop() {
        let _ = kill_process(getpid(), Signal::STOP);
    }
}

/// The signals that this process ignores since its start: one bit for each.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

fn is_in(mask: u64, signal: i32) -> bool {
    mask >> (signal - 1) & 1 == 1
}
