//! Watches the command, its lock and the signals until the command ends.

use std::time::{Duration, Instant};
use std::{fs::File, io, os::unix::process::ExitStatusExt as _};

use crosslock::crossbeam_channel::{Receiver, never, select};
use crosslock::{LockGuard, Lost, LostReason};
use rustix::process::{Pid, Signal, getpid};

use super::signals::{Heard, Listener};
use super::terminal::{self, Terminal};
use super::watchdog::{Watchdog, since_boot};
use super::{child::Child, group, options::Options, signal_name};
use crate::output::Words;
use crate::status::{Failure, LOST, Outcome, RAN_TOO_LONG, Status};

/// A process that survives SIGKILL for so long sleeps in the kernel, for instance on a disk that doesn't answer.
const DIES_WITHIN: Duration = Duration::from_secs(60);
/// The pause if nothing is expected.
const IDLE: Duration = Duration::from_secs(3600);

/// Watches a command that runs under a lock.
pub(crate) struct Supervisor<'a> {
    guard: &'a LockGuard,
    options: &'a Options,
    words: Words,
    listener: Listener,
    lost: Receiver<Lost>,
    files: Vec<File>,
    child: Child,
    /// `None` if the command outlives this process.
    watchdog: Option<Watchdog>,
    terminal: Option<Terminal>,
    started: Instant,
    is_stopped: bool,
    ending: Option<Ending>,
}

/// How the command is being stopped.
#[derive(Clone, Copy, Debug)]
struct Ending {
    status: Status,
    /// The time of SIGKILL.
    kill_at: Instant,
    is_killed: bool,
}

impl<'a> Supervisor<'a> {
    /// Starts the watchdog and the command.
    pub(crate) fn start(
        guard: &'a LockGuard,
        options: &'a Options,
        words: Words,
        listener: Listener,
    ) -> Result<Self, Failure> {
        let files = guard.lock_files();
        let files = files.map_err(|e| Failure::broken("can't open the files of the lock", &e))?;
        if options.inherit && files.is_empty() {
            let why = "--inherit works only with file: locks";
            return Err(Failure::usage(why));
        }
        let now = since_boot();
        let until = until(now, guard.remaining(), options);
        let (watchdog, inherited) = match options.inherit {
            true => (Ok(None), &files[..]),
            false => (Watchdog::start(&files, until).map(Some), &[][..]),
        };
        let watchdog = watchdog.map_err(|e| Failure::broken("can't start the watchdog", &e))?;
        let child = Child::start(options, guard.fencing_token(), until, inherited, words);
        let child = child.map_err(|e| Failure::broken("can't start the command", &e))?;
        let mut supervisor = Supervisor {
            guard,
            options,
            words,
            listener,
            lost: guard.lost().clone(),
            files,
            child,
            watchdog,
            terminal: Terminal::open(),
            started: Instant::now(),
            is_stopped: false,
            ending: None,
        };
        supervisor.introduce();
        Ok(supervisor)
    }

    /// Passes the command's process group to the watchdog and the terminal.
    fn introduce(&mut self) {
        let group = self.child.group;
        if let Some(watchdog) = &mut self.watchdog {
            // If it has ended meanwhile, `look_at_watchdog` replaces it.
            let _ = watchdog.watch(group);
        }
        if let Some(terminal) = &mut self.terminal {
            terminal.give_to_interactive(group);
        }
    }

    /// Waits until the command ends, and returns the status of this program.
    pub(crate) fn until_over(mut self) -> Outcome {
        let watched = |e: io::Error| Failure::broken("can't watch the command", &e);
        while !self.child.has_ended().map_err(watched)? {
            if let Some(signal) = self.child.take_stop().map_err(watched)? {
                self.command_has_stopped(signal);
            }
            self.look_at_lock();
            self.look_at_watchdog();
            self.reap_orphans();
            self.wait();
        }
        self.finish()
    }

    /// Waits until something happens or is due.
    fn wait(&mut self) {
        let pause = self.pause();
        let heard = select! {
            recv(self.listener.heard) -> heard => heard.ok(),
            recv(self.lost) -> lost => {
                // The channel is closed after its one message.
                self.lost = never();
                if let Ok(lost) = lost {
                    self.lock_is_lost(lost.reason);
                }
                None
            }
            default(pause) => None,
        };
        match heard {
            Some(Heard::Forward(signal)) => self.child.group.signal(signal),
            Some(Heard::Stop) => self.child.group.signal(Signal::TSTP),
            Some(Heard::Continued) => self.continued(),
            Some(Heard::Child) | None => {}
        }
    }

    fn pause(&self) -> Duration {
        if let Some(ending) = &self.ending {
            return match ending.is_killed {
                true => IDLE,
                false => ending.kill_at.saturating_duration_since(Instant::now()),
            };
        }
        let remaining = self.guard.remaining();
        let mut pause = IDLE;
        if remaining < Duration::MAX {
            let timing = &self.options.timing;
            // After each renewal the watchdog needs a new time.
            pause = pause.min(remaining.saturating_sub(timing.notice()));
            pause = pause.min(timing.renew_every());
        }
        match self.options.max_run {
            Some(most) => pause.min(most.saturating_sub(self.started.elapsed())),
            None => pause,
        }
    }
}

/// How a command is stopped.
impl Supervisor<'_> {
    fn look_at_lock(&mut self) {
        let remaining = self.guard.remaining();
        let (timing, max_run) = (self.options.timing, self.options.max_run);
        let time = remaining.saturating_sub(timing.margin());
        let time = time.min(timing.kill_after);
        let is_lost = remaining.is_zero();
        match &mut self.ending {
            None if is_lost => self.lock_is_lost(self.lost_reason()),
            None if remaining <= timing.notice() => {
                let why = "can't renew the lock: stopping the command before the lock is lost";
                self.end(LOST, "renewal_failed", why, time);
            }
            None if max_run.is_some_and(|most| most <= self.started.elapsed()) => {
                let why = "the command ran longer than --max-run: stopping it";
                self.end(RAN_TOO_LONG, "max_run", why, time);
            }
            None => {}
            Some(ending) if ending.is_killed => {}
            Some(ending) => {
                // Whatever the reason of the stop: the command has to be dead before the lease ends.
                let has_no_time = !is_lost && remaining <= timing.margin();
                if has_no_time || ending.kill_at <= Instant::now() {
                    self.kill();
                }
            }
        }
    }

    fn lost_reason(&self) -> LostReason {
        self.lost
            .try_recv()
            .map_or(LostReason::Expired, |lost| lost.reason)
    }

    /// If somebody took the lock away, the command gets `--kill-after` to stop, though another process may already hold
    /// the lock. If the lease has expired, it gets no time: it should be dead already.
    fn lock_is_lost(&mut self, reason: LostReason) {
        let time = match reason {
            LostReason::Expired => Duration::ZERO,
            _ => self.options.timing.kill_after,
        };
        if self.ending.is_none() {
            let why = format!("the lock is lost because {reason}: stopping the command");
            self.end(LOST, "lost", &why, time);
        }
    }

    fn end(&mut self, status: Status, event: &str, why: &str, time: Duration) {
        let (group, signal) = (self.child.group, self.options.signal);
        log::debug!("process group {:?} gets {}", group, signal_name(signal));
        group.signal(signal);
        // A stopped command wouldn't receive the signal. It may continue only while it holds the lock.
        if !self.guard.remaining().is_zero() {
            group.signal(Signal::CONT);
        }
        self.ending = Some(Ending {
            status,
            kill_at: Instant::now() + time,
            is_killed: false,
        });
        // Last, so that a slow reader of standard error delays nothing.
        let name = self.options.name();
        let facts = [("name", name.as_str().into()), ("reason", why.into())];
        self.words.say(event, &facts, &format!("{name}: {why}"));
    }

    fn kill(&mut self) {
        if let Some(ending) = &mut self.ending {
            ending.is_killed = true;
        }
        self.child.group.signal(Signal::KILL);
        self.words
            .note("killed", &[("name", self.options.name().into())]);
    }
}

/// Events of the command, the watchdog and other children.
impl Supervisor<'_> {
    fn command_has_stopped(&mut self, signal: i32) {
        let group = self.child.group;
        let asks_for_terminal = [Signal::TTIN.as_raw(), Signal::TTOU.as_raw()].contains(&signal);
        let Some(terminal) = &mut self.terminal else {
            // Without a terminal there is no job control. The lock is kept.
            self.is_stopped = true;
            return;
        };
        if asks_for_terminal && terminal.give(group) {
            return group.signal(Signal::CONT);
        }
        self.is_stopped = true;
        if !asks_for_terminal && signal != Signal::TSTP.as_raw() {
            return;
        }
        terminal.take_back(group);
        // Renewals stop too. When the job continues, the lock may be lost.
        if !terminal::stop_own_job() {
            self.continued();
        }
    }

    /// This process continues after a stop, or received SIGCONT.
    fn continued(&mut self) {
        // If another process may hold the lock by now, the command must not continue.
        if self.guard.remaining().is_zero() {
            return self.look_at_lock();
        }
        let group = self.child.group;
        if let Some(terminal) = &mut self.terminal {
            terminal.give_again(group);
        }
        if std::mem::take(&mut self.is_stopped) {
            group.signal(Signal::CONT);
        }
    }

    /// Sends the watchdog the time until which the command may run, and replaces a watchdog that was killed.
    fn look_at_watchdog(&mut self) {
        // Before the rest of the lease: if this process is stopped between the two, the watchdog is told an earlier
        // time and not a later one.
        let now = since_boot();
        let remaining = self.guard.remaining();
        if remaining.is_zero() && self.ending.is_none() {
            // The lock was lost just now: `look_at_lock` decides how long the command may still run.
            return;
        }
        let until = self.until(now, remaining);
        let Some(watchdog) = &mut self.watchdog else {
            return;
        };
        let told = watchdog.allow_until(until);
        match watchdog.has_ended() {
            None => log::trace!("the watchdog was told: {told:?}"),
            // The command is dead too.
            Some(true) => {}
            Some(false) => match watchdog.replaced(&self.files) {
                Ok(other) => *watchdog = other,
                Err(e) => {
                    let text = format!("can't start the watchdog: {e}");
                    self.words.say_why("warning", &text);
                    self.watchdog = None;
                }
            },
        }
    }

    /// The first process of a container inherits all processes whose parents have ended, and has to reap them.
    fn reap_orphans(&self) {
        if getpid() == Pid::INIT {
            let watchdog = self.watchdog.as_ref().map(Watchdog::pid);
            group::reap_all_but(&[Some(self.child.group.0), watchdog]);
        }
    }

    /// The time since boot at which the watchdog kills the command, of a lease that lasts for `remaining` from `now`.
    fn until(&self, now: Duration, remaining: Duration) -> Option<Duration> {
        let by_lease = until(now, remaining, self.options);
        let Some(ending) = &self.ending else {
            return by_lease;
        };
        let left = ending.kill_at.saturating_duration_since(Instant::now());
        let by_ending = now + left + self.options.timing.last_margin();
        Some(match by_lease {
            Some(by_lease) if !remaining.is_zero() => by_lease.min(by_ending),
            _ => by_ending,
        })
    }

    /// Cleans up after the command. The rest of its process group is killed only if the command was stopped.
    fn finish(self) -> Outcome {
        let group = self.child.group;
        if self.ending.is_some() {
            // No other group can have this number: the leader isn't reaped yet.
            group.signal(Signal::KILL);
            if !group.wait_until_dead(DIES_WITHIN) {
                let text = "can't kill a process of the command: it sleeps in the kernel";
                self.words
                    .insist("warning", &[("reason", text.into())], text);
            }
        }
        let watchdog = self.watchdog.map(Watchdog::dismiss);
        if let Some(terminal) = &self.terminal {
            terminal.take_back(group);
        }
        let exit = self.child.reap();
        let exit = exit.map_err(|e| Failure::broken("can't read the status of the command", &e))?;
        if let (Some(terminal), Some(signal)) = (&self.terminal, exit.signal()) {
            terminal.restore();
            terminal.pass_on(signal);
        }
        let is_killed = exit.signal() == Some(Signal::KILL.as_raw());
        let status = match self.ending {
            Some(ending) => ending.status,
            None if is_killed && watchdog == Some(true) => {
                let why = "the lock is lost: the watchdog killed the command while this process was stopped";
                let name = self.options.name();
                self.words
                    .say("lost", &[("reason", why.into())], &format!("{name}: {why}"));
                LOST
            }
            None => Status::of(exit),
        };
        self.words.note("ended", &[("status", status.0.into())]);
        Ok(status)
    }
}

/// The time since boot until which a command may run if its lease lasts for `remaining` from `now`; `None`: forever.
fn until(now: Duration, remaining: Duration, options: &Options) -> Option<Duration> {
    (remaining < Duration::MAX)
        .then(|| now + remaining.saturating_sub(options.timing.last_margin()))
}
