//! Job control: which process group has the terminal, and how the command and this process stop and go on together.
//!
//! The command leads a group of its own. It gets the terminal at once when this program talks to a person, else as soon
//! as it asks for it: in `crosslock run a -- make | less` the terminal is for `less`.

use std::fs::File;
use std::io::{IsTerminal, stdin, stdout};
use std::os::fd::AsFd;

use nix::sys::signal::{SigSet, Signal as NixSignal};
use rustix::process::{Pid, Signal, getpgid, getpgrp, getpid, getsid, kill_process_group};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};

use super::group::{Group, process};

/// The terminal that controls this process.
#[derive(Debug)]
pub(crate) struct Terminal {
    device: File,
    /// This process's group.
    own: Pid,
    /// How the terminal was set when it was given to the command.
    settings: Option<Termios>,
    has_been_given: bool,
}

impl Terminal {
    /// `None` if there is none.
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

    /// Gives the terminal to a command that a person has started by itself, in the foreground. Others get it when they ask
    /// for it.
    pub(crate) fn give_to_interactive(&mut self, group: Group) {
        let is_alone = self.own == getpid();
        if is_alone && stdin().is_terminal() && stdout().is_terminal() {
            self.give(group);
        }
    }

    /// Gives the terminal to the command, if it is this process's to give. Says whether the command has it.
    pub(crate) fn give(&mut self, group: Group) -> bool {
        let now = tcgetpgrp(&self.device).ok();
        if now == Some(self.own) {
            self.settings = tcgetattr(&self.device).ok();
            self.has_been_given = self.hand_to(group.0);
            return self.has_been_given;
        }
        now == Some(group.0)
    }

    /// Gives it again, after the command was stopped.
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

    /// Sets the terminal as it was before the command, which was killed and can't do it.
    pub(crate) fn restore(&self) {
        if let Some(settings) = &self.settings {
            let set = || tcsetattr(&self.device, OptionalActions::Drain, settings);
            let _ = without_stopping(set);
        }
    }

    /// Does to this process's group what the terminal has done to the command only: a script that runs this program ends
    /// by Ctrl-C.
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

/// Stops this process and the rest of its job, as the terminal has stopped the command. Returns when they go on. Says
/// whether they were stopped: not where nobody could continue them.
pub(crate) fn stop_own_job() -> bool {
    may_stop() && kill_process_group(getpgrp(), Signal::STOP).is_ok()
}

/// Whether somebody outside of this process's group can continue it. The kernel asks the same before it stops a group by
/// the terminal's signals.
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

/// A process in the background that changes its terminal would be stopped by SIGTTOU.
fn without_stopping<T>(change: impl FnOnce() -> T) -> T {
    let mut signals = SigSet::empty();
    signals.add(NixSignal::SIGTTOU);
    let was_blocked = SigSet::thread_get_mask().is_ok_and(|mask| mask.contains(NixSignal::SIGTTOU));
    let _ = signals.thread_block();
    let changed = change();
    // What starts from here on gets the mask that it had.
    if !was_blocked {
        let _ = signals.thread_unblock();
    }
    changed
}
