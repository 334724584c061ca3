use super::*;
use crate::base::random::{Random, for_cases};
use std::collections::HashSet;
use std::time::Duration;

const NAMES: [&str; 3] = ["a", "b", "c"];

#[derive(Clone, Copy, Debug)]
enum Step {
    Enter(usize),
    /// The first waiter of a channel leaves.
    Leave(usize),
    Pass(u64),
    /// The reader of the connection sends what changed.
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
        2 => Step::Pass(random.u64(..12)),
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
    channels: Channels<()>,
    now: Instant,
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
            channels: Channels::default(),
            now: Instant::now(),
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
                self.channels
                    .add_waiter(&NAMES[at].into(), owner.clone(), ());
                self.waiters.push((at, owner));
            }
            Step::Leave(at) => self.leave(at),
            Step::Pass(seconds) => self.now += Duration::from_secs(seconds),
            Step::Send => self.send(),
            Step::Server => self.serve(),
            Step::Receive => self.receive(),
            Step::Lose => {
                self.commands.clear();
                self.replies.clear();
                self.subscribed.clear();
                self.channels.unsubscribe_all(|(), _| {});
            }
            Step::Move(at) => self.slot_moves(&NAMES[at].into()),
        }
    }

    fn receive(&mut self) {
        match self.replies.pop_front() {
            Some(Reply::Confirmed(name)) => self.channels.confirm(&name),
            Some(Reply::Refused(name)) => self.channels.refuse(&name).for_each(drop),
            Some(Reply::Ended(name)) => self.channels.end(&name).for_each(drop),
            None => {}
        }
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
            self.channels
                .remove_waiter(&NAMES[at].into(), &owner, self.now);
        }
    }

    fn send(&mut self) {
        let changes = self.channels.changes(self.now);
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
            .filter(|name| self.channels.is_subscribed(name))
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
            .filter(|(at, _)| self.channels.is_gone(NAMES[*at]));
        let gone: Vec<_> = gone.cloned().collect();
        for (at, owner) in gone {
            self.channels
                .remove_waiter(&NAMES[at].into(), &owner, self.now);
            self.channels.add_waiter(&NAMES[at].into(), owner, ());
        }
        self.settle();
    }

    fn settle(&mut self) {
        self.send();
        while !(self.commands.is_empty() && self.replies.is_empty()) {
            self.serve();
            self.take(Step::Receive, 0);
        }
    }
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
        world.settle();
        for (at, _) in &world.waiters {
            let (name, channels) = (NAMES[*at], &world.channels);
            // That of a slot that came back is wanted by a waiter that comes anew.
            let is_known = channels.is_subscribed(name) || channels.is_gone(name);
            assert!(is_known, "{name} is waited for");
        }
        world.come_anew();
        for (at, _) in &world.waiters {
            let is_here = !world.elsewhere.contains(NAMES[*at]);
            assert_eq!(world.channels.is_subscribed(NAMES[*at]), is_here);
            assert_eq!(world.channels.is_gone(NAMES[*at]), !is_here);
        }
        for _ in 0..3 {
            world.now += 2 * CHANNEL_UNUSED;
            world.settle();
        }
        let waited = world.waiters.iter().map(|(at, _)| NAMES[*at].into());
        let mut waited: HashSet<Arc<str>> = waited.collect();
        assert_eq!(world.channels.all.len(), waited.len());
        waited.retain(|name| !world.elsewhere.contains(name));
        assert_eq!(world.subscribed, waited);
        assert!(world.channels.unused.is_empty());
    });
}

#[test]
fn channels_that_were_used_once_take_no_room() {
    let (mut channels, mut now) = (Channels::default(), Instant::now());
    for namespace in 0..50_000 {
        let name: Arc<str> = namespace.to_string().into();
        channels.add_waiter(&name, String::new(), ());
        let changes = channels.changes(now);
        changes
            .subscribe
            .iter()
            .for_each(|name| channels.confirm(name));
        channels.remove_waiter(&name, "", now);
        now += CHANNEL_UNUSED / 100;
    }
    assert!(channels.all.len() < 200, "{}", channels.all.len());
    now += CHANNEL_UNUSED;
    let unused = channels.changes(now).unsubscribe;
    assert!(!unused.is_empty() && channels.is_empty());
    let room = channels.all.capacity() + channels.unused.capacity() + channels.wanted.capacity();
    assert!(room < 500, "{room}");
}
