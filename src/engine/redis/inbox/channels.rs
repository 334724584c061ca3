//! The channels of an inbox, and who waits on each: which are wanted, and which are heard.
//!
//! A channel is wanted when its first waiter comes. It is heard when the server has confirmed that, and from then on
//! for as long as it has waiters: only one that has had none for [`UNUSED_FOR`] is given up. It is given up here and
//! at the server in this order, by whoever has the connection, and a waiter that comes after that wants it anew: its
//! SUBSCRIBE follows the UNSUBSCRIBE on the same connection.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A channel without waiters is listened to for so much longer.
pub(super) const UNUSED_FOR: Duration = Duration::from_secs(10);

/// The channels of an inbox, and who waits on each, by owner.
#[derive(Debug)]
pub(super) struct Channels<W> {
    all: HashMap<Arc<str>, Channel<W>>,
    /// Those that the server is to be told of.
    wanted: Vec<Arc<str>>,
    /// Those that had no waiter at some time, each once, and when that is to be looked at.
    unused: VecDeque<(Instant, Arc<str>)>,
}

#[derive(Debug)]
struct Channel<W> {
    subscription: Subscription,
    waiters: HashMap<String, W>,
    unused_since: Option<Instant>,
    is_listed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Subscription {
    Wanted,
    Asked,
    Heard,
}

/// What the server is to be told, in this order.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Changes {
    pub(super) unsubscribe: Vec<Arc<str>>,
    pub(super) subscribe: Vec<Arc<str>>,
}

impl<W> Default for Channels<W> {
    fn default() -> Self {
        Channels {
            all: HashMap::new(),
            wanted: Vec::new(),
            unused: VecDeque::new(),
        }
    }
}

impl<W> Channels<W> {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The name of a channel that is wanted already.
    pub(super) fn known(&self, name: &str) -> Option<Arc<str>> {
        self.all.get_key_value(name).map(|(name, _)| name.clone())
    }

    /// Adds a waiter to a channel, which is wanted from now on.
    pub(super) fn enter(&mut self, name: &Arc<str>, owner: String, waiter: W) {
        if !self.all.contains_key(name) {
            self.all.insert(name.clone(), Channel::wanted());
            self.wanted.push(name.clone());
        }
        if let Some(channel) = self.all.get_mut(name) {
            channel.waiters.insert(owner, waiter);
            channel.unused_since = None;
        }
    }

    pub(super) fn leave(&mut self, name: &Arc<str>, owner: &str, now: Instant) {
        let Some(channel) = self.all.get_mut(name) else {
            return;
        };
        channel.waiters.remove(owner);
        if channel.waiters.is_empty() {
            channel.unused_since = Some(now);
            if !channel.is_listed {
                channel.is_listed = true;
                self.unused.push_back((now + UNUSED_FOR, name.clone()));
            }
        }
    }

    pub(super) fn waiter(&mut self, name: &str, owner: &str) -> Option<&mut W> {
        self.all.get_mut(name)?.waiters.get_mut(owner)
    }

    /// Those that wait on a channel.
    pub(super) fn waiters(&mut self, name: &str) -> impl Iterator<Item = &mut W> {
        let channel = self.all.get_mut(name);
        channel.into_iter().flat_map(|one| one.waiters.values_mut())
    }

    pub(super) fn hears(&self, name: &str) -> bool {
        let channel = self.all.get(name);
        channel.is_some_and(|one| one.subscription == Subscription::Heard)
    }

    /// When there may be something to change that isn't wanted now.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.unused.front().map(|(at, _)| *at)
    }

    /// What the server is to be told now, by whoever has the connection and sends it at once.
    pub(super) fn changes(&mut self, now: Instant) -> Changes {
        let unsubscribe = self.give_up_unused(now);
        let mut subscribe = Vec::new();
        for name in self.wanted.drain(..) {
            if let Some(channel) = self.all.get_mut(&name)
                && channel.subscription == Subscription::Wanted
            {
                channel.subscription = Subscription::Asked;
                subscribe.push(name);
            }
        }
        Changes {
            unsubscribe,
            subscribe,
        }
    }

    /// Forgets those that nobody has waited on for long enough; gives those that are heard still.
    fn give_up_unused(&mut self, now: Instant) -> Vec<Arc<str>> {
        let mut heard = Vec::new();
        while self.next_look().is_some_and(|at| at <= now) {
            let Some((_, name)) = self.unused.pop_front() else {
                break;
            };
            let Some(channel) = self.all.get_mut(&name) else {
                continue;
            };
            channel.is_listed = false;
            let Some(since) = channel.unused_since else {
                continue;
            };
            // Until the server has confirmed it, its word would be taken for that of the next waiter.
            let is_unclear = channel.subscription == Subscription::Asked;
            if is_unclear || since + UNUSED_FOR > now {
                channel.is_listed = true;
                let at = (since + UNUSED_FOR).max(now + UNUSED_FOR / 10);
                self.unused.push_back((at, name));
                continue;
            }
            let is_heard = channel.subscription == Subscription::Heard;
            self.all.remove(&name);
            if is_heard {
                heard.push(name);
            }
        }
        if self.all.len() < self.all.capacity() / 4 {
            self.all.shrink_to(self.all.len() * 2);
            self.unused.shrink_to(self.unused.len() * 2);
        }
        heard
    }

    /// The server has confirmed that a channel is heard.
    pub(super) fn heard(&mut self, name: &str) {
        if let Some(channel) = self.all.get_mut(name)
            && channel.subscription == Subscription::Asked
        {
            channel.subscription = Subscription::Heard;
        }
    }

    /// The connection is lost: the channels that have waiters are wanted anew. Calls `tell` with each waiter, and
    /// with whether its channel was heard.
    pub(super) fn deafen(&mut self, mut tell: impl FnMut(&mut W, bool)) {
        self.unused.clear();
        self.wanted.clear();
        self.all.retain(|_, channel| !channel.waiters.is_empty());
        for (name, channel) in &mut self.all {
            let was_heard = channel.subscription == Subscription::Heard;
            channel.subscription = Subscription::Wanted;
            channel.is_listed = false;
            self.wanted.push(name.clone());
            for waiter in channel.waiters.values_mut() {
                tell(waiter, was_heard);
            }
        }
    }
}

impl<W> Channel<W> {
    fn wanted() -> Self {
        Channel {
            subscription: Subscription::Wanted,
            waiters: HashMap::new(),
            unused_since: None,
            is_listed: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    const NAMES: [&str; 3] = ["a", "b", "c"];

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Enter(usize),
        /// The first of a channel leaves.
        Leave(usize),
        Pass(u64),
        /// Whoever has the connection tells the server what changed.
        Tell,
        Server,
        Receive,
        Lose,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..NAMES.len()).prop_map(Step::Enter),
            (0..NAMES.len()).prop_map(Step::Leave),
            (0..12_u64).prop_map(Step::Pass),
            Just(Step::Tell),
            Just(Step::Server),
            Just(Step::Receive),
            Just(Step::Lose),
        ]
    }

    #[derive(Clone, Debug, PartialEq)]
    enum Command {
        Subscribe(Arc<str>),
        Unsubscribe(Arc<str>),
    }

    /// A client, a server, and what is on its way between them.
    struct World {
        channels: Channels<()>,
        now: Instant,
        /// Owners, by the place of their channel's name.
        waiters: Vec<(usize, String)>,
        commands: VecDeque<Command>,
        replies: VecDeque<Arc<str>>,
        subscribed: HashSet<Arc<str>>,
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
            }
        }

        fn take(&mut self, step: Step, number: usize) {
            match step {
                Step::Enter(at) => {
                    let owner = number.to_string();
                    self.channels.enter(&NAMES[at].into(), owner.clone(), ());
                    self.waiters.push((at, owner));
                }
                Step::Leave(at) => self.leave(at),
                Step::Pass(seconds) => self.now += Duration::from_secs(seconds),
                Step::Tell => self.tell(),
                Step::Server => self.serve(),
                Step::Receive => {
                    if let Some(name) = self.replies.pop_front() {
                        self.channels.heard(&name);
                    }
                }
                Step::Lose => {
                    self.commands.clear();
                    self.replies.clear();
                    self.subscribed.clear();
                    self.channels.deafen(|(), _| {});
                }
            }
        }

        fn leave(&mut self, at: usize) {
            if let Some(first) = self.waiters.iter().position(|(on, _)| *on == at) {
                let (at, owner) = self.waiters.remove(first);
                self.channels.leave(&NAMES[at].into(), &owner, self.now);
            }
        }

        fn tell(&mut self) {
            let changes = self.channels.changes(self.now);
            let ended = changes.unsubscribe.into_iter().map(Command::Unsubscribe);
            let begun = changes.subscribe.into_iter().map(Command::Subscribe);
            self.commands.extend(ended.chain(begun));
        }

        fn serve(&mut self) {
            match self.commands.pop_front() {
                Some(Command::Subscribe(name)) => {
                    self.subscribed.insert(name.clone());
                    self.replies.push_back(name);
                }
                Some(Command::Unsubscribe(name)) => _ = self.subscribed.remove(&name),
                None => {}
            }
        }

        /// What is heard is listened to by the server, and goes on being.
        fn assert_true(&self, step: Step) {
            for name in NAMES.iter().filter(|name| self.channels.hears(name)) {
                let ends = Command::Unsubscribe((*name).into());
                assert!(self.subscribed.contains(*name), "{name} after {step:?}");
                assert!(!self.commands.contains(&ends), "{name} after {step:?}");
            }
        }

        fn settle(&mut self) {
            self.tell();
            while !(self.commands.is_empty() && self.replies.is_empty()) {
                self.serve();
                self.take(Step::Receive, 0);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn channel_is_believed_to_be_heard_only_while_it_is(
            steps in proptest::collection::vec(step(), 1..80),
        ) {
            let mut world = World::new();
            for (number, step) in steps.into_iter().enumerate() {
                world.take(step, number);
                world.assert_true(step);
            }
            world.settle();
            for (at, _) in &world.waiters {
                assert!(world.channels.hears(NAMES[*at]), "{} is waited for", NAMES[*at]);
            }
            for _ in 0..3 {
                world.now += 2 * UNUSED_FOR;
                world.settle();
            }
            let waited: HashSet<Arc<str>> =
                world.waiters.iter().map(|(at, _)| NAMES[*at].into()).collect();
            assert_eq!(world.subscribed, waited);
            assert_eq!(world.channels.all.len(), waited.len());
            assert!(world.channels.unused.is_empty());
        }
    }

    #[test]
    fn namespaces_that_were_waited_in_once_take_no_room() {
        let (mut channels, mut now) = (Channels::default(), Instant::now());
        for namespace in 0..50_000 {
            let name: Arc<str> = namespace.to_string().into();
            channels.enter(&name, String::new(), ());
            let changes = channels.changes(now);
            changes
                .subscribe
                .iter()
                .for_each(|name| channels.heard(name));
            channels.leave(&name, "", now);
            now += UNUSED_FOR / 100;
        }
        assert!(channels.all.len() < 200, "{}", channels.all.len());
        now += UNUSED_FOR;
        let given_up = channels.changes(now).unsubscribe;
        assert!(!given_up.is_empty() && channels.is_empty());
        let room =
            channels.all.capacity() + channels.unused.capacity() + channels.wanted.capacity();
        assert!(room < 500, "{room}");
    }
}
