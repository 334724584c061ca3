//! The nodes of a cluster: each slot of names has one that is its master. A set behind sentinels is a cluster of one slot.
//!
//! | file | |
//! |---|---|
//! | `map.rs` | which node has which slot, as far as it is known |
//! | `view.rs` | what a node says of that |
//! | `lookup.rs` | asking several nodes, at most once in 100 ms, and waiting for it |
//! | `heard.rs` | whom of them to believe |
//! | `call.rs` | a command on its way from node to node |
//! | `elsewhere.rs` | locks that a node has whose slot is another's |
//! | `importers.rs` | the nodes that take slots over |
//! | `watch.rs` | a call that has no answer yet, while its slot comes to another node |
//! | `hello.rs` | what is at the addresses of the URL |
//!
//! A slot is in one of these states, as this process knows it:
//!
//! | state | a call | left when |
//! |---|---|---|
//! | nobody's | looks up, and fails if it stays so | a look-up finds its master |
//! | a node's | goes there | that node sends it elsewhere: another node's; a look-up says so: another node's, or nobody's |
//! | on its way: its node sends some commands to another | goes to the other with ASKING, this once | the node says MOVED: the other's; or it has all keys again |
//! | on its way, and some of its keys are at either | is asked for again, within its deadline | the same |
//! | a node's, while another takes it over: the owner forgot that it goes | asks both, if it takes a lock | the other says that it doesn't |
//!
//! What always holds: no lock is held during I/O, and nobody waits past their deadline for another's look-up; there is one
//! [`Server`] for each address; without trouble a call takes one look into the map and not a round trip more than on a single
//! server.

use std::sync::Arc;
use std::time::Duration;

use ::redis::Value;

use self::call::Call;
use self::heard::worse;
use self::hello::Hello;
pub(super) use self::lookup::Nodes;
use self::lookup::{AFTER_FIRST, Ask};
use super::ask_all::ask_all;
use super::sentinel::Sentinels;
use super::{Refused, Route};
use crate::base::clock::Deadline;
use crate::base::sys::time;
use crate::engine::Unanswered;
use crate::engine::net::address::{Endpoint, HostPort, Login};
use crate::engine::redis::failure::Failure;
use crate::engine::redis::script::Command;
use crate::engine::redis::server::{Answer, Server};
use crate::engine::redis::settings::Settings;

mod call;
mod elsewhere;
pub(super) mod heard;
mod hello;
mod importers;
mod lookup;
mod map;
pub(super) mod view;

/// How long ago the masters may have been looked up when all are asked for.
const ALL_KNOWN_WITHIN: Duration = Duration::from_secs(1);

impl Nodes {
    /// Fails if a host can have no certificate.
    pub(super) fn open(seeds: Vec<HostPort>, settings: Arc<Settings>) -> Result<Self, Failure> {
        for seed in &seeds {
            Server::new(Endpoint::Tcp(seed.clone()), settings.clone())?;
        }
        Ok(Nodes::new(settings, Ask::of_nodes(seeds), None))
    }

    /// The same of sentinels.
    pub(super) fn behind(
        hosts: Vec<HostPort>,
        master: String,
        login: Login,
        settings: Arc<Settings>,
    ) -> Result<Self, Failure> {
        let sentinels = Sentinels::new(hosts, master, login, &settings)?;
        Ok(Nodes::new(settings, Ask::Sentinels(sentinels), None))
    }

    /// The same for a child that was forked off, without its parent's connections.
    pub(super) fn after_fork(&self, settings: Arc<Settings>) -> Self {
        // A thread of the parent may have locked it, which the child doesn't have.
        let map = self.map.try_lock();
        let map = map.map(|map| map.after_fork(settings.clone()));
        let ask = self.ask.after_fork(&settings);
        Nodes::new(settings, ask, map)
    }

    pub(super) fn call(
        self: &Arc<Self>,
        route: Route<'_>,
        (command, is_once): (&dyn Command, bool),
        deadline: &Deadline,
    ) -> Result<Answer, Unanswered<Failure>> {
        Call::new(self, route, (command, is_once), deadline).run(route.known_within)
    }

    pub(super) fn is_on_its_way(&self, route: Route<'_>) -> bool {
        let (slot, map) = (self.slot(route.key), self.map.lock());
        let master = map.master(slot);
        master.is_some_and(|master| !map.importers.of(slot, master).is_empty())
    }

    pub(super) fn all(self: &Arc<Self>, deadline: &Deadline) -> Result<Vec<Arc<Server>>, Failure> {
        self.look_up_within(Some(ALL_KNOWN_WITHIN), deadline);
        let masters = self.map.lock().masters();
        if masters.is_empty() {
            return Err(self.nobody("any slot"));
        }
        Ok(masters)
    }

    pub(super) fn without_locks(&self) -> Vec<Arc<Server>> {
        if let Ask::Sentinels(sentinels) = &self.ask {
            return sentinels.all.clone();
        }
        let map = self.map.lock();
        let masters = map.masters();
        let is_master = |node: &&Arc<Server>| masters.iter().any(|one| Arc::ptr_eq(one, node));
        let others = map.nodes().iter().filter(|node| !is_master(node));
        others.cloned().collect()
    }

    /// Ends look-ups.
    pub(super) fn close(&self) {
        self.closed.set();
    }

    pub(super) fn greet(self: &Arc<Self>) -> Result<(), Refused> {
        let deadline = || Deadline::after(self.settings.connect_timeout);
        match &self.ask {
            Ask::Sentinels(sentinels) => self.find_master(sentinels, &deadline()),
            Ask::Nodes { seeds, .. } => {
                self.find_a_node(seeds, &deadline())?;
                self.find_slots(&deadline())
            }
        }
    }

    /// Finds out whether sentinels name a master, and whether it lets us in.
    fn find_master(
        self: &Arc<Self>,
        sentinels: &Sentinels,
        until: &Deadline,
    ) -> Result<(), Refused> {
        let found = self.look_up(time::now(), AFTER_FIRST, until);
        found.map_err(|heard| sentinels.refusal(heard, &self.settings))?;
        let answer = self.call(Route::to(""), (&::redis::cmd("PING"), false), until);
        match answer.map_err(|unanswered| unanswered.error)?.value {
            Value::SimpleString(pong) if pong == "PONG" => Ok(()),
            _ => {
                let cause = "its master doesn't answer PING as a Redis server does";
                Err(Failure::Other(cause.into()).into())
            }
        }
    }

    /// All that the URL names are asked at once: the first that is a node of a cluster is enough.
    fn find_a_node(&self, seeds: &[HostPort], deadline: &Deadline) -> Result<(), Refused> {
        let mut map = self.map.lock();
        let seeds = seeds.iter().filter_map(|seed| map.node(seed).cloned());
        let seeds: Vec<_> = seeds.collect();
        drop(map);
        let answers = ask_all(&seeds, deadline, Hello::ask);
        let (mut refused, mut failed) = (None, None);
        while let Some(answer) = answers.next(deadline) {
            match answer {
                Ok(hello) if hello.is_usable() => return Ok(()),
                Ok(hello) => refused = Some(hello),
                Err(failure) => failed = worse(failed, failure),
            }
        }
        if let Some(hello) = refused {
            return hello.check().map_err(Refused::Error);
        }
        let silent = || Failure::TimedOut("none of its nodes answers".into());
        Err(failed.unwrap_or_else(silent).into())
    }

    /// A cluster some of whose slots nobody has will do: names in the others can be locked.
    fn find_slots(&self, deadline: &Deadline) -> Result<(), Refused> {
        let found = self.look_up(time::now(), AFTER_FIRST, deadline);
        match found.map_err(|heard| self.ask.failure(heard)) {
            Err(Failure::ClusterDown(_)) | Ok(()) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }
}
