//! Locks in a Redis or Valkey server.
//!
//! [`LockScripts`](lock_scripts::LockScripts) knows what is sent about a name, and what the answers mean; `servers`
//! finds the server that has it, and `server` sends it. A waiter's [`RedisWait`](waiter::RedisWait) asks by heartbeats,
//! and hears of grants in the `inbox`. The state of a lock is changed by the scripts of `lua/` alone.
//!
//! It uses `base`, the seam, `engine::heartbeat`, `engine::net` and `engine::url`. What always holds here: a connection
//! is closed after any failure on it, and a command is sent again only where its script makes that harmless.

use std::sync::{Arc, Weak};
use std::time::Duration;

use ::redis::Value;

use self::keys::{Keys, VALUE};
use self::lock_scripts::{LockScripts, stored};
use self::operators::{broken, inspection};
use self::servers::{Refused, Servers};
use self::settings::{Address, At};
use self::{leases::Held, script::Route, several::Waiting, waiter::WaitDeps, watch::RedisWatch};
use super::{
    Capabilities, Change, Cursor, Engine, Outcome, Page, Request, Revocations, Wait, Watch,
};
use crate::base::{
    Clock, Deadline, Finding, Holder, Inspection, Key, Namespace, Options, Result, Stored,
    TaskAnswer, TaskCall,
};

mod bell;
mod connection;
mod diagnosis;
mod failure;
#[cfg(fuzzing)]
pub(super) mod fuzzing;
mod inbox;
mod keys;
mod leases;
mod lock_scripts;
mod lua;
mod operators;
mod quorum;
mod reply;
mod round;
mod script;
mod server;
mod servers;
mod settings;
mod several;
mod shards;
mod shortfall;
mod tasks;
mod waiter;
mod watch;

#[derive(Debug)]
struct RedisEngine {
    servers: Arc<Servers>,
    deps: WaitDeps,
}

/// Into how many shards a delay queue is split in a cluster: enough for a dozen masters.
const SHARDS: u16 = 16;

/// How far the clocks of servers that replace each other may differ, unless the options say otherwise. A single server
/// is never replaced, so nothing depends on it there.
const CLOCK_SKEW: Duration = Duration::from_millis(10);

/// Checks the options, and those that the URL gives, which come first.
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

/// The engine of a URL. It connects once, so that a wrong URL, password or address is reported now.
pub(crate) fn open(url: &str, options: &Options, clock: Arc<dyn Clock>) -> Result<Arc<dyn Engine>> {
    let address = settings::parse(url)?;
    Ok(match &address.at {
        At::Quorum { hosts } => Arc::new(quorum::open(&address, hosts, options, clock)?),
        _ => Arc::new(RedisEngine::open(address, options, clock)?),
    })
}

impl RedisEngine {
    fn open(address: Address, options: &Options, clock: Arc<dyn Clock>) -> Result<Self> {
        let clock_skew = clock_skew(&address, options)?;
        let engine = RedisEngine::of(Servers::new(address, options)?, clock_skew, clock);
        engine.servers.greet().map_err(|refused| match refused {
            Refused::Failure(failure) => engine.deps.scripts.error(None, failure),
            Refused::Error(error) => error,
        })?;
        Ok(engine)
    }

    fn of(servers: Servers, clock_skew: Duration, clock: Arc<dyn Clock>) -> Self {
        let servers = Arc::new(servers);
        let scripts = Arc::new(LockScripts::new(servers.clone()));
        RedisEngine {
            servers,
            deps: WaitDeps::new(scripts, clock_skew, clock),
        }
    }
}

impl Engine for RedisEngine {
    fn endpoint(&self) -> &str {
        self.deps.scripts.endpoint()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            clock_skew: self.deps.clock_skew,
            shards: if self.deps.scripts.is_cluster() {
                SHARDS
            } else {
                1
            },
            ..Capabilities::default()
        }
    }

    fn new_wait(&self) -> Box<dyn Wait> {
        Box::new(Waiting::new(self.deps.anew()))
    }

    fn change(
        &self,
        request: Request<'_>,
        change: Change<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        match leases::parts(&self.deps.scripts, request.claim) {
            None => self.deps.scripts.change_lease(request, change, deadline),
            Some(parts) => Held::new(&self.deps.scripts, request, &parts).change(change, deadline),
        }
    }

    fn tell_revocations(&self, to: Weak<dyn Revocations>) {
        self.deps.inbox.tell_revocations(to);
    }

    fn diagnose(&self, of: (&Namespace, &Options), deadline: &Deadline) -> Result<Vec<Finding>> {
        let servers = self.servers.all(deadline);
        let servers = servers.map_err(|e| self.deps.scripts.error(None, e))?;
        let servers = (&*servers, &*self.servers.without_locks());
        diagnosis::diagnose(servers, &self.deps.scripts, of, deadline)
    }

    fn after_fork(&self) -> Option<Arc<dyn Engine>> {
        let (skew, clock) = (self.deps.clock_skew, self.deps.clock.clone());
        let forked = RedisEngine::of(self.servers.after_fork(), skew, clock);
        Some(Arc::new(forked))
    }

    fn inspect(&self, key: &Key, deadline: &Deadline) -> Result<Inspection> {
        let (scripts, lock) = (&self.deps.scripts, Keys::of(key).lock);
        let call = scripts.inspecting(key);
        let value = scripts.value(Some(key), Route::anew(&lock), &call, deadline)?;
        inspection(key, value).ok_or_else(|| scripts.surprised(key))
    }

    fn list(&self, of: (&Namespace, &str), cursor: Cursor, deadline: &Deadline) -> Result<Page> {
        let scripts = &self.deps.scripts;
        let servers = self.servers.all(deadline);
        let servers = servers.map_err(|e| scripts.error(None, e))?;
        scripts.list(&servers, of, &cursor, deadline)
    }

    fn break_lock(&self, key: &Key, deadline: &Deadline) -> Result<Vec<Holder>> {
        let (scripts, lock) = (&self.deps.scripts, Keys::of(key).lock);
        let call = scripts.breaking(key);
        let value = scripts.value(Some(key), Route::anew(&lock), &call, deadline)?;
        broken(value).ok_or_else(|| scripts.surprised(key))
    }

    fn tasks(&self, key: &Key, call: TaskCall<'_>, deadline: &Deadline) -> Result<TaskAnswer> {
        self.deps.scripts.tasks(key, call, deadline)
    }

    fn load(&self, key: &Key, deadline: &Deadline) -> Result<Stored> {
        let (mut get, keys) = (::redis::cmd("GET"), Keys::of(key));
        get.arg(keys.all()[VALUE]);
        let route = Route::to(&keys.lock);
        let value = self.deps.scripts.value(Some(key), route, &get, deadline)?;
        stored(value).ok_or_else(|| self.deps.scripts.surprised(key))
    }

    fn confirm(&self, key: &Key, deadline: &Deadline) -> Result<Option<Stored>> {
        let (scripts, keys) = (&self.deps.scripts, Keys::of(key));
        if !scripts.asks_replicas() {
            return Ok(None);
        }
        let call = scripts.call("lock/confirm", &keys.all()[VALUE..=VALUE], &[]);
        let value =
            scripts.confirmed(key, Route::to(&keys.lock), &call.for_replicas(), deadline)?;
        let stored = stored(value).ok_or_else(|| scripts.surprised(key))?;
        Ok(Some(stored))
    }

    fn watch(&self, key: &Key) -> Result<Box<dyn Watch>> {
        Ok(Box::new(RedisWatch::new(self.deps.anew(), key)))
    }

    /// Each call deletes the value that the last one has shown. A call that arrives late finds another value, and
    /// leaves it. If others store a value all the time, the last call deletes whatever it finds.
    fn remove(&self, key: &Key, deadline: &Deadline) -> Result<()> {
        const LOOKS: usize = 20;
        let (scripts, keys) = (&self.deps.scripts, Keys::of(key));
        let mut seen = Vec::new();
        for looks in 0.. {
            let arguments = [if looks < LOOKS { &seen[..] } else { b"*" }];
            let call = scripts.call("lock/remove", &scripts.with_channel(&keys), &arguments);
            match scripts.value(Some(key), Route::to(&keys.lock), &call, deadline)? {
                Value::BulkString(found) if found.is_empty() => return Ok(()),
                Value::BulkString(found) => seen = found,
                _ => break,
            }
        }
        Err(scripts.surprised(key))
    }

    fn value_key(&self, key: &Key) -> String {
        Keys::of(key).all()[VALUE].to_owned()
    }

    fn free_permits(&self, key: &Key, of: u32, deadline: &Deadline) -> Result<u32> {
        let (scripts, keys) = (&self.deps.scripts, Keys::of(key));
        let call = scripts.call("semaphore/permits", &keys.all()[..VALUE], &[]);
        match scripts.value(Some(key), Route::to(&keys.lock), &call, deadline)? {
            // Held otherwise, none is free.
            Value::Int(used) => Ok(of.saturating_sub(used.try_into().unwrap_or(of))),
            _ => Err(scripts.surprised(key)),
        }
    }
}

/// What a URL says, as tests need it.
#[cfg(test)]
fn settings_of(url: &str) -> (Arc<settings::Settings>, At) {
    let address = settings::parse(url).unwrap();
    let options = Options {
        connect_timeout: Duration::from_secs(60),
        ..Options::default()
    };
    let settings = settings::Settings::new(&address, &options);
    (Arc::new(settings.unwrap()), address.at)
}

/// The first server that a URL names.
#[cfg(test)]
fn server_of(url: &str) -> Arc<server::Server> {
    let (settings, at) = settings_of(url);
    let endpoint = match at {
        At::One(endpoint) => endpoint,
        At::Sentinels { hosts, .. } | At::Cluster { hosts } | At::Quorum { hosts } => {
            super::net::address::Endpoint::Tcp(hosts[0].clone())
        }
    };
    Arc::new(server::Server::new(endpoint, settings).unwrap())
}
