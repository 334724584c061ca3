use super::*;
use crate::base::random::{Random, for_cases};
use std::collections::{HashSet, VecDeque};

const NAMES: [&str; 3] = ["a", "b", "c"];

#[derive(Clone, Copy, Debug)]
enum Step {
    Enter(usize),
    /// The first waiter of a channel leaves.
    Leave(usize),
    /// The thread sends what changed, and forgets unused channels.
    Sweep,
    /// The thread sends what changed.
    Send,
    Server,
    Receive,
    Lose,
    /// The slot of a channel leaves the server, or comes back to it.
    Move(usize),
}

fn step(random: &mut Random) -> Step {
    match random.u32(..8) {
        0 => Step::Enter(random.usize(..NAMES.len())),
        1 => Step::Leave(random.usize(..NAMES.len())),
        2 => Step::Sweep,
        3 => Step::Send,
        4 => Step::Server,
        5 => Step::Receive,
        6 => Step::Move(random.usize(..NAMES.len())),
        _ => Step::Lose,
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Command {
    Subscribe(Arc<str>),
    Unsubscribe(Arc<str>),
}

/// What a server sends of a channel: replies, and what comes unasked.
#[derive(Clone, Debug, PartialEq)]
enum Reply {
    Confirmed(Arc<str>),
    Refused(Arc<str>),
    Ended(Arc<str>),
}

/// A client, a server, and what is on its way between them.
struct World {
    state: State,
    /// The index of each waiter's channel in `NAMES`, and its owner.
    waiters: Vec<(usize, String)>,
    commands: VecDeque<Command>,
    replies: VecDeque<Reply>,
    subscribed: HashSet<Arc<str>>,
    /// Whose slots aren't at the server.
    elsewhere: HashSet<Arc<str>>,
}

impl World {
    fn new() -> Self {
        World {
            state: State::default(),
            waiters: Vec::new(),
            commands: VecDeque::new(),
            replies: VecDeque::new(),
            subscribed: HashSet::new(),
            elsewhere: HashSet::new(),
        }
    }

    fn take(&mut self, step: Step, number: usize) {
        match step {
            Step::Enter(at) => {
                let owner = number.to_string();
                self.enter(at, owner.clone());
                self.waiters.push((at, owner));
            }
            Step::Leave(at) => self.leave(at),
            Step::Sweep => self.send(true),
            Step::Send => self.send(false),
            Step::Server => self.serve(),
            Step::Receive => self.receive(),
            Step::Lose => {
                self.commands.clear();
                self.replies.clear();
                self.subscribed.clear();
                self.state.disconnect();
            }
            Step::Move(at) => self.slot_moves(&NAMES[at].into()),
        }
    }

    fn enter(&mut self, at: usize, owner: String) {
        let (name, waiter) = (NAMES[at].into(), waiter());
        let before = self.state.progress(NAMES[at]);
        let is_news = self.state.add_waiter(&name, owner, waiter);
        assert_eq!(is_news, before == Progress::Gone);
    }

    fn receive(&mut self) {
        let received = self.replies.pop_front().map(|reply| match reply {
            Reply::Confirmed(name) => subscribed(&name),
            Reply::Refused(name) => Received::Refused {
                channels: vec![name],
            },
            Reply::Ended(name) => Received::Ended {
                channel: name.to_string(),
            },
        });
        received.iter().for_each(|one| _ = self.state.deliver(one));
    }

    fn slot_moves(&mut self, name: &Arc<str>) {
        if self.elsewhere.remove(name) {
            return;
        }
        self.elsewhere.insert(name.clone());
        if self.subscribed.remove(name) {
            self.replies.push_back(Reply::Ended(name.clone()));
        }
    }

    fn leave(&mut self, at: usize) {
        if let Some(first) = self.waiters.iter().position(|(on, _)| *on == at) {
            let (at, owner) = self.waiters.remove(first);
            self.state.remove_waiter(NAMES[at], &owner);
        }
    }

    fn send(&mut self, sweep: bool) {
        let changes = self.state.changes(sweep);
        let ended = changes.unsubscribe.into_iter().map(Command::Unsubscribe);
        let begun = changes.subscribe.into_iter().map(Command::Subscribe);
        self.commands.extend(ended.chain(begun));
    }

    fn serve(&mut self) {
        match self.commands.pop_front() {
            Some(Command::Subscribe(name)) if self.elsewhere.contains(&name) => {
                self.replies.push_back(Reply::Refused(name));
            }
            Some(Command::Subscribe(name)) => {
                self.subscribed.insert(name.clone());
                self.replies.push_back(Reply::Confirmed(name));
            }
            // It is refused, and that says nothing of channels.
            Some(Command::Unsubscribe(name)) if self.elsewhere.contains(&name) => {}
            Some(Command::Unsubscribe(name)) => {
                self.subscribed.remove(&name);
                self.replies.push_back(Reply::Ended(name));
            }
            None => {}
        }
    }

    /// A channel that is taken for subscribed is so at the server, and stays so until the server ends it.
    fn assert_true(&self, step: Step) {
        for name in NAMES
            .iter()
            .filter(|name| self.state.progress(name) == Progress::Confirmed)
        {
            let ends = Command::Unsubscribe((*name).into());
            let has_ended = self.replies.contains(&Reply::Ended((*name).into()));
            let is_subscribed = self.subscribed.contains(*name);
            assert!(is_subscribed || has_ended, "{name} after {step:?}");
            assert!(!self.commands.contains(&ends), "{name} after {step:?}");
        }
    }

    /// The waiters whose channels are gone subscribe again.
    fn come_anew(&mut self) {
        let gone = self
            .waiters
            .iter()
            .filter(|(at, _)| self.state.progress(NAMES[*at]) == Progress::Gone);
        let gone: Vec<_> = gone.cloned().collect();
        for (at, owner) in gone {
            self.state.remove_waiter(NAMES[at], &owner);
            self.enter(at, owner);
        }
        self.settle(false);
    }

    fn settle(&mut self, sweep: bool) {
        self.send(sweep);
        while !(self.commands.is_empty() && self.replies.is_empty()) {
            self.serve();
            self.take(Step::Receive, 0);
        }
    }
}

fn waiter() -> Waiter {
    Waiter {
        hears: Hears::Nothing,
        bell: Arc::default(),
        subscriptions: 1,
    }
}

fn subscribed(channel: &str) -> Received {
    let channel = channel.to_owned();
    Received::Subscribed { channel }
}

#[test]
fn channel_is_taken_for_subscribed_only_while_it_is() {
    for_cases(2_000, |random| {
        let steps = random.list(1..=79, step);
        let mut world = World::new();
        for (number, step) in steps.into_iter().enumerate() {
            world.take(step, number);
            world.assert_true(step);
        }
        world.settle(false);
        for (at, _) in &world.waiters {
            let name = NAMES[*at];
            // That of a slot that came back is wanted by a waiter that comes anew.
            let is_known = [Progress::Confirmed, Progress::Gone];
            let is_known = is_known.contains(&world.state.progress(name));
            assert!(is_known, "{name} is waited for");
        }
        world.come_anew();
        for (at, _) in &world.waiters {
            let is_here = !world.elsewhere.contains(NAMES[*at]);
            let expected = if is_here {
                Progress::Confirmed
            } else {
                Progress::Gone
            };
            assert_eq!(world.state.progress(NAMES[*at]), expected);
        }
        for _ in 0..3 {
            world.settle(true);
        }
        let waited = world.waiters.iter().map(|(at, _)| NAMES[*at].into());
        let mut waited: HashSet<Arc<str>> = waited.collect();
        assert_eq!(world.state.channels.len(), waited.len());
        waited.retain(|name| !world.elsewhere.contains(name));
        assert_eq!(world.subscribed, waited);
        assert!(world.state.wanted.is_empty());
    });
}

#[test]
fn channels_that_were_used_once_take_no_room() {
    let mut state = State::default();
    for namespace in 0..50_000 {
        let name: Arc<str> = namespace.to_string().into();
        state.add_waiter(&name, String::new(), waiter());
        let changes = state.changes(namespace % 100 == 0);
        for name in &changes.subscribe {
            state.deliver(&subscribed(name));
        }
        state.remove_waiter(&name, "");
    }
    assert!(state.channels.len() <= 200, "{}", state.channels.len());
    let unused: Vec<_> = (0..2).map(|_| state.changes(true).unsubscribe).collect();
    assert!(!unused.concat().is_empty() && state.is_empty());
    let room = state.channels.capacity() + state.wanted.capacity();
    assert!(room < 500, "{room}");
}
