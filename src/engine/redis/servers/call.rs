//! One command, sent from node to node until one answers for its slot.
//!
//! | the node says, or does | then | the command may have been carried out |
//! |---|---|---|
//! | an answer | it is the caller's | |
//! | MOVED | it goes to that node, which has the slot from now on; a look-up begins beside it, or before it if it takes a lock | no |
//! | ASK | it goes to that node this once, behind ASKING | no |
//! | TRYAGAIN | it goes to the same node again, after 2, 4, … 50 ms, for one I/O timeout at most | no |
//! | CLUSTERDOWN | the slot is looked up; it goes to the node that has it then, if that is another | no |
//! | READONLY, or the connection fails | the same, unless it mustn't be carried out twice; what sentinels call the master is asked again after 50 ms if it is a replica | if all of it was sent |
//! | any other error | it is the caller's | yes |
//!
//! All of it happens by the deadline of the call, and a command goes to five nodes more at most: two that send it to
//! each other would never end.
//!
//! A server that hangs keeps its connections, so a call to it would wait until its deadline, also long after another
//! took its place. So its deadline is over as soon as that is known; and after [`SLOW`] the call has its server looked
//! up, again and again, each time that its I/O looks whether it was cancelled. All calls share these look-ups.
//!
//! # Locks that a node has whose slot is another's
//!
//! A slot moves key by key. Its owner sends a command for a key that has gone to the node that takes the slot over,
//! until it forgets that the slot goes: when its replica takes its place, which Redis 7 hasn't told, or by SETSLOT
//! STABLE. Then it answers for all names, as if those that have gone were free. The node that takes the slot over
//! doesn't forget. So:
//!
//! - Before the owner is asked for a lock, it is asked whether it has its key. While it knows that the slot goes, it
//!   doesn't say no, but where to ask. If it says no, the node that takes the slot over is asked, too. So nothing is
//!   written at the owner that would be in the way of those keys when they come back.
//! - That node is asked again before what the owner has granted counts: the lock may have moved meanwhile.
//!
//! Who takes slots over is known from look-ups. A process has had one within a quarter of its ttl when it takes a lock,
//! and one that began when it found the slot at another node than before.

use std::{sync::Arc, time::Duration};

use ::redis::{Cmd, Value};

use super::{topology::Topology, view};
use crate::base::{Cancel, Cause, Deadline, sys::time};
use crate::engine::redis::failure::{Failure, Redirect};
use crate::engine::redis::script::{Command, Route, SameConnection};
use crate::engine::redis::server::{Answer, Manner, Server, share};
use crate::engine::{Failed, net::address::HostPort};

const HOPS: u32 = 5;

/// The pauses between attempts while some of the keys are at either node. A slot takes about 4 ms to move.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// A call without an answer has its server looked up after so long, and again as often.
const SLOW: Duration = Duration::from_millis(250);

/// How long to wait before a master is asked again that is a replica still.
const AGAIN: Duration = Duration::from_millis(50);

/// One command on its way.
struct Call<'a> {
    topology: &'a Arc<Topology>,
    command: &'a dyn Command,
    deadline: &'a Deadline,
    slot: u16,
    may_be_done: bool,
    hops: u32,
    moving: Option<Moving>,
    /// By when a master that sentinels name has to be one, since it has said that it is a replica.
    demoted: Option<Deadline>,
}

/// Where it is sent next.
struct Target {
    server: Arc<Server>,
    manner: Manner,
}

/// Since a node has answered TRYAGAIN.
struct Moving {
    pause: Duration,
    until: Deadline,
}

/// Sends a command to the node of its slot, wherever that is.
pub(super) fn run(
    topology: &Arc<Topology>,
    route: Route<'_>,
    command: &dyn Command,
    deadline: &Deadline,
) -> Result<Answer, Failed<Failure>> {
    let mut call = Call {
        topology,
        command,
        deadline,
        slot: topology.slot(route.key),
        may_be_done: false,
        hops: 0,
        moving: None,
        demoted: None,
    };
    topology.look_up_within(route.known_within, deadline);
    call.run().map_err(|error| Failed {
        error,
        sent: call.may_be_done,
    })
}

impl Call<'_> {
    fn run(&mut self) -> Result<Answer, Failure> {
        let mut target = self.first()?;
        loop {
            self.check_before(&target)?;
            target = match self.send(&target) {
                Ok(answer) => {
                    self.may_be_done = true;
                    self.check_after(&target)?;
                    return Ok(answer);
                }
                Err(failure) => self.next(target, failure)?,
            };
        }
    }

    fn first(&self) -> Result<Target, Failure> {
        if let Some(server) = self.topology.master(self.slot) {
            return Ok(Target::plain(server));
        }
        self.topology.look_up_since(time::now(), self.deadline);
        let server = self.topology.master(self.slot);
        let what = || format!("slot {}", self.slot);
        server
            .map(Target::plain)
            .ok_or_else(|| self.topology.nobody(&what()))
    }

    fn send(&mut self, target: &Target) -> Result<Answer, Failure> {
        let Target { server, manner } = target;
        let deadline = match manner {
            Manner::Plain => self.watched(server),
            Manner::Asking if self.command.is_once() => self.deadline.clone(),
            // The slot isn't its own yet, so nobody takes its place. The rest is for the node that has it.
            Manner::Asking => share(self.deadline),
        };
        let answer = server.call(self.command, *manner, &deadline);
        if is_doubtful(&answer) {
            self.topology.map.lock().doubt(server);
        }
        match answer {
            Ok(answer) => Ok(Answer {
                repeated: answer.repeated || self.may_be_done,
                // To the same node it isn't sent again.
                moved: self.may_be_done,
                ..answer
            }),
            Err(Failed { error, sent }) => {
                self.may_be_done |= sent;
                Err(error)
            }
        }
    }

    /// The deadline of a call to the node that has the slot: it is over when another has it. What holds it, such as an
    /// idle connection, keeps no server alive by it.
    fn watched(&self, node: &Arc<Server>) -> Deadline {
        let (topology, slot) = (Arc::downgrade(self.topology), self.slot);
        let (node, caller) = (Arc::downgrade(node), self.deadline.cancel().cloned());
        let slow = time::now() + SLOW;
        self.deadline.clone().or(&Cancel::when(move || {
            if caller.as_ref().is_some_and(Cancel::is_set) {
                return true;
            }
            let (Some(topology), Some(node)) = (topology.upgrade(), node.upgrade()) else {
                return false;
            };
            if node.retired().is_set() {
                return true;
            }
            if time::now() < slow {
                return false;
            }
            topology.look_up_beside(SLOW);
            let master = topology.master(slot);
            master.is_some_and(|master| !Arc::ptr_eq(&master, &node))
        }))
    }

    /// Where it goes after a failure, or the failure that is the caller's.
    fn next(&mut self, target: Target, failure: Failure) -> Result<Target, Failure> {
        use Failure::{Closed, ClusterDown, Demoted, Redirected, TimedOut, TryAgain};
        match failure {
            // Of what sentinels call the master, and is a node of a cluster.
            failure if failure.is_refusal() && self.topology.has_one_slot() => Err(failure),
            Redirected(redirect) => self.follow(target, redirect),
            TryAgain(cause) => {
                self.pause(cause)?;
                Ok(target)
            }
            ClusterDown(_) | Demoted(_) | Closed(_) | TimedOut(_) => {
                self.look_elsewhere(target, failure)
            }
            failure => Err(failure),
        }
    }

    fn follow(&mut self, target: Target, redirect: Redirect) -> Result<Target, Failure> {
        let Some(to) = &redirect.to else {
            return self.look_elsewhere(target, Failure::Redirected(redirect));
        };
        self.hop(&target.server)?;
        let host = if to.host.is_empty() {
            view::host(&target.server)
        } else {
            to.host.clone()
        };
        let at = HostPort {
            host,
            port: to.port,
        };
        let mut map = self.topology.map.lock();
        let (server, manner) = if redirect.is_once {
            let importer = map.node(&at).cloned();
            if let Some(importer) = &importer {
                // Should the owner forget it.
                map.importers.add(self.slot, importer);
            }
            (importer, Manner::Asking)
        } else {
            (map.set(self.slot, &at).cloned(), Manner::Plain)
        };
        drop(map);
        if !redirect.is_once && matches!(self.command.same_connection(), SameConnection::Asks(_)) {
            // The new node may not have all locks of the slot: who takes it over has to be known.
            self.topology
                .look_up_since(time::now(), &share(self.deadline));
        } else if !redirect.is_once {
            self.topology.look_up_soon();
        }
        // A host that can have no certificate.
        let server = server.ok_or(Failure::Redirected(redirect))?;
        Ok(Target { server, manner })
    }

    /// To the node that has the slot now, if that is another.
    fn look_elsewhere(&mut self, target: Target, failure: Failure) -> Result<Target, Failure> {
        self.topology.map.lock().suspect(&target.server);
        // To find another server is a part of connecting to it.
        let within = self.topology.settings.connect_timeout;
        let until = self.deadline.within(within);
        if until.is_over() || (self.command.is_once() && self.may_be_done) {
            self.topology.look_up_soon();
            return Err(failure);
        }
        self.topology.look_up_since(time::now(), &until);
        let next = match self.topology.master(self.slot) {
            Some(server)
                if target.manner == Manner::Asking || !Arc::ptr_eq(&server, &target.server) =>
            {
                self.hop(&target.server)?;
                Target::plain(server)
            }
            Some(_) if matches!(failure, Failure::Demoted(_)) && self.topology.has_one_slot() => {
                self.demoted.get_or_insert(until).sleep(AGAIN);
                target
            }
            _ => return Err(failure),
        };
        let is_over = |deadline: &Deadline| deadline.is_over();
        if self.deadline.is_over() || self.demoted.as_ref().is_some_and(is_over) {
            return Err(failure);
        }
        Ok(next)
    }

    fn hop(&mut self, from: &Server) -> Result<(), Failure> {
        self.hops += 1;
        if self.hops <= HOPS {
            return Ok(());
        }
        let slot = self.slot;
        let cause = format!(
            "its nodes redirect requests for slot {slot} to each other: gave up after {HOPS} redirects, the last at {}",
            from.address()
        );
        Err(Failure::ClusterDown(cause.into()))
    }

    /// Until the slot may have moved.
    fn pause(&mut self, cause: Cause) -> Result<(), Failure> {
        let moving = self.moving.get_or_insert_with(|| Moving {
            pause: FIRST_PAUSE,
            until: self.deadline.within(self.topology.settings.io_timeout),
        });
        let has_time = moving.until.remaining() > moving.pause;
        if has_time {
            moving.until.sleep(moving.pause);
            moving.pause = (2 * moving.pause).min(LONGEST_PAUSE);
        }
        if has_time && !moving.until.is_over() {
            return Ok(());
        }
        let told = format!(
            "slot {} is migrating, and neither node has all keys of this request ({cause}): try again after the \
             migration; if it is stuck, run redis-cli --cluster fix",
            self.slot
        );
        Err(Failure::TryAgain(told.into()))
    }
}

/// Whether a master that was replaced, and is cut off from its replicas, would answer so, too.
fn is_doubtful(answer: &Result<Answer, Failed<Failure>>) -> bool {
    match answer {
        Ok(answer) => answer.shortfall.is_some(),
        Err(failed) => matches!(failed.error, Failure::Busy(_)),
    }
}

impl Target {
    fn plain(server: Arc<Server>) -> Self {
        Target {
            server,
            manner: Manner::Plain,
        }
    }
}

/// Before a command goes to the owner of its slot, and behind it.
impl Call<'_> {
    /// Fails if the command asks for a lock that a node has which takes the slot over, and of which the owner doesn't
    /// know.
    fn check_before(&self, target: &Target) -> Result<(), Failure> {
        if self.importers(target).is_empty() {
            return Ok(());
        }
        let is_free_there = |lock: &&str| {
            let said = target.server.value(&exists(lock), &share(self.deadline));
            said.is_ok_and(|said| said == Value::Int(0))
        };
        if self.command.locks().iter().any(is_free_there) {
            return self.check_after(target);
        }
        Ok(())
    }

    /// Fails if a node that takes the slot over has a lock that the command may have taken at its owner.
    fn check_after(&self, target: &Target) -> Result<(), Failure> {
        for importer in self.importers(target) {
            for lock in self.command.locks() {
                let has = importer.call(&exists(lock), Manner::Asking, &share(self.deadline));
                let said = match has {
                    Ok(answer) if answer.value == Value::Int(0) => continue,
                    Ok(_) => "which already has this lock".to_owned(),
                    // Not any more.
                    Err(e) if matches!(e.error, Failure::Redirected(_)) => {
                        let mut map = self.topology.map.lock();
                        map.importers.remove(self.slot, &importer);
                        break;
                    }
                    Err(e) => {
                        let cause = e.error.cause();
                        format!("which doesn't answer whether it has this lock ({cause})")
                    }
                };
                return Err(self.half_done(&target.server, &importer, &said));
            }
        }
        Ok(())
    }

    /// The nodes that take the slot over. Of the one that is asked behind ASKING it is known already that it does.
    fn importers(&self, target: &Target) -> Vec<Arc<Server>> {
        if target.manner == Manner::Asking {
            return Vec::new();
        }
        let map = self.topology.map.lock();
        map.importers.of(self.slot, &target.server)
    }

    fn half_done(&self, owner: &Server, importer: &Server, said: &str) -> Failure {
        let (slot, owner, importer) = (self.slot, owner.address(), importer.address());
        let cause = format!(
            "slot {slot} is migrating from {owner} to {importer}, {said}: finish the migration, or run redis-cli \
             --cluster fix {owner}"
        );
        Failure::TryAgain(cause.into())
    }
}

fn exists(key: &str) -> Cmd {
    let mut exists = ::redis::cmd("EXISTS");
    exists.arg(key);
    exists
}
