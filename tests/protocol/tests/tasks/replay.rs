//! Random sequences of calls, by the rules and by the scripts: all answers are the same, and so is who was told what.

use std::collections::HashMap;
use std::time::Duration;

use crosslock_protocol::place::Place;
use crosslock_protocol::random::play_random;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use redis::Value;

use super::real::{Real, SECOND, START};
use super::steps::{Step, step};
use super::tasks::{Asked, Micros, Tasks, Waits};
use crate::base::task::{
    Due, IfExists, NewTask, Policy, TaskAnswer, TaskCall, TaskEnd, TaskRecord, TaskState,
};

const TTL: Micros = 3 * SECOND;
const PAYLOAD: &str = "{\"a\": 1}";

/// Both, and what they gave to whom.
struct Both<'a> {
    real: &'a mut Real,
    rules: Tasks,
    now: Micros,
    tokens: HashMap<u8, u64>,
}

fn owner_of(number: u8) -> String {
    format!("{number:08x}-0000-4000-8000-000000000000/host/1/1")
}

fn end_of(how: u8) -> Option<TaskEnd<'static>> {
    match how {
        0 | 1 => Some(TaskEnd::Done),
        2 => Some(TaskEnd::RetryIn(Duration::from_secs(2), "no")),
        3 => Some(TaskEnd::Retry("é")),
        4 => Some(TaskEnd::Bury("why")),
        _ => None,
    }
}

fn compare_task(token: u64, record: TaskRecord, theirs: &Value) -> Result<(), TestCaseError> {
    let Value::Array(theirs) = theirs else {
        return Err(TestCaseError::fail(format!("{theirs:?}")));
    };
    prop_assert_eq!(&theirs[0], &Value::Int(token.try_into().unwrap()));
    prop_assert_eq!(theirs.get(1).and_then(record_of), Some(record));
    Ok(())
}

fn record_of(value: &Value) -> Option<TaskRecord> {
    match value {
        Value::BulkString(bytes) => TaskRecord::parse(bytes),
        _ => None,
    }
}

impl Both<'_> {
    fn apply(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match step {
            Step::Pass(time) => {
                self.now += time;
                self.real.set_clock(self.now);
            }
            Step::Ask { owner, waits } => self.ask(*owner, *waits)?,
            Step::Renew { owner, looks } => self.renew(*owner, *looks)?,
            Step::End { owner, how } => self.end(*owner, *how)?,
            Step::Next { owner, how } => self.next(*owner, *how)?,
            Step::TakeBack { owner } => {
                let text = owner_of(*owner);
                let ours = self.rules.take_back(&text, self.now);
                let theirs = self.real.run("task/finish", &[&text, "0", "t"]);
                prop_assert_eq!(Value::Int(if ours { 1 } else { 2 }), theirs);
            }
            Step::Insert {
                ids,
                wait,
                if_exists,
                nonce,
                tries,
            } => self.insert(ids, *wait, *if_exists, *nonce, *tries)?,
            Step::Reset { id, wait } => {
                let due = format!("+{wait}");
                let call = |id| TaskCall::Reset(id, Due::After(Duration::from_micros(*wait)));
                self.change(*id, call, "reset", Some(&due))?;
            }
            Step::Remove(id) => self.change(*id, TaskCall::Remove, "remove", None)?,
            Step::Kick(id) => self.change(*id, TaskCall::Kick, "kick", None)?,
            Step::Look => self.look()?,
        }
        self.compare_lines()
    }

    fn renew(&mut self, owner: u8, looks: bool) -> Result<(), TestCaseError> {
        let (text, token) = (owner_of(owner), self.tokens.get(&owner).copied());
        let ttl = (!looks).then_some(TTL);
        let ours = self.rules.renew(&text, ttl, token, self.now);
        let millis = ttl.map_or(0, |ttl| ttl / 1_000).to_string();
        let token = token.map(|token| token.to_string());
        let mut arguments = vec![&*text, &*millis, "t", ""];
        arguments.extend(token.as_deref());
        let theirs = self.real.run("task/renew", &arguments);
        prop_assert_eq!(Value::Int(ours.into()), theirs);
        Ok(())
    }

    fn end(&mut self, owner: u8, how: u8) -> Result<(), TestCaseError> {
        let token = self.tokens.get(&owner).copied();
        let (text, end) = (owner_of(owner), end_of(how));
        let ours = self.rules.end(&text, end, token.or(Some(1)), self.now);
        let counter = (token.unwrap_or(1) + 1).to_string();
        let how = end.map(|end| String::from_utf8(end.to_bytes()).unwrap());
        let arguments = [&*text, &*counter, "t", how.as_deref().unwrap_or_default()];
        let theirs = self.real.run("task/finish", &arguments);
        prop_assert_eq!(Value::Int(if ours { 1 } else { 2 }), theirs);
        Ok(())
    }

    /// The other owner is one that no other step has.
    fn next(&mut self, owner: u8, how: u8) -> Result<(), TestCaseError> {
        const NEXT: u8 = 9;
        let token = self.tokens.get(&owner).copied();
        let (text, next, end) = (owner_of(owner), owner_of(NEXT), end_of(how));
        let ended = self.rules.end(&text, end, token.or(Some(1)), self.now);
        let asked = ended.then(|| self.rules.ask(&next, TTL, Waits::Not, self.now));
        let counter = (token.unwrap_or(1) + 1).to_string();
        let how = end.map(|end| String::from_utf8(end.to_bytes()).unwrap());
        let (how, ttl) = (
            how.as_deref().unwrap_or_default(),
            (TTL / 1_000).to_string(),
        );
        let theirs = self
            .real
            .run("task/next", &[&text, &counter, "t", how, &next, &ttl]);
        match (asked, theirs) {
            (Some(Asked::Task { token, record }), Value::Array(theirs)) => {
                let token = Value::Int(token.number.try_into().unwrap());
                prop_assert_eq!(&theirs[..2], &[Value::Int(1), token]);
                prop_assert_eq!(record_of(&theirs[2]), Some(record));
                // It is given back, so that another step may have it.
                prop_assert!(self.rules.take_back(&next, self.now));
                let theirs = self.real.run("task/finish", &[&next, "0", "t"]);
                prop_assert_eq!(Value::Int(1), theirs);
            }
            (_, theirs) => {
                let ours = Value::Int(if ended { 1 } else { 2 });
                prop_assert_eq!(Value::Array(vec![ours]), theirs);
            }
        }
        Ok(())
    }

    fn ask(&mut self, owner: u8, waits: bool) -> Result<(), TestCaseError> {
        let (text, ttl) = (owner_of(owner), (TTL / 1_000).to_string());
        let within = 2_000;
        // The script counts whole milliseconds.
        let overdue = (self.now / 1_000 + within) * 1_000;
        let (ours, within) = match waits {
            true => (Waits::Until(Some(overdue)), Some(within.to_string())),
            false => (Waits::Not, None),
        };
        let ours = self.rules.ask(&text, TTL, ours, self.now);
        let mut arguments = vec![&*text, &*ttl, "t"];
        if let Some(within) = &within {
            arguments.extend([&**within, ""]);
        }
        let theirs = self.real.run("task/take", &arguments);
        let ours = match ours {
            Asked::Task { token, record } => {
                self.tokens.insert(owner, token.number);
                return compare_task(token.number, record, &theirs);
            }
            Asked::Empty {
                was_queued,
                place,
                next,
            } => {
                let remaining = next.map_or(-1, |next| {
                    i64::try_from(next.saturating_sub(self.now)).unwrap()
                });
                let place = i64::try_from(place).unwrap();
                vec![remaining, 0, was_queued.into(), 1, place]
                    .into_iter()
                    .map(Value::Int)
                    .collect()
            }
        };
        prop_assert_eq!(Value::Array(ours), theirs);
        Ok(())
    }

    fn insert(
        &mut self,
        ids: &[u8],
        wait: Micros,
        if_exists: IfExists,
        nonce: Option<u8>,
        tries: u32,
    ) -> Result<(), TestCaseError> {
        let policy = Policy {
            tries,
            base: Duration::from_millis(700),
            cap: Duration::from_secs(2),
            remember: Duration::from_secs(u64::from(nonce.is_some()) * 2),
        };
        let ids: Vec<_> = ids.iter().map(|id| format!("id{id}")).collect();
        let nonce = nonce.map(|nonce| format!("n{nonce}"));
        let nonce = nonce.as_deref();
        let task = |id| NewTask {
            id,
            payload: PAYLOAD.as_bytes(),
            due: Due::After(Duration::from_micros(wait)),
            policy,
            if_exists,
        };
        let tasks: Vec<_> = ids.iter().map(|id| task(id)).collect();
        let tasks = &tasks;
        let ours = self
            .rules
            .call(TaskCall::Insert { tasks, nonce }, self.now, 0);
        let mark = match if_exists {
            IfExists::Reset => "r",
            IfExists::Replace => "p",
            _ => "k",
        };
        let remember = policy.remember.as_millis().to_string();
        let (due, tries) = (format!("+{wait}"), tries.to_string());
        let of_task = |id| [id, mark, &due, &tries, "700", "2000", &remember, PAYLOAD];
        let mut arguments = vec![nonce.unwrap_or("-")];
        arguments.extend(ids.iter().flat_map(|id| of_task(id)));
        let theirs = self.real.run("task/insert", &arguments);
        let TaskAnswer::Changed(ours) = ours else {
            unreachable!("it inserts")
        };
        let digit = |changed: bool| if changed { b'1' } else { b'0' };
        let ours = ours.into_iter().map(digit).collect();
        prop_assert_eq!(Value::BulkString(ours), theirs);
        Ok(())
    }

    fn change<'i>(
        &mut self,
        id: u8,
        call: impl FnOnce(&'static str) -> TaskCall<'i>,
        verb: &str,
        due: Option<&str>,
    ) -> Result<(), TestCaseError> {
        const IDS: [&str; 4] = ["id0", "id1", "id2", "id3"];
        let id = IDS[usize::from(id)];
        let ours = self.rules.call(call(id), self.now, 0);
        let mut arguments = vec![verb, id];
        arguments.extend(due);
        let theirs = self.real.run("task/change", &arguments);
        let is_changed = ours == TaskAnswer::Changed(vec![true]);
        prop_assert_eq!(Value::Int(is_changed.into()), theirs);
        Ok(())
    }

    fn look(&mut self) -> Result<(), TestCaseError> {
        let TaskAnswer::Counts(ours) = self.rules.call(TaskCall::Counts, self.now, 0) else {
            unreachable!("it counts")
        };
        let counts = [ours.delayed, ours.ready, ours.running, ours.buried];
        let counts = counts.map(|count| Value::Int(count.try_into().unwrap()));
        prop_assert_eq!(
            Value::Array(counts.to_vec()),
            self.real.run("task/look", &["counts"])
        );
        let mut looks = Vec::new();
        for id in ["id0", "id1", "id2", "id3"] {
            looks.push((TaskCall::Get(id), ["get", id]));
        }
        for state in [
            TaskState::Delayed,
            TaskState::Ready,
            TaskState::Running,
            TaskState::Buried,
        ] {
            looks.push((TaskCall::List(state, 2), [state.mark(), "2"]));
            looks.push((TaskCall::List(state, 0), [state.mark(), "0"]));
        }
        for (call, arguments) in looks {
            let TaskAnswer::Tasks(ours) = self.rules.call(call, self.now, 0) else {
                unreachable!("it looks")
            };
            let Value::Array(theirs) = self.real.run("task/look", &arguments) else {
                return Err(TestCaseError::fail("it shows no tasks"));
            };
            let theirs: Option<Vec<_>> = theirs.iter().map(record_of).collect();
            prop_assert_eq!(Some(ours), theirs, "{:?}", arguments);
        }
        Ok(())
    }

    /// Who waits, in which order, and what each was told last.
    fn compare_lines(&mut self) -> Result<(), TestCaseError> {
        let ours = self.rules.shown_line();
        self.rules.take_called();
        prop_assert_eq!(ours, self.real.line());
        Ok(())
    }
}

#[test]
fn any_sequence_of_calls_is_answered_alike() {
    replay(Place::real(), 1_500, (20_000, 1_000));
}

#[test]
fn any_sequence_of_calls_is_answered_alike_by_the_simulated_server() {
    replay(Place::simulated(), 150, (2_000, 60));
}

/// So many sequences, in which so many steps are done at least, and so many tasks are taken.
fn replay(server: Place, cases: u32, (least, least_taken): (usize, usize)) {
    let (mut real, mut taken) = (Real::start(server), 0);
    let sequences = proptest::collection::vec(step(), 1..40);
    play_random((cases, least), sequences, |steps| {
        real.begin();
        let mut both = Both {
            real: &mut real,
            rules: Tasks::default(),
            now: START,
            tokens: HashMap::new(),
        };
        for step in &steps {
            let agree = both.apply(step);
            agree.map_err(|difference| difference.to_string())?;
        }
        taken += both.tokens.len();
        Ok(steps.len())
    });
    assert!(taken > least_taken, "only {taken} workers had a task");
}
