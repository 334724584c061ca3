//! Job control: gives the terminal to the command, and stops and continues the command and this process together.
//!
//! The command leads its own process group. It gets the terminal at once if a person started this program by itself,
//! else when it asks for it: in `crosslock run a -- make | less` the terminal belongs to `less`.

use std::io::{IsTerminal, stdin, stdout};
use std::{fs::File, os::fd::AsFd};

use nix::sys::signal::{SigSet, Signal as NixSignal};
use rustix::process::{Pid, Signal, getpgid, getpgrp, getpid, getsid, kill_process_group};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};

use super::group::{Group, process};

/// The controlling terminal of this process.
#[derive(Debug)]
pub(crate) struct Terminal {
    device: File,
    /// The group of this process.
    own: Pid,
    /// The settings of the terminal before the command got it.
    settings: Option<Termios>,
    has_been_given: bool,
}

impl Terminal {
    /// Returns `None` if this process has no terminal.
    pub(crate) fn open() -> Option<Self> {
        let device = File::options()
            .read(true)
            .write(true)
            .open("/dev/tty")
            .ok()?;
        Some(Terminal {
            device,
            own: getpgrp(),
            settings: None,
            has_been_given: false,
        })
    }

    /// Gives the terminal to a command that a person started by itself in the foreground. Other commands get it when
    /// they ask.
    pub(crate) fn give_to_interactive(&mut self, group: Group) {
        let is_alone = self.own == getpid();
        if is_alone && stdin().is_terminal() && stdout().is_terminal() {
            self.give(group);
        }
    }

    /// Gives the terminal to the command, if this process has it. Returns whether the command has it now.
    pub(crate) fn give(&mut self, group: Group) -> bool {
        let now = tcgetpgrp(&self.device).ok();
        if now == Some(self.own) {
            self.settings = tcgetattr(&self.device).ok();
            self.has_been_given = self.hand_to(group.0);
            return self.has_been_given;
        }
        now == Some(group.0)
    }

    /// Gives the terminal back to the command after a stop.
    pub(crate) fn give_again(&mut self, group: Group) {
        if self.has_been_given {
            self.give(group);
        }
    }

    /// Takes the terminal back, if the command has it.
    pub(crate) fn take_back(&self, group: Group) {
        if self.has_been_given && tcgetpgrp(&self.device) == Ok(group.0) {
            self.hand_to(self.own);
        }
    }

    /// Restores the settings of the terminal after a command that was killed.
    pub(crate) fn restore(&self) {
        if let Some(settings) = &self.settings {
            let set = || tcsetattr(&self.device, OptionalActions::Drain, settings);
            let _ = without_stopping(set);
        }
    }

    /// Sends a signal of the keyboard, which reached the command only, to the group of this process: Ctrl-C also ends a
    /// script that runs this program.
    pub(crate) fn pass_on(&self, signal: i32) {
        let is_of_keyboard = [Signal::INT.as_raw(), Signal::QUIT.as_raw()].contains(&signal);
        if let (true, true, Some(signal)) = (
            self.has_been_given,
            is_of_keyboard,
            Signal::from_named_raw(signal),
        ) {
            let _ = kill_process_group(self.own, signal);
        }
    }

    fn hand_to(&self, group: Pid) -> bool {
        without_stopping(|| tcsetpgrp(self.device.as_fd(), group)).is_ok()
    }
}

/// Stops this process and the rest of its job, as the terminal stopped the command. Returns when they continue, or
/// `false` at once if nobody could continue them.
pub(crate) fn stop_own_job() -> bool {
    may_stop() && kill_process_group(getpgrp(), Signal::STOP).is_ok()
}

/// Whether a process outside of this group can continue it. The kernel checks the same before a terminal's signal stops
/// a group.
pub(crate) fn may_stop() -> bool {
    let (own, session) = (getpgrp(), getsid(None).ok());
    let mut pid = Some(getpid());
    while let Some(parent) = pid.and_then(parent_of) {
        if getpgid(Some(parent)) != Ok(own) {
            return getsid(Some(parent)).ok() == session;
        }
        pid = Some(parent);
    }
    false
}

fn parent_of(pid: Pid) -> Option<Pid> {
    Pid::from_raw(process(pid)?.parent)
}

/// Blocks SIGTTOU, which would stop a background process that changes its terminal.
fn without_stopping<T>(change: impl FnOnce() -> T) -> T {
    let mut signals = SigSet::empty();
    signals.add(NixSignal::SIGTTOU);
    let was_blocked = SigSet::thread_get_mask().is_ok_and(|mask| mask.contains(NixSignal::SIGTTOU));
    let _ = signals.thread_block();
    let changed = change();
    // Processes that are started later get the old mask.
    if !was_blocked {
        let _ = signals.thread_unblock();
    }
    changed
}
