//! Locks in a Redis or Valkey server.
//!
//! [`Commands`](commands::Commands) knows what is sent about a name, and what the answers mean; `server` sends it. A
//! waiter's [`RedisWait`](wait::RedisWait) asks by heartbeats, and hears of grants in the `inbox`. The state of a lock
//! is changed by the scripts of `lua/` alone.
//!
//! It uses `base`, the seam, `engine::heartbeat`, `engine::net` and `engine::url`. What always holds here: a connection is
//! closed after any failure on it, and a command is sent again only where its script makes that harmless.

use std::sync::{Arc, Weak};

use self::commands::Commands;
use self::inbox::Inbox;
use self::keys::{Keys, VALUE};
use self::server::Server;
use self::wait::RedisWait;
use super::{
    Capabilities, Engine, Grant, Operations, Page, Release, Released, Renewed, Request,
    Revocations, Sharing, StoreAnswer, Values, Wait,
};
use crate::base::clock::{Clock, Deadline};
use crate::base::diagnosis::Finding;
use crate::base::error::Result;
use crate::base::inspection::{Holder, Inspection};
use crate::base::name::{Key, Namespace};
use crate::base::options::Options;
use crate::base::owner::Owner;
use crate::base::token::Token;
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
mod shown;
mod wait;

#[derive(Debug)]
pub(crate) struct RedisEngine {
    server: Arc<Server>,
    commands: Arc<Commands>,
    inbox: Arc<Inbox>,
    clock: Arc<dyn Clock>,
}

impl RedisEngine {
    /// Connects once, so that a wrong URL, password or address is told now.
    pub(crate) fn open(url: &str, options: &Options, clock: Arc<dyn Clock>) -> Result<Self> {
        let address = address::parse(url)?;
        let engine = RedisEngine::of(Server::new(address, options)?, clock);
        let role = engine.server.greet();
        let role = role.map_err(|e| engine.commands.error(None, e))?;
        role.check(engine.server.place())?;
        Ok(engine)
    }

    fn of(server: Server, clock: Arc<dyn Clock>) -> Self {
        let server = Arc::new(server);
        RedisEngine {
            commands: Arc::new(Commands::new(server.clone())),
            inbox: Arc::new(Inbox::new(server.clone())),
            server,
            clock,
        }
    }
}

impl Engine for RedisEngine {
    fn place(&self) -> &str {
        self.commands.place()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }

    fn new_wait(&self) -> Box<dyn Wait> {
        let (commands, inbox) = (self.commands.clone(), self.inbox.clone());
        Box::new(RedisWait::new(commands, inbox, self.clock.clone()))
    }

    fn renew(&self, request: Request<'_>, deadline: &Deadline) -> Result<Renewed> {
        self.commands.renew(request, deadline)
    }

    fn release(
        &self,
        request: Request<'_>,
        release: Release<'_>,
        deadline: &Deadline,
    ) -> Result<Released> {
        self.commands.release(request, release, deadline)
    }

    fn is_owner(&self, request: Request<'_>, deadline: &Deadline) -> Result<Renewed> {
        self.commands.is_owner(request, deadline)
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
        let adopted = self.commands.adopt(request, from, last_used, deadline)?;
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
        let parts = (&*self.server, &*self.commands);
        diagnosis::diagnose(parts, namespace, options, deadline)
    }

    fn after_fork(&self) -> Option<Arc<dyn Engine>> {
        let (server, clock) = (self.server.after_fork(), self.clock.clone());
        Some(Arc::new(RedisEngine::of(server, clock)))
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
        cursor: u64,
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
    ) -> Result<Option<Token>> {
        self.commands.downgrade(request, last_used, value, deadline)
    }

    fn free_permits(&self, key: &Key, of: u32, deadline: &Deadline) -> Result<u32> {
        self.commands.free_permits(key, of, deadline)
    }
}

#[cfg(test)]
pub(super) fn check_url(url: &str) -> Result<()> {
    address::parse(url).map(drop)
}
