//! One server, and the one that takes its place after unsafe faults.

use std::mem;
use std::path::Path;
use std::time::Duration;

use super::USER;
use crate::clock::Clock;
use crate::kinds::Class;
use support::{RedisServer, eventually};

/// A server, and perhaps a replica.
#[derive(Debug)]
pub(crate) struct Single {
    primary: RedisServer,
    /// Follows the primary, where failing over is among the faults.
    replica: Option<RedisServer>,
    /// `None` where it can't be moved.
    pub(crate) clock: Option<Clock>,
}

impl Single {
    pub(crate) fn start(class: Class, dir: &Path) -> Self {
        let mut builder = RedisServer::builder()
            .acl(&[USER])
            .config("lua-time-limit", "20");
        let mut clock = None;
        match class {
            // What was written survives the server, and none waits for the disk.
            Class::Safe => builder = builder.append_only().config("appendfsync", "no"),
            Class::Unsafe => {
                // A server that starts again knows nothing.
                builder = builder
                    .config("repl-diskless-sync", "yes")
                    .config("rdb-del-sync-files", "yes");
                clock = Clock::start(dir)
                    .inspect_err(|error| eprintln!("torture: no clock is moved: {error}"))
                    .ok();
            }
        }
        if let Some(clock) = &clock {
            builder = clock.rule(builder);
        }
        let primary = builder.clone().start();
        let clock = clock.filter(|clock| {
            let rules = clock.rules(&primary);
            if !rules {
                eprintln!("torture: no clock is moved: the server doesn't take its time from libc");
            }
            rules
        });
        let servers = Single {
            replica: (class == Class::Unsafe).then(|| builder.start()),
            primary,
            clock,
        };
        if let Some(replica) = &servers.replica {
            follow(replica, &servers.primary);
        }
        servers
    }

    pub(crate) fn primary(&self) -> &RedisServer {
        &self.primary
    }

    /// Whether the replica comes to know what the primary does.
    pub(crate) fn await_replica(&self, timeout: Duration) -> bool {
        self.replica.as_ref().is_some_and(|replica| {
            eventually(timeout, || {
                replica.info("master_link_status").as_deref() == Some("up")
            })
        })
    }

    /// The replica hears nothing any more.
    pub(crate) fn part(&self) {
        if let Some(replica) = &self.replica {
            replica.query::<()>(&["REPLICAOF", "NO", "ONE"]);
        }
    }

    /// The replica is the primary from now on; the other one goes on as it is until it is told to follow.
    pub(crate) fn swap(&mut self) {
        if let Some(replica) = &mut self.replica {
            mem::swap(&mut self.primary, replica);
        }
    }

    /// The replica forgets what the primary doesn't know.
    pub(crate) fn reunite(&self) {
        if let Some(replica) = &self.replica {
            follow(replica, &self.primary);
        }
    }

    /// How many clients are connected.
    pub(crate) fn clients(&self) -> usize {
        let replica = self
            .replica
            .as_ref()
            .map_or(0, RedisServer::connected_clients);
        self.primary.connected_clients() + replica
    }
}

fn follow(replica: &RedisServer, primary: &RedisServer) {
    let port = primary.port().to_string();
    replica.query::<()>(&["REPLICAOF", "127.0.0.1", &port]);
}
