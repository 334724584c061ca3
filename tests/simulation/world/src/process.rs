//! Processes: threads that are killed, stopped and started together.

use crate::machine::Machine;
use crate::scheduler::{Inside, lock, me, switch, with};
use crate::thread::{State, prepare};

/// A process, by its number. Its id in the world is another number, which no other process has ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process(pub(crate) usize);

#[derive(Default)]
pub(crate) struct Processes(Vec<Its>);

struct Its {
    machine: Machine,
    name: String,
    is_alive: bool,
    /// How many have paused it: it goes on when all of them resume it.
    pauses: u32,
    /// Its threads that can run when it goes on.
    held: Vec<usize>,
    /// It can't start threads.
    has_no_threads: bool,
}

impl Processes {
    fn add(&mut self, machine: Machine, name: &str) -> usize {
        self.0.push(Its {
            machine,
            name: name.to_owned(),
            is_alive: true,
            pauses: 0,
            held: Vec::new(),
            has_no_threads: false,
        });
        self.0.len() - 1
    }

    pub(crate) fn machine(&self, process: usize) -> Machine {
        self.0[process].machine
    }

    pub(crate) fn on(&self, machine: Machine) -> Vec<usize> {
        let on = self.0.iter().enumerate();
        let on = on.filter(|(_, its)| its.machine == machine && its.is_alive);
        on.map(|(at, _)| at).collect()
    }

    pub(crate) fn has_no_threads(&self, process: usize) -> bool {
        self.0[process].has_no_threads
    }

    /// Where threads of a process that is paused are kept.
    pub(crate) fn held_of(&mut self, process: usize) -> Option<&mut Vec<usize>> {
        let its = &mut self.0[process];
        (its.pauses > 0).then_some(&mut its.held)
    }

    pub(crate) fn name(&self, process: usize) -> &str {
        &self.0[process].name
    }
}

/// The process of the first thread, on a machine with a true clock.
pub(crate) fn first(inside: &mut Inside) -> usize {
    let machine = inside.machines.add("first", 0, 10_000_000_000_000);
    inside.processes.add(machine, "first")
}

/// Starts a process. On a machine that is suspended it begins when that goes on.
///
/// # Panics
///
/// Where the system has no thread for it.
pub fn add_process(machine: Machine, name: &str, main: impl FnOnce() + Send + 'static) -> Process {
    let process = with(|inside| {
        let process = inside.processes.add(machine, name);
        if inside.machines.is_asleep(machine) {
            inside.pause(process);
        }
        process
    });
    start(process, name, main);
    Process(process)
}

fn start(process: usize, name: &str, main: impl FnOnce() + Send + 'static) {
    let (_, run) = prepare(Some(process), name, main);
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread.spawn(run).expect("the system has threads");
}

/// Kills a process: none of its threads runs again, and its connections are closed.
pub fn kill(process: Process) {
    end(process, |inside| inside.close_all(process.0));
}

/// The same by a loss of power: nobody is told that its connections are gone.
pub fn lose_power(process: Process) {
    end(process, |inside| inside.silence_all(process.0));
}

fn end(process: Process, close: impl FnOnce(&mut Inside)) {
    let mine = me();
    let mut inside = lock();
    if !std::mem::take(&mut inside.processes.0[process.0].is_alive) {
        return;
    }
    inside.processes.0[process.0].held.clear();
    let _ = inside.take_runnable(|thread| thread.process == process.0);
    let all: Vec<_> = (0..inside.threads.len()).collect();
    for id in all {
        if inside.threads[id].process == process.0 && inside.threads[id].state != State::Finished {
            inside.forget_wait(id);
            inside.threads[id].state = State::Dead;
        }
    }
    close(&mut inside);
    if inside.threads[mine].process == process.0 {
        switch(inside, mine);
    }
}

/// Stops a process as SIGSTOP does. One that stops itself stands at the next place where it would block.
pub fn pause(process: Process) {
    with(|inside| inside.pause(process.0));
}

/// Says whether it can start threads, which the system may refuse.
pub fn allow_threads(process: Process, are_allowed: bool) {
    with(|inside| inside.processes.0[process.0].has_no_threads = !are_allowed);
}

/// It goes on.
pub fn resume(process: Process) {
    with(|inside| inside.resume(process.0));
}

impl Inside {
    pub(crate) fn pause(&mut self, process: usize) {
        self.processes.0[process].pauses += 1;
        let mut taken = self.take_runnable(|thread| thread.process == process);
        self.processes.0[process].held.append(&mut taken);
    }

    pub(crate) fn resume(&mut self, process: usize) {
        let its = &mut self.processes.0[process];
        its.pauses = its.pauses.saturating_sub(1);
        if its.pauses == 0 {
            let held = std::mem::take(&mut its.held);
            held.into_iter().for_each(|id| self.make_runnable(id));
        }
    }
}

#[must_use]
pub fn is_alive(process: Process) -> bool {
    with(|inside| inside.processes.0[process.0].is_alive)
}

/// Runs `work` with the clocks and the id of another process.
pub fn as_process<T>(process: Process, work: impl FnOnce() -> T) -> T {
    let mine = me();
    let own = with(|inside| std::mem::replace(&mut inside.threads[mine].process, process.0));
    let done = work();
    with(|inside| inside.threads[mine].process = own);
    done
}

/// The process of this thread.
#[must_use]
pub fn current() -> Process {
    let mine = me();
    with(|inside| Process(inside.threads[mine].process))
}

/// Its id, as the system calls it.
#[must_use]
pub fn process_id() -> u32 {
    let mine = me();
    let process = with(|inside| inside.threads[mine].process);
    1_000 + u32::try_from(process).unwrap_or(u32::MAX - 1_000)
}

/// The name of the machine.
#[must_use]
pub fn host_name() -> String {
    let mine = me();
    with(|inside| {
        let machine = inside.machine_of(mine);
        inside.machines.name(machine).to_owned()
    })
}
