//! Whoever stores a value, with the lock held, or removes it without.

use super::model::{Engine, Mutant, Party, Setup, World};

#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    Store(u8),
    Remove,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Storer {
    stage: Stage,
    /// How many of its operations are done.
    done: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Stage {
    #[default]
    Idle,
    Holds,
    /// It has told, and stores then.
    Told,
    /// It is about to read the list.
    Reads,
    /// It is about to remove the list; those on it are bits.
    Removes(u8),
    /// It is about to ring these.
    Rings(u8),
    /// It is about to release the lock, if it has it.
    Stored,
    Dead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step {
    /// It removes the value.
    Remove,
    /// It stores, or does what it does next.
    Next,
    Kill,
}

impl Step {
    pub(super) const ALL: [Step; 3] = [Step::Remove, Step::Next, Step::Kill];
}

impl Storer {
    pub(super) fn hold(&mut self) {
        self.stage = Stage::Holds;
    }
}

impl World {
    fn next_operation(&self, setup: &Setup, at: usize) -> Option<Operation> {
        setup.storers[at].get(self.storers[at].done).copied()
    }

    pub(super) fn wants_to_store(&self, setup: &Setup, at: usize) -> bool {
        let next = self.next_operation(setup, at);
        self.storers[at].stage == Stage::Idle && matches!(next, Some(Operation::Store(_)))
    }

    pub(super) fn may_store(&self, setup: &Setup, at: usize, step: Step) -> bool {
        let stage = self.storers[at].stage;
        let is_telling = matches!(stage, Stage::Reads | Stage::Removes(_) | Stage::Rings(_));
        match step {
            Step::Remove => {
                let next = self.next_operation(setup, at);
                stage == Stage::Idle && matches!(next, Some(Operation::Remove))
            }
            Step::Next if stage == Stage::Holds => self.file_lock.is_none(),
            Step::Next => !matches!(stage, Stage::Idle | Stage::Dead),
            Step::Kill => is_telling && self.kills < setup.kills,
        }
    }

    pub(super) fn store(&mut self, setup: &Setup, at: usize, step: Step) {
        let stage = self.storers[at].stage;
        let operation = self.next_operation(setup, at);
        let value = match operation {
            Some(Operation::Store(value)) => Some(value),
            _ => None,
        };
        self.storers[at].stage = match (step, stage) {
            (Step::Kill, _) => {
                self.kills += 1;
                self.free(at);
                Stage::Dead
            }
            (_, Stage::Idle | Stage::Holds) => self.change(setup, at, value),
            (_, Stage::Told) => {
                self.value = value;
                Stage::Stored
            }
            (_, Stage::Reads) => self.read_list(setup, value.is_some()),
            (_, Stage::Removes(listed)) => {
                self.waiters
                    .iter_mut()
                    .for_each(|one| one.is_registered = false);
                match setup.is(Mutant::ListRemovedUnread) {
                    true => Stage::Reads,
                    false => Stage::Rings(listed),
                }
            }
            (_, Stage::Rings(0)) => Stage::Stored,
            (_, Stage::Rings(listed)) => {
                let first = listed.trailing_zeros();
                self.waiters[first as usize].is_told = true;
                Stage::Rings(listed & !(1 << first))
            }
            (_, Stage::Stored | Stage::Dead) => {
                self.free(at);
                self.storers[at].done += 1;
                Stage::Idle
            }
        };
    }

    fn free(&mut self, at: usize) {
        self.lock.take_if(|party| *party == Party::Storer(at));
        self.file_lock.take_if(|storer| *storer == at);
    }

    /// On a server one step changes the value and sends the messages.
    fn change(&mut self, setup: &Setup, at: usize, value: Option<u8>) -> Stage {
        let is_told = value.is_some() || !setup.is(Mutant::RemovalNotTold);
        if setup.engine == Engine::File {
            self.value = value;
            self.file_lock = value.map(|_| at).or(self.file_lock);
            return match value {
                _ if !is_told => Stage::Stored,
                Some(_) if setup.is(Mutant::ListRemovedUnread) => Stage::Removes(0),
                _ => Stage::Reads,
            };
        }
        if is_told {
            let waiters = self.waiters.iter_mut();
            waiters.for_each(|one| one.send(setup.engine));
        }
        if setup.is(Mutant::ToldBeforeStored) {
            return Stage::Told;
        }
        self.value = value;
        Stage::Stored
    }

    /// Only who has the file locked removes the list.
    fn read_list(&self, setup: &Setup, is_locked: bool) -> Stage {
        let listed = self.waiters.iter().enumerate();
        let listed = listed.filter(|(_, one)| one.is_registered);
        let listed = listed.fold(0, |listed, (at, _)| listed | 1 << at);
        let is_kept = !is_locked && !setup.is(Mutant::ListRemovedUnlocked);
        if is_kept || setup.is(Mutant::ListRemovedUnread) {
            Stage::Rings(listed)
        } else {
            Stage::Removes(listed)
        }
    }
}
