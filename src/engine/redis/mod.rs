//! Locks in a Redis or Valkey server.
//!
//! [`Commands`](commands::Commands) knows what is sent about a name, and what the answers mean; `servers` finds
//! the server that has it, and `server` sends it. A
//! waiter's [`RedisWait`](wait::RedisWait) asks by heartbeats, and hears of grants in the `inbox`. The state of a lock
//! is changed by the scripts of `lua/` alone.
//!
//! It uses `base`, the seam, `engine::heartbeat`, `engine::net` and `engine::url`. What always holds here: a connection is
//! closed after any failure on it, and a command is sent again only where its script makes that harmless.

use std::sync::{Arc, Weak};
use std::time::Duration;

use self::address::{Address, At};
use self::commands::Commands;
use self::inbox::Inbox;
use self::keys::{Keys, VALUE};
use self::servers::{Refused, Servers};
use self::several::held::{self, Held};
use self::several::{Means, Waiting};
use super::{Capabilities, Change, Cursor, Engine, Outcome, Page, Request, Revocations, Wait};
use crate::base::clock::{Clock, Deadline};
use crate::base::diagnosis::Finding;
use crate::base::error::Result;
use crate::base::inspection::{Holder, Inspection};
use crate::base::name::{Key, Namespace};
use crate::base::options::Options;
use crate::base::value::Stored;

mod address;
mod channel_names;
mod commands;
mod connection;
mod diagnosis;
mod failure;
mod inbox;
mod keys;
mod lua;
mod reply;
mod role;
mod script;
mod server;
mod servers;
mod settings;
mod several;
mod shortfall;
mod shown;
mod wait;

#[derive(Debug)]
pub(crate) struct RedisEngine {
    servers: Arc<dyn Servers>,
    commands: Arc<Commands>,
    inbox: Arc<Inbox>,
    clock_skew: Duration,
    clock: Arc<dyn Clock>,
}

/// By how much the clocks of servers may differ that take each other's place, where it isn't said. Where none does, nothing
/// depends on it.
const CLOCK_SKEW: Duration = Duration::from_millis(10);

/// Checks what the URL gives as well, which goes before the options.
fn clock_skew(address: &Address, options: &Options) -> Result<Duration> {
    let given = address.given.clock_skew.or(options.clock_skew);
    let replicas = address.given.min_replicas.unwrap_or(options.min_replicas);
    let timeout = address.given.replica_timeout;
    let fails_over = replicas > 0 || !matches!(address.at, At::One(_));
    let usual = if fails_over {
        CLOCK_SKEW
    } else {
        Duration::ZERO
    };
    let options = Options {
        clock_skew: given,
        replica_timeout: timeout.unwrap_or(options.replica_timeout),
        ..options.clone()
    };
    options.check()?;
    Ok(given.unwrap_or(usual))
}

impl RedisEngine {
    /// Connects once, so that a wrong URL, password or address is told now.
    pub(crate) fn open(url: &str, options: &Options, clock: Arc<dyn Clock>) -> Result<Self> {
        let address = address::parse(url)?;
        let clock_skew = clock_skew(&address, options)?;
        let engine = RedisEngine::of(servers::new(address, options)?, clock_skew, clock);
        engine.servers.greet().map_err(|refused| match refused {
            Refused::Failure(failure) => engine.commands.error(None, failure),
            Refused::Error(error) => error,
        })?;
        Ok(engine)
    }

    fn of(servers: Arc<dyn Servers>, clock_skew: Duration, clock: Arc<dyn Clock>) -> Self {
        RedisEngine {
            commands: Arc::new(Commands::new(servers.clone())),
            inbox: Arc::new(Inbox::new()),
            servers,
            clock_skew,
            clock,
        }
    }
}

impl Engine for RedisEngine {
    fn place(&self) -> &str {
        self.commands.place()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            clock_skew: self.clock_skew,
            ..Capabilities::default()
        }
    }

    fn new_wait(&self) -> Box<dyn Wait> {
        Box::new(Waiting::new(Means {
            commands: self.commands.clone(),
            inbox: self.inbox.clone(),
            clock: self.clock.clone(),
            clock_skew: self.clock_skew,
        }))
    }

    fn change(
        &self,
        request: Request<'_>,
        change: Change<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        match held::parts(&self.commands, request.claim) {
            None => self.commands.change_lease(request, change, deadline),
            Some(parts) => Held::new(&self.commands, request, &parts).change(change, deadline),
        }
    }

    fn tell_revocations(&self, to: Weak<dyn Revocations>) {
        self.inbox.tell_revocations(to);
    }

    fn diagnose(
        &self,
        namespace: &Namespace,
        options: &Options,
        deadline: &Deadline,
    ) -> Result<Vec<Finding>> {
        let servers = self.servers.all(deadline);
        let servers = servers.map_err(|e| self.commands.error(None, e))?;
        let servers = (&*servers, &*self.servers.without_locks());
        diagnosis::diagnose(servers, &self.commands, (namespace, options), deadline)
    }

    fn after_fork(&self) -> Option<Arc<dyn Engine>> {
        let (servers, clock) = (self.servers.after_fork(), self.clock.clone());
        Some(Arc::new(RedisEngine::of(servers, self.clock_skew, clock)))
    }

    fn inspect(&self, key: &Key, deadline: &Deadline) -> Result<Inspection> {
        self.commands.inspect(key, deadline)
    }

    fn list(
        &self,
        namespace: &Namespace,
        prefix: &str,
        cursor: Cursor,
        deadline: &Deadline,
    ) -> Result<Page> {
        self.commands.list(namespace, prefix, cursor, deadline)
    }

    fn break_lock(&self, key: &Key, deadline: &Deadline) -> Result<Vec<Holder>> {
        self.commands.break_lock(key, deadline)
    }

    fn load(&self, key: &Key, deadline: &Deadline) -> Result<Stored> {
        self.commands.load(key, deadline)
    }

    fn remove(&self, key: &Key, deadline: &Deadline) -> Result<()> {
        self.commands.remove(key, deadline)
    }

    fn value_key(&self, key: &Key) -> String {
        Keys::of(key).all()[VALUE].to_owned()
    }

    fn free_permits(&self, key: &Key, of: u32, deadline: &Deadline) -> Result<u32> {
        self.commands.free_permits(key, of, deadline)
    }
}

#[cfg(test)]
pub(super) fn check_url(url: &str) -> Result<()> {
    address::parse(url).map(drop)
}
