//! What happens to the model's servers happens to a real one, too, and the two are compared: each answer, each key and
//! how long it lasts, and what is published.
//!
//! The scripts are those of `lua/`, as they are. A tick is far longer than a sequence takes, so that nothing ends by
//! itself; where the model's time passes, all deadlines of the real server are moved.

mod calls;
mod real;
mod words;

use std::collections::VecDeque;
use std::fmt::Write as _;

use crosslock_protocol::server::{
    Answer, Call, Ear, Lock, Messages, Name, Names, Says, Server, Token, run,
};
use crosslock_protocol::steps::{At, INBOXES, Step};

use self::real::Real;
use self::words::{Seen, lines_of, published};

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
    events: VecDeque<String>,
}

impl Replayer {
    /// A server that knows nothing of these names, and a connection for each inbox.
    pub(crate) fn start(names: usize) -> Self {
        Replayer {
            real: Real::start(names),
            names: vec![Name::default(); names],
            copies: vec![Name::default(); names],
            now: 0,
            events: VecDeque::new(),
        }
    }

    /// The same, on the server that runs already.
    pub(crate) fn start_anew(&mut self) {
        let ears = [Ear::Hears, Ear::Hears, Ear::Gone, Ear::Forbidden];
        for (inbox, ear) in (0..INBOXES).zip(ears) {
            self.real.hear(inbox, ear);
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

    /// Runs the script, then the model with each moment at which it may have run.
    pub(crate) fn call(&mut self, names: Names, call: Call) -> Result<(Answer, Messages), String> {
        let heard = self.real.run(names, call);
        self.note(format!("{names:?} {call:?} -> {:?}", heard.answer));
        let before = std::mem::replace(&mut self.now, heard.seen.micros);
        let agreed = moments(before, &heard.seen).find_map(|now| {
            let (names, answer, messages) = self.model(names, call, now);
            let published = messages.iter().map(published);
            let agrees = answer == heard.answer
                && heard.seen.is_of(&names)
                && published.eq(heard.messages.iter().cloned());
            agrees.then_some((names, messages))
        });
        let Some((names, messages)) = agreed else {
            let (names, answer, messages) = self.model(names, call, self.now);
            let model = format!("{answer:?} {messages:?}");
            let server = format!("{:?} {:?}", heard.answer, heard.messages);
            let text = format!("the model answers  {model}\nthe server answers {server}\n");
            return Err(text + &self.differs(&names, &heard.seen));
        };
        self.names = names;
        Ok((heard.answer, messages))
    }

    /// What there is of all names after a call in the model, what is answered, and what published.
    fn model(&self, which: Names, call: Call, now: Token) -> (Vec<Name>, Answer, Messages) {
        let (mut names, ears) = (self.names.clone(), self.real.ears.clone());
        let messages = Messages::new();
        let mut server = Server {
            now,
            ears,
            messages,
        };
        let answer = run(which.of(&mut names), call, &mut server);
        (names, answer, server.messages)
    }

    /// Lets happen what nobody asked for.
    pub(crate) fn suffer(&mut self, at: At, step: Step) -> Result<(), String> {
        let before = self.names.clone();
        match step {
            Step::Tick => {
                let all = self.names.iter_mut().chain(&mut self.copies);
                all.for_each(Name::tick);
            }
            Step::Forget => self.names.fill(Name::default()),
            Step::Copy => self.copies.clone_from(&self.names),
            Step::FailOver => self.names.clone_from(&self.copies),
            Step::Delete(key) => self.names[usize::from(at)].delete(key),
            Step::Foreign(lasts) => {
                let says = Says::Foreign;
                let lock = &mut self.names[usize::from(at)].lock;
                lock.get_or_insert(Lock { says, lasts });
            }
            _ => {}
        }
        self.real.suffer(at, step);
        self.note(format!("{at} {step:?}"));
        let seen = self.real.look();
        self.now = seen.micros;
        if seen.is_of(&self.names) {
            return Ok(());
        }
        let after = std::mem::replace(&mut self.names, before);
        Err(self.differs(&after, &seen))
    }

    fn note(&mut self, event: String) {
        self.events.truncate(TOLD - 1);
        self.events.push_front(event);
    }

    fn differs(&self, model: &[Name], server: &Seen) -> String {
        let mut text = "model and server differ\n".to_owned();
        let names = self.names.iter().zip(model).zip(&server.names);
        for (at, ((before, model), server)) in names.enumerate() {
            let _ = writeln!(text, "name {at} before:       {before:?}");
            let _ = writeln!(text, "       in the model:  {:?}", lines_of(model));
            let _ = writeln!(text, "       on the server: {server:?}");
        }
        text + &self.history()
    }

    fn history(&self) -> String {
        let events: Vec<_> = self.events.iter().rev().cloned().collect();
        let (ears, events) = (&self.real.ears, events.join("\n  "));
        format!("heard: {ears:?}; the last events:\n  {events}\n")
    }
}

/// When a script may have run, those moments first that are likely: it counted the number that is seen, or one soon
/// before that.
fn moments(before: Token, seen: &Seen) -> impl Iterator<Item = Token> {
    const NEXT: [Token; 6] = [0, 1, 4, 8, 12, 16];
    let after = seen.micros.max(before);
    let likely = seen
        .counters()
        .flat_map(|counter| NEXT.map(|back| counter - back));
    let mut likely: Vec<_> = likely.map(|now| now.clamp(before, after)).collect();
    likely.dedup();
    likely.into_iter().chain(before..=after)
}
