//! Whoever waits: it locks, evaluates its condition, releases, begins to watch, looks, and sleeps until it is told.

use super::model::{Engine, Mutant, Setup, Value, World};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Waiter {
    pub(super) stage: Stage,
    /// What it found with the lock held.
    pub(super) seen: Value,
    pub(super) is_timed_out: bool,
    /// Whether it has a watch, as far as it knows.
    pub(super) is_watching: bool,
    /// Whether the server, or the list, has its watch.
    pub(super) is_registered: bool,
    /// Whether the confirmation of its watch is on its way.
    is_confirmed: bool,
    /// How many messages are on their way. They come in any order with answers.
    messages: u8,
    /// Whether it was told of a change since it slept last.
    pub(super) is_told: bool,
    /// The same of a lost connection. Of a change before that it learns first.
    is_told_of_loss: bool,
    /// Whether its connection is lost without its notice.
    is_cut: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// It asks for the lock.
    #[default]
    Locks,
    Holds,
    /// It has released, and sleeps if it watches.
    Released,
    /// Its watch isn't confirmed yet.
    Begins,
    Looks,
    /// What it found is on its way.
    Looked(Value),
    Sleeps,
    /// It has the lock.
    Returned,
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step {
    Evaluate,
    Unlock,
    Begin,
    /// The server begins to watch for it.
    Register,
    Confirm,
    /// It doesn't wait for the confirmation any more.
    GoOn,
    Look,
    /// It hears what it looked at.
    Compare,
    Deliver,
    Wake,
    /// After a long time without a word.
    LookAgain,
    TimeOut,
    /// Its connection is lost, with all that is on its way.
    Cut,
    /// It learns that.
    Notice,
}

impl Step {
    pub(super) const ALL: [Step; 14] = [
        Step::Evaluate,
        Step::Unlock,
        Step::Begin,
        Step::Register,
        Step::Confirm,
        Step::GoOn,
        Step::Look,
        Step::Compare,
        Step::Deliver,
        Step::Wake,
        Step::LookAgain,
        Step::TimeOut,
        Step::Cut,
        Step::Notice,
    ];
}

impl Waiter {
    pub(super) fn hold(&mut self, value: Value) {
        (self.stage, self.seen) = (Stage::Holds, value);
    }

    /// A server sends it a message of a change, if it watches.
    pub(super) fn send(&mut self, engine: Engine) {
        if self.is_registered {
            self.messages += 1;
            self.is_registered = engine != Engine::Zookeeper;
        }
    }

    /// Whether the server has to begin a watch.
    fn is_unregistered(&self, engine: Engine) -> bool {
        let is_subscribed_anew = engine == Engine::Redis && self.is_watching;
        let is_wanted = self.stage == Stage::Begins || is_subscribed_anew;
        is_wanted && !self.is_registered && !self.is_confirmed && !self.is_cut
    }

    fn has_begun(&mut self, setup: &Setup) {
        let is_unseen = setup.is(Mutant::LooksBeforeItWatches) || setup.is(Mutant::LookLeftOut);
        self.is_watching = true;
        self.stage = if is_unseen {
            Stage::Sleeps
        } else {
            Stage::Looks
        };
        if setup.engine == Engine::Redis {
            // Whatever it was told, it looks now.
            (self.is_told, self.is_told_of_loss) = (false, false);
        }
    }

    fn wake(&mut self, setup: &Setup) {
        let is_changed = std::mem::take(&mut self.is_told);
        let keeps_loss = setup.engine == Engine::Etcd && is_changed;
        self.is_told_of_loss &= keeps_loss;
        (self.stage, self.is_watching) = match setup.engine {
            Engine::Redis => (Stage::Locks, true),
            Engine::Etcd if is_changed => (Stage::Locks, true),
            // Its call fails, and is repeated: it begins anew.
            Engine::Etcd => (Stage::Released, false),
            Engine::Zookeeper if !is_changed => (Stage::Looks, false),
            Engine::Zookeeper | Engine::File => (Stage::Locks, setup.is(Mutant::OneShotNotRenewed)),
        };
        if setup.is(Mutant::LockNotTaken) {
            self.stage = Stage::Returned;
        }
    }

    fn cut(&mut self) {
        (self.is_registered, self.is_confirmed, self.messages) = (false, false, 0);
        self.is_cut = true;
    }

    fn notice(&mut self, setup: &Setup) {
        self.is_cut = false;
        self.is_told_of_loss |= self.is_watching && !setup.is(Mutant::LossNotTold);
    }
}

impl World {
    pub(super) fn may_wait(&self, setup: &Setup, at: usize, step: Step) -> bool {
        let (waiter, is_server) = (&self.waiters[at], setup.engine != Engine::File);
        let may_enter = is_server || self.may_change_file(setup);
        match (step, waiter.stage) {
            (Step::Evaluate, Stage::Holds) | (Step::Unlock, Stage::Returned) => {
                self.file_lock.is_none()
            }
            (Step::Begin, Stage::Released) => waiter.is_watching || may_enter,
            (Step::Register, _) => is_server && waiter.is_unregistered(setup.engine),
            (Step::Confirm, _) => waiter.is_confirmed,
            (Step::GoOn, Stage::Begins) => setup.engine == Engine::Redis,
            (Step::Look, Stage::Looks) | (Step::Compare, Stage::Looked(_)) => true,
            (Step::Deliver, _) => waiter.messages > 0,
            (Step::Wake, Stage::Sleeps) => waiter.is_told || waiter.is_told_of_loss,
            (Step::LookAgain, Stage::Sleeps) => self.kills > 0 && !setup.is(Mutant::NoLookByItself),
            (Step::TimeOut, stage) => {
                let waits = !matches!(
                    stage,
                    Stage::Locks | Stage::Holds | Stage::Returned | Stage::Done
                );
                waits && self.timeouts < setup.timeouts
            }
            (Step::Cut, stage) => {
                let is_used = stage == Stage::Begins || waiter.is_watching;
                is_server && is_used && !waiter.is_cut && self.losses < setup.losses
            }
            (Step::Notice, _) => waiter.is_cut,
            _ => false,
        }
    }

    fn may_change_file(&self, setup: &Setup) -> bool {
        self.file_lock.is_none() || setup.is(Mutant::ListEnteredUnlocked)
    }

    pub(super) fn wait(&mut self, setup: &Setup, at: usize, step: Step) {
        let value = self.value;
        let waiter = &mut self.waiters[at];
        match step {
            Step::Evaluate => self.evaluate(setup, at),
            Step::Unlock => (waiter.stage, self.lock) = (Stage::Done, None),
            Step::Begin if waiter.is_watching => waiter.stage = Stage::Sleeps,
            Step::Begin if setup.is(Mutant::LooksBeforeItWatches) => waiter.stage = Stage::Looks,
            Step::Begin => self.begin(setup, at),
            Step::Register => (waiter.is_registered, waiter.is_confirmed) = (true, true),
            Step::Confirm => {
                waiter.is_confirmed = false;
                if waiter.stage == Stage::Begins {
                    waiter.has_begun(setup);
                } else if setup.engine == Engine::Redis && !setup.is(Mutant::ReconnectNotTold) {
                    waiter.is_told = true;
                }
            }
            Step::GoOn => waiter.has_begun(setup),
            Step::Look => waiter.stage = Stage::Looked(value),
            Step::Compare if waiter.stage != Stage::Looked(waiter.seen) => {
                waiter.stage = Stage::Locks;
            }
            Step::Compare if setup.is(Mutant::LooksBeforeItWatches) => self.begin(setup, at),
            Step::Compare => waiter.stage = Stage::Released,
            Step::Deliver => {
                waiter.messages -= 1;
                waiter.is_told = true;
            }
            Step::Wake => waiter.wake(setup),
            Step::LookAgain => (waiter.stage, waiter.is_watching) = (Stage::Looks, false),
            Step::TimeOut => {
                (waiter.stage, waiter.is_timed_out) = (Stage::Locks, true);
                self.timeouts += 1;
            }
            Step::Cut => {
                waiter.cut();
                self.losses += 1;
            }
            Step::Notice => waiter.notice(setup),
        }
    }

    /// Its watch ends with its call.
    fn evaluate(&mut self, setup: &Setup, at: usize) {
        let waiter = &mut self.waiters[at];
        let returns = waiter.seen == setup.goals[at] || waiter.is_timed_out;
        if returns || setup.is(Mutant::ConditionNotEvaluated) {
            *waiter = Waiter {
                stage: Stage::Returned,
                seen: waiter.seen,
                is_timed_out: waiter.is_timed_out,
                ..Waiter::default()
            };
        } else {
            waiter.stage = Stage::Released;
            self.lock = None;
        }
    }

    fn begin(&mut self, setup: &Setup, at: usize) {
        let waiter = &mut self.waiters[at];
        if setup.engine == Engine::File {
            waiter.is_registered = true;
            waiter.has_begun(setup);
            return;
        }
        // What was told to a watch before isn't told to this one.
        *waiter = Waiter {
            stage: Stage::Begins,
            seen: waiter.seen,
            is_cut: waiter.is_cut,
            ..Waiter::default()
        };
    }
}
