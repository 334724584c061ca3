//! Which thread runs, and what time it is.
//!
//! The thread that runs has the baton. When it blocks, it does what is due, chooses the next thread itself, gives it
//! the baton and sleeps until it gets it back: there is no thread that only schedules. What is shared is behind one
//! lock, for which nobody ever waits.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use fastrand::Rng;

use crate::events::{Event, Events, Nanos, nanos};
use crate::history::{End, History};
use crate::machine::Machines;
use crate::network::Network;
use crate::process::Processes;
use crate::thread::{State, Thread};

static WORLD: OnceLock<Mutex<Inside>> = OnceLock::new();

thread_local! {
    static ME: Cell<Option<usize>> = const { Cell::new(None) };
    static UNINTERRUPTED: Cell<bool> = const { Cell::new(false) };
}

/// What a world begins with.
#[derive(Clone, Debug)]
pub struct Settings {
    pub seed: u64,
    pub chances: Chances,
    /// When the world ends at the latest, by its own time.
    pub most: Duration,
    /// How often a thread is chosen until it counts as stuck.
    pub most_decisions: u64,
}

/// How often something happens where a thread could go on: at each lock and each message of a channel.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chances {
    /// Another thread runs first.
    pub preempted: f64,
    /// The thread stands still for up to `longest_stall`.
    pub stalled: f64,
    pub longest_stall: Duration,
    /// A wait ends for no reason.
    pub woken_early: f64,
}

pub(crate) struct Inside {
    pub(crate) now: Nanos,
    pub(crate) settings: Settings,
    /// Of the order of threads.
    pub(crate) random: Rng,
    /// Of what the library and the scenario draw.
    pub(crate) drawn: Rng,
    pub(crate) threads: Vec<Thread>,
    runnable: Vec<usize>,
    waits: BTreeMap<u64, VecDeque<usize>>,
    next_wait: u64,
    pub(crate) events: Events,
    pub(crate) machines: Machines,
    pub(crate) processes: Processes,
    pub(crate) network: Network,
    pub(crate) history: History,
}

/// Runs a world from its first thread to the end of that, and says what happened. A process can have one world.
pub fn run(settings: Settings, first: impl FnOnce()) -> End {
    let [random, drawn, of_network] = [1, 2, 3].map(|n| {
        Rng::with_seed(
            settings
                .seed
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .wrapping_add(n),
        )
    });
    let inside = Inside {
        now: 0,
        settings,
        random,
        drawn,
        threads: Vec::new(),
        runnable: Vec::new(),
        waits: BTreeMap::new(),
        next_wait: 1,
        events: Events::default(),
        machines: Machines::default(),
        processes: Processes::default(),
        network: Network::new(of_network),
        history: History::default(),
    };
    assert!(
        WORLD.set(Mutex::new(inside)).is_ok(),
        "this process has a world already"
    );
    let me = with(|inside| {
        let process = crate::process::first(inside);
        let me = inside.add_thread(process, "first");
        inside.threads[me].state = State::Running;
        me
    });
    ME.set(Some(me));
    crate::thread::enter(me);
    first();
    with(|inside| inside.history.end())
}

/// The time since the world began, which no clock in it shows.
#[must_use]
pub fn true_now() -> Duration {
    with(|inside| Duration::from_nanos(inside.now))
}

/// Runs `work` so that no other thread runs meanwhile, unless it blocks.
pub fn uninterrupted<T>(work: impl FnOnce() -> T) -> T {
    let before = UNINTERRUPTED.replace(true);
    let done = work();
    UNINTERRUPTED.set(before);
    done
}

pub(crate) fn lock() -> MutexGuard<'static, Inside> {
    let world = WORLD.get().expect("a world runs");
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn with<T>(work: impl FnOnce(&mut Inside) -> T) -> T {
    work(&mut lock())
}

pub(crate) fn me() -> usize {
    ME.get().expect("a thread of the world")
}

pub(crate) fn set_me(me: usize) {
    ME.set(Some(me));
}

/// A new thing that can be waited for.
pub(crate) fn new_wait() -> u64 {
    with(Inside::new_wait)
}

/// Blocks this thread until somebody wakes it, or until that time. False: the time came.
pub(crate) fn block(on: Option<u64>, until: Option<Nanos>) -> bool {
    let me = me();
    let mut inside = lock();
    inside.begin_wait(me, on, until);
    switch(inside, me);
    lock().threads[me].was_woken
}

/// A place where another thread may run first.
pub(crate) fn may_yield() {
    if UNINTERRUPTED.get() {
        return;
    }
    let me = me();
    let mut inside = lock();
    inside.now += 100;
    let Chances {
        preempted,
        stalled,
        longest_stall,
        ..
    } = inside.settings.chances;
    let drawn = inside.random.f64();
    if drawn < stalled {
        let until = inside.now + inside.random.u64(..=nanos(longest_stall));
        inside.begin_wait(me, None, Some(until));
        switch(inside, me);
    } else if drawn < stalled + preempted {
        yield_in(inside, me);
    }
}

/// Lets others run first.
pub(crate) fn yield_now() {
    let me = me();
    yield_in(lock(), me);
}

fn yield_in(mut inside: MutexGuard<'static, Inside>, me: usize) {
    inside.make_runnable(me);
    switch(inside, me);
}

/// Gives the baton to the next thread, and returns when this one has it again: never if it was killed.
pub(crate) fn switch(mut inside: MutexGuard<'static, Inside>, me: usize) {
    let next = inside.choose();
    if next == me {
        return;
    }
    let (theirs, mine) = (
        inside.threads[next].baton.clone(),
        inside.threads[me].baton.clone(),
    );
    drop(inside);
    theirs.give();
    mine.await_it();
}

/// The same for a thread that has ended.
pub(crate) fn leave(mut inside: MutexGuard<'static, Inside>) {
    let next = inside.choose();
    let theirs = inside.threads[next].baton.clone();
    drop(inside);
    theirs.give();
}

impl Inside {
    pub(crate) fn new_wait(&mut self) -> u64 {
        self.next_wait += 1;
        self.next_wait
    }

    pub(crate) fn add_thread(&mut self, process: usize, name: &str) -> usize {
        self.threads.push(Thread::new(process, name));
        self.threads.len() - 1
    }

    fn begin_wait(&mut self, me: usize, on: Option<u64>, until: Option<Nanos>) {
        let thread = &mut self.threads[me];
        thread.generation += 1;
        thread.was_woken = false;
        thread.on = on;
        if thread.state != State::Dead {
            thread.state = State::Blocked;
        }
        let generation = thread.generation;
        if let Some(on) = on {
            self.waits.entry(on).or_default().push_back(me);
        }
        let early = self.settings.chances.woken_early;
        let until = if on.is_some() && early > 0.0 && self.random.f64() < early {
            Some(self.now + self.random.u64(..1_000_000)).min(until.or(Some(u64::MAX)))
        } else {
            until
        };
        if let Some(at) = until {
            let thread = me;
            self.events.push(at, Event::Timeout { thread, generation });
        }
    }

    /// Whoever waits for that may go on: all, or one that chance chooses.
    pub(crate) fn wake(&mut self, on: u64, all: bool) {
        let Some(waiting) = self.waits.get_mut(&on) else {
            return;
        };
        let woken: Vec<usize> = if all || waiting.len() == 1 {
            waiting.drain(..).collect()
        } else {
            let one = self.random.usize(..waiting.len());
            waiting.remove(one).into_iter().collect()
        };
        if waiting.is_empty() {
            self.waits.remove(&on);
        }
        for thread in woken {
            self.threads[thread].was_woken = true;
            self.threads[thread].on = None;
            self.make_runnable(thread);
        }
    }

    /// A thread may run; that of a process that is paused when the process goes on.
    pub(crate) fn make_runnable(&mut self, id: usize) {
        let thread = &mut self.threads[id];
        if matches!(thread.state, State::Dead | State::Finished) {
            return;
        }
        thread.state = State::Runnable;
        let process = thread.process;
        match self.processes.held_of(process) {
            Some(held) => held.push(id),
            None => self.runnable.push(id),
        }
    }

    /// Takes those threads from the ones that can run.
    pub(crate) fn take_runnable(&mut self, of: impl Fn(&Thread) -> bool) -> Vec<usize> {
        let (taken, left) = self.runnable.iter().partition(|id| of(&self.threads[**id]));
        self.runnable = left;
        taken
    }

    /// A thread that waits will never be woken.
    pub(crate) fn forget_wait(&mut self, id: usize) {
        if let Some(on) = self.threads[id].on.take()
            && let Some(waiting) = self.waits.get_mut(&on)
        {
            waiting.retain(|one| *one != id);
            if waiting.is_empty() {
                self.waits.remove(&on);
            }
        }
    }

    /// The next thread to run, behind all that is due before.
    fn choose(&mut self) -> usize {
        loop {
            while let Some(event) = self.events.pop_until(self.now) {
                self.happen(event);
            }
            if self.history.decisions() > self.settings.most_decisions {
                let text = "threads run on and on, and the world doesn't come to its end";
                self.history.stuck(text, self.now);
            }
            if !self.runnable.is_empty() {
                let chosen = self.random.usize(..self.runnable.len());
                let chosen = self.runnable.swap_remove(chosen);
                self.now += self.random.u64(500..3_000);
                self.threads[chosen].state = State::Running;
                self.history.mix(self.now, chosen as u64);
                return chosen;
            }
            match self.events.next_time() {
                Some(at) => self.now = self.now.max(at),
                None => self
                    .history
                    .stuck("all threads wait, and nothing will wake them", self.now),
            }
            if self.now > nanos(self.settings.most) {
                let waiting = self
                    .threads
                    .iter()
                    .filter(|thread| thread.state == State::Blocked);
                let waiting: Vec<_> = waiting.map(|thread| thread.name.as_str()).collect();
                let text = format!(
                    "the world's time is over; there wait {}",
                    waiting.join(", ")
                );
                self.history.stuck(&text, self.now);
            }
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Timeout { thread, generation } => {
                let its = &self.threads[thread];
                if its.state == State::Blocked && its.generation == generation {
                    self.forget_wait(thread);
                    self.make_runnable(thread);
                }
            }
            Event::Arrive(connection, arrival) => self.arrive(connection, arrival),
            Event::Wake { service } => self.wake_service(service),
        }
    }
}
