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
use self::several::held::Held;
use self::several::{Means, Waiting};
use super::{
    Capabilities, Cursor, Downgraded, Engine, Grant, Operations, Page, Release, Released, Renewed,
    Request, Revocations, Sharing, StoreAnswer, Values, Wait,
};
use crate::base::claim::Claim;
use crate::base::clock::{Clock, Deadline};
use crate::base::diagnosis::Finding;
use crate::base::error::Result;
use crate::base::inspection::{Holder, Inspection};
use crate::base::name::{Key, Namespace};
use crate::base::options::Options;
use crate::base::owner::Owner;
use crate::base::value::Stored;

mod address;
mod answers;
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

    fn held<'a>(&'a self, request: Request<'a>, parts: &'a [Claim]) -> Held<'a> {
        Held::new(&self.commands, request, parts)
    }
}

impl Engine for RedisEngine {
    fn place(&self) -> &str {
        self.commands.place()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            clock_skew: self.clock_skew,
            ..Capabilities::ALL
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

    fn renew(&self, request: Request<'_>, deadline: &Deadline) -> Result<Renewed> {
        match self.commands.parts(request.claim) {
            None => self.commands.renew(request, deadline),
            Some(parts) => self.held(request, &parts).renew(deadline),
        }
    }

    fn release(
        &self,
        request: Request<'_>,
        release: Release<'_>,
        deadline: &Deadline,
    ) -> Result<Released> {
        match self.commands.parts(request.claim) {
            None => self.commands.release(request, release, deadline),
            Some(parts) => self.held(request, &parts).release(release, deadline),
        }
    }

    fn is_owner(&self, request: Request<'_>, deadline: &Deadline) -> Result<Renewed> {
        match self.commands.parts(request.claim) {
            None => self.commands.is_owner(request, deadline),
            Some(parts) => self.held(request, &parts).is_owner(deadline),
        }
    }

    fn adopt(
        &self,
        request: Request<'_>,
        from: &Owner,
        last_used: u64,
        deadline: &Deadline,
    ) -> Result<Option<Grant>> {
        // Read before sending: the server's lease starts no earlier than this.
        let since = self.clock.now();
        let adopted = match self.commands.parts(request.claim) {
            None => self.commands.adopt(request, from, last_used, deadline)?,
            Some(parts) => {
                let adopted = self
                    .held(request, &parts)
                    .adopt(from, last_used, deadline)?;
                adopted.map(|token| (token, None))
            }
        };
        Ok(adopted.map(|(token, value)| Grant {
            token,
            value,
            since,
        }))
    }

    fn operations(&self) -> Result<&dyn Operations> {
        Ok(self)
    }

    fn tell_revocations(&self, to: Weak<dyn Revocations>) {
        self.inbox.tell_revocations(to);
    }

    fn values(&self) -> Result<&dyn Values> {
        Ok(self)
    }

    fn sharing(&self) -> Result<&dyn Sharing> {
        Ok(self)
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
}

impl Operations for RedisEngine {
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
}

impl Values for RedisEngine {
    fn store(
        &self,
        request: Request<'_>,
        value: &[u8],
        deadline: &Deadline,
    ) -> Result<StoreAnswer> {
        self.commands.store(request, value, deadline)
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
}

impl Sharing for RedisEngine {
    fn downgrade(
        &self,
        request: Request<'_>,
        last_used: u64,
        value: Option<&[u8]>,
        deadline: &Deadline,
    ) -> Result<Option<Downgraded>> {
        let token = self
            .commands
            .downgrade(request, last_used, value, deadline)?;
        Ok(token.map(Downgraded::from))
    }

    fn free_permits(&self, key: &Key, of: u32, deadline: &Deadline) -> Result<u32> {
        self.commands.free_permits(key, of, deadline)
    }
}

#[cfg(test)]
pub(super) fn check_url(url: &str) -> Result<()> {
    address::parse(url).map(drop)
}
