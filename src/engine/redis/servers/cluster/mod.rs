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
use self::lookup::{AFTER_FIRST, Ask, Nodes};
use super::ask_all::ask_all;
use super::sentinel::Sentinels;
use super::{Refused, Route, Servers};
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

/// The nodes of a cluster, or the master that sentinels name. Look-ups end with it.
#[derive(Debug)]
pub(super) struct Cluster(Arc<Nodes>);

impl Cluster {
    /// Fails if a host can have no certificate.
    pub(super) fn open(
        seeds: Vec<HostPort>,
        settings: Arc<Settings>,
    ) -> Result<Arc<dyn Servers>, Failure> {
        for seed in &seeds {
            Server::new(Endpoint::Tcp(seed.clone()), settings.clone())?;
        }
        Ok(Cluster::of(settings, Ask::of_nodes(seeds)))
    }

    /// The same of sentinels.
    pub(super) fn behind(
        hosts: Vec<HostPort>,
        master: String,
        login: Login,
        settings: Arc<Settings>,
    ) -> Result<Arc<dyn Servers>, Failure> {
        let sentinels = Sentinels::new(hosts, master, login, &settings)?;
        Ok(Cluster::of(settings, Ask::Sentinels(sentinels)))
    }

    fn of(settings: Arc<Settings>, ask: Ask) -> Arc<dyn Servers> {
        Arc::new(Cluster(Arc::new(Nodes::new(settings, ask, None))))
    }

    /// Finds out whether sentinels name a master, and whether it lets us in.
    fn find_master(&self, sentinels: &Sentinels, until: &Deadline) -> Result<(), Refused> {
        let settings = self.settings();
        let found = self.0.look_up(time::now(), AFTER_FIRST, until);
        found.map_err(|heard| sentinels.refusal(heard, settings))?;
        let answer = self.call(Route::to(""), &::redis::cmd("PING"), until);
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
        let mut map = self.0.map.lock();
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
}

impl Servers for Cluster {
    fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// A cluster some of whose slots nobody has will do: names in the others can be locked.
    fn greet(&self) -> Result<(), Refused> {
        let deadline = || Deadline::after(self.settings().connect_timeout);
        let seeds = match &self.0.ask {
            Ask::Sentinels(sentinels) => return self.find_master(sentinels, &deadline()),
            Ask::Nodes { seeds, .. } => seeds,
        };
        self.find_a_node(seeds, &deadline())?;
        let found = self.0.look_up(time::now(), AFTER_FIRST, &deadline());
        match found.map_err(|heard| self.0.ask.failure(heard)) {
            Err(Failure::ClusterDown(_)) | Ok(()) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }

    fn call(
        &self,
        route: Route<'_>,
        command: &dyn Command,
        deadline: &Deadline,
    ) -> Result<Answer, Unanswered<Failure>> {
        Call::new(&self.0, route, (command, false), deadline).run(route.known_within)
    }

    fn call_once(
        &self,
        route: Route<'_>,
        command: &dyn Command,
        deadline: &Deadline,
    ) -> Result<Answer, Unanswered<Failure>> {
        Call::new(&self.0, route, (command, true), deadline).run(route.known_within)
    }

    fn known(&self, route: Route<'_>) -> Option<Arc<Server>> {
        self.0.master(self.0.slot(route.key))
    }

    fn is_on_its_way(&self, route: Route<'_>) -> bool {
        let (slot, map) = (self.0.slot(route.key), self.0.map.lock());
        let master = map.master(slot);
        master.is_some_and(|master| !map.importers.of(slot, master).is_empty())
    }

    fn all(&self, deadline: &Deadline) -> Result<Vec<Arc<Server>>, Failure> {
        self.0.look_up_within(Some(ALL_KNOWN_WITHIN), deadline);
        let masters = self.0.map.lock().masters();
        if masters.is_empty() {
            return Err(self.0.nobody("any slot"));
        }
        Ok(masters)
    }

    fn without_locks(&self) -> Vec<Arc<Server>> {
        if let Ask::Sentinels(sentinels) = &self.0.ask {
            return sentinels.all.clone();
        }
        let map = self.0.map.lock();
        let masters = map.masters();
        let is_master = |node: &&Arc<Server>| masters.iter().any(|one| Arc::ptr_eq(one, node));
        map.nodes()
            .iter()
            .filter(|node| !is_master(node))
            .cloned()
            .collect()
    }

    fn after_fork(&self) -> Arc<dyn Servers> {
        let settings = Arc::new(self.settings().after_fork());
        // A thread of the parent may have locked it, which the child doesn't have.
        let map = self.0.map.try_lock();
        let map = map.map(|map| map.after_fork(settings.clone()));
        let ask = self.0.ask.after_fork(&settings);
        Arc::new(Cluster(Arc::new(Nodes::new(settings, ask, map))))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.0.closed.set();
    }
}
