//! What happens to the model's servers happens to a real one, too, and the two are compared: each answer, each key and
//! how long it lasts, and what is published.
//!
//! The scripts are those of `lua/`, as they are. A tick is far longer than a sequence takes, so that nothing ends by
//! itself; where the model's time passes, all deadlines of the real server are moved.

mod keys;
mod real;
mod words;

use std::collections::VecDeque;
use std::fmt::Write as _;

use crosslock_protocol::server::{
    Answer, Call, Ear, Event, Lock, Messages, Name, Names, Says, Server, Ticks, Token, run,
};

use self::keys::Seen;
use self::real::Real;
use crate::place::Place;

/// How many of the last events are told of when something differs.
const TOLD: usize = 15;

/// A model and a real server, to which the same happens.
pub(crate) struct Replayer {
    real: Real,
    names: Vec<Name>,
    /// What a replica has: nothing at first.
    copies: Vec<Name>,
    /// The real server's clock when it was looked at last, in microseconds.
    now: Token,
    events: VecDeque<(Event, Option<Answer>)>,
}

/// What became of a call, the same in the model and on the real server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    /// All names, afterwards.
    pub(crate) names: Vec<Name>,
    pub(crate) answer: Answer,
    pub(crate) messages: Messages,
}

impl Replayer {
    /// A server that knows nothing of these names, and a connection for each inbox.
    pub(crate) fn start(server: Place, names: usize, inboxes: usize) -> Self {
        let mut replayer = Replayer {
            real: Real::start(server, names, inboxes),
            names: vec![Name::default(); names],
            copies: vec![Name::default(); names],
            now: 0,
            events: VecDeque::new(),
        };
        replayer.start_anew();
        replayer
    }

    /// The same, on the server that runs already.
    pub(crate) fn start_anew(&mut self) {
        for inbox in 0..self.ears().len() {
            let inbox = inbox.try_into().expect("a few inboxes");
            self.real.hear(inbox, Ear::Hears);
        }
        self.real.flush();
        self.names.fill(Name::default());
        self.copies.fill(Name::default());
        self.now = self.real.look().micros;
        self.events.clear();
    }

    pub(crate) fn names(&self) -> &[Name] {
        &self.names
    }

    pub(crate) fn ears(&self) -> &[Ear] {
        &self.real.ears
    }

    /// Waits until the server's clock is past this.
    pub(crate) fn wait_for_clock(&mut self, micros: Token) {
        while self.now <= micros {
            self.now = self.real.look().micros;
        }
    }

    /// Lets it happen to both.
    ///
    /// # Panics
    ///
    /// If they differ afterwards.
    pub(crate) fn step(&mut self, event: Event) {
        let done = self.try_step(event);
        done.unwrap_or_else(|difference| panic!("{difference}"));
    }

    /// The same; says what differs.
    pub(crate) fn try_step(&mut self, event: Event) -> Result<(), String> {
        self.suffer(event);
        self.note(event, None);
        let seen = self.real.look();
        self.now = seen.micros;
        if seen.names != self.names {
            return Err(self.differs(event, "nothing", "nothing", &self.names, &seen.names));
        }
        Ok(())
    }

    /// Runs the script, then the model with each moment at which it may have run.
    pub(crate) fn try_call(&mut self, names: Names, call: Call) -> Result<Outcome, String> {
        let event = Event::Call { names, call };
        let heard = self.real.run(names, call);
        let before = std::mem::replace(&mut self.now, heard.seen.micros);
        let mut nows = moments(before, &heard.seen);
        let outcome = nows.find_map(|now| {
            let outcome = self.model(names, call, now);
            let agrees = outcome.names == heard.seen.names
                && outcome.answer == heard.answer
                && outcome.messages == heard.messages;
            agrees.then_some(outcome)
        });
        self.note(event, Some(heard.answer));
        match outcome {
            Some(outcome) => {
                self.names.clone_from(&outcome.names);
                Ok(outcome)
            }
            None => {
                let outcome = self.model(names, call, self.now);
                let model = format!("{:?} {:?}", outcome.answer, outcome.messages);
                let server = format!("{:?} {:?}", heard.answer, heard.messages);
                Err(self.differs(event, &model, &server, &outcome.names, &heard.seen.names))
            }
        }
    }

    fn model(&self, which: Names, call: Call, now: Token) -> Outcome {
        let mut names = self.names.clone();
        let mut messages = Messages::new();
        let server = Server {
            now,
            ears: self.ears(),
        };
        let answer = run(which.of(&mut names), call, server, &mut messages);
        Outcome {
            names,
            answer,
            messages,
        }
    }

    /// What nobody asked for.
    fn suffer(&mut self, event: Event) {
        match event {
            Event::Call { .. } => unreachable!("it is asked for"),
            Event::Tick => {
                self.real.tick();
                let all = self.names.iter_mut().chain(&mut self.copies);
                all.for_each(Name::tick);
            }
            Event::Ear(inbox, ear) => self.real.hear(inbox, ear),
            Event::Forget => {
                self.real.forget();
                self.names.fill(Name::default());
            }
            Event::Copy => {
                self.real.copy();
                self.copies.clone_from(&self.names);
            }
            Event::FailOver => {
                self.real.fail_over();
                self.names.clone_from(&self.copies);
            }
            Event::Delete(name, key) => {
                self.real.delete(name, key);
                self.names[usize::from(name)].delete(key);
            }
            Event::Foreign(name, ttl) => self.lock_foreign(name, ttl),
        }
    }

    fn lock_foreign(&mut self, name: u8, lasts: Option<Ticks>) {
        self.real.lock_foreign(name, lasts);
        self.names[usize::from(name)].lock.get_or_insert(Lock {
            says: Says::Foreign,
            lasts,
        });
    }

    fn note(&mut self, event: Event, answer: Option<Answer>) {
        if self.events.len() == TOLD {
            self.events.pop_front();
        }
        self.events.push_back((event, answer));
    }

    fn differs(
        &self,
        event: Event,
        model: &str,
        server: &str,
        model_names: &[Name],
        server_names: &[Name],
    ) -> String {
        let mut text = format!("model and server differ after {event:?}\n");
        text += &format!("the model answers  {model}\nthe server answers {server}\n");
        let pairs = self.names.iter().zip(model_names).zip(server_names);
        for (at, ((before, model), server)) in pairs.enumerate() {
            let _ = writeln!(text, "name {at} before:       {before:?}");
            let _ = writeln!(text, "       in the model:  {model:?}");
            let _ = writeln!(text, "       on the server: {server:?}");
        }
        text + &self.history()
    }

    /// Says that what both agree about breaks a rule.
    pub(crate) fn breaks(&self, rule: &str, before: &[Name]) -> String {
        let mut text = format!("model and server agree, but: {rule}\n");
        for (at, (before, after)) in before.iter().zip(&self.names).enumerate() {
            let _ = writeln!(text, "name {at} before: {before:?}");
            let _ = writeln!(text, "       after:  {after:?}");
        }
        text + &self.history()
    }

    fn history(&self) -> String {
        let mut text = format!("heard: {:?}; the last events:\n", self.ears());
        for (event, answer) in &self.events {
            let _ = writeln!(text, "  {event:?} -> {answer:?}");
        }
        text
    }
}

/// When a script may have run, those moments first that are likely: it counted the number that is seen, or one soon
/// before that.
fn moments(before: Token, seen: &Seen) -> impl Iterator<Item = Token> {
    const NEXT: [Token; 6] = [0, 1, 4, 8, 12, 16];
    let after = seen.micros.max(before);
    let mut likely = Vec::new();
    for counter in seen.names.iter().filter_map(|name| name.counter) {
        for back in NEXT {
            let now = (counter.number - back).clamp(before, after);
            if !likely.contains(&now) {
                likely.push(now);
            }
        }
    }
    likely.into_iter().chain(before..=after)
}
