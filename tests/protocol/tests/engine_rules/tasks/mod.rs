//! The rules of delay queues beside the scripts of `lua/task/`, on a real server: in random sequences of calls all
//! answers are the same, and so is who was told what.

mod real;
mod steps;

use std::collections::HashMap;
use std::fmt::Debug;
use std::time::Duration;

use crosslock_protocol::random::play_random;
use redis::Value;

use self::real::{Real, SECOND, START};
use self::steps::{Insert, Step, step};
use crate::agree;
use crate::base::task::{
    Due, IfExists, NewTask, Policy, TaskAnswer, TaskCall, TaskEnd, TaskRecord, TaskState,
};
use crate::engine::rules::tasks::{Asked, Micros, Tasks, Waits};

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

/// What a script answers, with records read where it shows any.
#[derive(Debug, PartialEq)]
enum Shown {
    Number(i64),
    Bytes(Vec<u8>),
    Record(TaskRecord),
    List(Vec<Shown>),
}

impl From<Value> for Shown {
    fn from(value: Value) -> Self {
        match value {
            Value::Int(number) => Shown::Number(number),
            Value::BulkString(bytes) => match TaskRecord::parse(&bytes) {
                Some(record) => Shown::Record(record),
                None => Shown::Bytes(bytes),
            },
            Value::Array(all) => Shown::List(all.into_iter().map(Shown::from).collect()),
            other => panic!("no script answers {other:?}"),
        }
    }
}

fn number(number: impl TryInto<i64, Error: Debug>) -> Shown {
    Shown::Number(number.try_into().expect("a small number"))
}

fn ended(is_ours: bool) -> Shown {
    number(if is_ours { 1 } else { 2 })
}

fn task(token: u64, record: TaskRecord) -> Vec<Shown> {
    vec![number(token), Shown::Record(record)]
}

impl Both<'_> {
    fn apply(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Pass(time) => {
                self.now += time;
                self.real.set_clock(self.now);
            }
            Step::Ask { owner, waits } => self.ask(*owner, *waits)?,
            Step::Renew { owner, looks } => self.renew(*owner, *looks)?,
            Step::End { owner, how } => self.end(*owner, *how)?,
            Step::Next { owner, how } => self.next(*owner, *how)?,
            Step::TakeBack { owner } => self.take_back(&owner_of(*owner))?,
            Step::Insert(insert) => self.insert(insert)?,
            Step::Reset { id, wait } => {
                let due = format!("+{wait}");
                let call = |id| TaskCall::Reset(id, Due::After(Duration::from_micros(*wait)));
                self.change(*id, call, "reset", Some(&due))?;
            }
            Step::Remove(id) => self.change(*id, TaskCall::Remove, "remove", None)?,
            Step::Kick(id) => self.change(*id, TaskCall::Kick, "kick", None)?,
            Step::Look => self.look()?,
        }
        // Who waits, in which order, and what each was told last.
        let ours = self.rules.shown_line();
        self.rules.take_called();
        agree("who waits", self.real.line(), ours)
    }

    /// Runs the script, which is to answer as the rules do.
    fn agree(&mut self, script: &str, arguments: &[&str], ours: Shown) -> Result<(), String> {
        let theirs = Shown::from(self.real.run(script, arguments));
        agree(&format!("{script} {arguments:?}"), theirs, ours)
    }

    fn take_back(&mut self, owner: &str) -> Result<(), String> {
        let ours = ended(self.rules.take_back(owner, self.now));
        self.agree("task/finish", &[owner, "0", "t"], ours)
    }

    fn renew(&mut self, owner: u8, looks: bool) -> Result<(), String> {
        let (text, token) = (owner_of(owner), self.tokens.get(&owner).copied());
        let ttl = (!looks).then_some(TTL);
        let ours = self.rules.renew(&text, ttl, token, self.now);
        let millis = ttl.map_or(0, |ttl| ttl / 1_000).to_string();
        let token = token.map(|token| token.to_string());
        let mut arguments = vec![&*text, &*millis, "t", ""];
        arguments.extend(token.as_deref());
        self.agree("task/renew", &arguments, number(i64::from(ours)))
    }

    /// Ends the task of an owner by the rules. Gives the arguments of the scripts that do so.
    fn ends(&mut self, owner: u8, how: u8) -> (bool, [String; 4]) {
        let token = self.tokens.get(&owner).copied().unwrap_or(1);
        let (text, end) = (owner_of(owner), end_of(how));
        let ended = self.rules.end(&text, end, Some(token), self.now);
        let how = end.map(|end| String::from_utf8(end.to_bytes()).expect("text"));
        let how = how.unwrap_or_default();
        (ended, [text, (token + 1).to_string(), "t".to_owned(), how])
    }

    fn end(&mut self, owner: u8, how: u8) -> Result<(), String> {
        let (is_ours, arguments) = self.ends(owner, how);
        let arguments = arguments.each_ref().map(|argument| &**argument);
        self.agree("task/finish", &arguments, ended(is_ours))
    }

    /// The other owner is one that no other step has. It gives its task back, so that another step may have it.
    fn next(&mut self, owner: u8, how: u8) -> Result<(), String> {
        let (next, ttl) = (owner_of(9), (TTL / 1_000).to_string());
        let (is_ours, arguments) = self.ends(owner, how);
        let asked = is_ours.then(|| self.rules.ask(&next, TTL, Waits::Not, self.now));
        let mut ours = vec![ended(is_ours)];
        let mut is_taken = false;
        if let Some(Asked::Task { token, record }) = asked {
            ours.extend(task(token.number, record));
            is_taken = true;
        }
        let arguments = arguments.iter().chain([&next, &ttl]);
        let arguments: Vec<_> = arguments.map(|argument| &**argument).collect();
        self.agree("task/next", &arguments, Shown::List(ours))?;
        if is_taken {
            self.take_back(&next)?;
        }
        Ok(())
    }

    fn ask(&mut self, owner: u8, waits: bool) -> Result<(), String> {
        let (text, ttl) = (owner_of(owner), (TTL / 1_000).to_string());
        let mut arguments = vec![&*text, &*ttl, "t"];
        let mut how = Waits::Not;
        if waits {
            // The script counts whole milliseconds.
            how = Waits::Until(Some((self.now / 1_000 + 2_000) * 1_000));
            arguments.extend(["2000", ""]);
        }
        let ours = match self.rules.ask(&text, TTL, how, self.now) {
            Asked::Task { token, record } => {
                self.tokens.insert(owner, token.number);
                task(token.number, record)
            }
            Asked::Empty {
                was_queued,
                place,
                next,
            } => {
                let left = next.map_or(number(-1), |next| number(next.saturating_sub(self.now)));
                let was_queued = number(i64::from(was_queued));
                vec![left, number(0), was_queued, number(1), number(place)]
            }
        };
        self.agree("task/take", &arguments, Shown::List(ours))
    }

    fn insert(&mut self, insert: &Insert) -> Result<(), String> {
        let (wait, if_exists) = (insert.wait, insert.if_exists);
        let policy = Policy {
            tries: insert.tries,
            base: Duration::from_millis(700),
            cap: Duration::from_secs(2),
            remember: Duration::from_secs(u64::from(insert.nonce.is_some()) * 2),
        };
        let ids: Vec<_> = insert.ids.iter().map(|id| format!("id{id}")).collect();
        let nonce = insert.nonce.map(|nonce| format!("n{nonce}"));
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
        let (due, tries) = (format!("+{wait}"), policy.tries.to_string());
        let of_task = |id| [id, mark, &due, &tries, "700", "2000", &remember, PAYLOAD];
        let mut arguments = vec![nonce.unwrap_or("-")];
        arguments.extend(ids.iter().flat_map(|id| of_task(id)));
        let TaskAnswer::Changed(ours) = ours else {
            unreachable!("it inserts")
        };
        let digit = |changed: bool| if changed { b'1' } else { b'0' };
        let ours = ours.into_iter().map(digit).collect();
        self.agree("task/insert", &arguments, Shown::Bytes(ours))
    }

    fn change<'i>(
        &mut self,
        id: u8,
        call: impl FnOnce(&'static str) -> TaskCall<'i>,
        verb: &str,
        due: Option<&str>,
    ) -> Result<(), String> {
        const IDS: [&str; 4] = ["id0", "id1", "id2", "id3"];
        let id = IDS[usize::from(id)];
        let ours = self.rules.call(call(id), self.now, 0);
        let mut arguments = vec![verb, id];
        arguments.extend(due);
        let is_changed = ours == TaskAnswer::Changed(vec![true]);
        self.agree("task/change", &arguments, number(i64::from(is_changed)))
    }

    fn look(&mut self) -> Result<(), String> {
        let ids = ["id0", "id1", "id2", "id3"];
        let mut looks = vec![(TaskCall::Counts, vec!["counts"])];
        looks.extend(ids.map(|id| (TaskCall::Get(id), vec!["get", id])));
        for state in [
            TaskState::Delayed,
            TaskState::Ready,
            TaskState::Running,
            TaskState::Buried,
        ] {
            looks.push((TaskCall::List(state, 2), vec![state.mark(), "2"]));
            looks.push((TaskCall::List(state, 0), vec![state.mark(), "0"]));
        }
        for (call, arguments) in looks {
            let ours = match self.rules.call(call, self.now, 0) {
                TaskAnswer::Tasks(all) => all.into_iter().map(Shown::Record).collect(),
                TaskAnswer::Counts(all) => {
                    let counts = [all.delayed, all.ready, all.running, all.buried];
                    counts.map(number).into()
                }
                TaskAnswer::Changed(_) => unreachable!("it looks"),
            };
            self.agree("task/look", &arguments, Shown::List(ours))?;
        }
        Ok(())
    }
}

#[test]
fn any_sequence_of_calls_is_answered_alike() {
    let (mut real, mut taken) = (Real::start(), 0);
    let sequences = proptest::collection::vec(step(), 1..40);
    play_random((1_500, 20_000), sequences, |steps| {
        real.begin();
        let mut both = Both {
            real: &mut real,
            rules: Tasks::default(),
            now: START,
            tokens: HashMap::new(),
        };
        for step in &steps {
            both.apply(step)?;
        }
        taken += both.tokens.len();
        Ok(steps.len())
    });
    assert!(taken > 1_000, "only {taken} workers had a task");
}
