//! A client of etcd by its JSON gateway: requests over HTTP/1.1, each of which ends by its deadline.
//!
//! It uses `base`, `engine::net` and the address of its servers, and knows nothing of locks. What always holds here: a
//! connection is closed after any failure on it; what changes something is sent again only if no server has begun with it.

use std::sync::Arc;
use std::time::Duration;

use self::answers::Granted;
pub(super) use self::answers::{Event, KeptAlive, MemberStatus, Status, Touched};
use self::connection::Connection;
use self::failure::{Failed, Failure};
use self::hosts::Hosts;
use self::login::Login;
use self::requests::Requests;
use self::txn::{Answer, LeaseId, Range, Txn};
use self::watch::Watch;
use super::address::Address;
use crate::base::clock::{Clock, Deadline};
use crate::base::error::Result;
use crate::base::options::Options;
use crate::engine::Unanswered;
use crate::engine::net::tls::Trust;

mod answers;
mod connection;
pub(super) mod failure;
mod hosts;
mod http;
mod json;
mod login;
pub(super) mod proof;
mod requests;
pub(super) mod txn;
pub(super) mod watch;

/// A client of the servers of one URL.
#[derive(Debug)]
pub(super) struct Client {
    hosts: Arc<Hosts>,
    requests: Requests,
    /// `None`: connections are plain.
    trust: Option<Trust>,
    place: String,
    root: String,
}

impl Client {
    /// Costs no I/O but that of reading certificates.
    pub(super) fn new(address: Address, options: &Options, clock: Arc<dyn Clock>) -> Result<Self> {
        let Address { ca, own, shown, .. } = &address;
        let trust = address
            .tls
            .then(|| Trust::new(ca.as_deref(), own.as_ref(), shown));
        let trust = trust.transpose()?;
        let (connect, io) = (options.connect_timeout, options.io_timeout);
        let hosts = Hosts::new(&address.hosts, trust.as_ref(), connect, io);
        let hosts = hosts.map_err(|failure| failure.into_error(None, shown))?;
        let login = Login::new(address.login);
        Ok(Client {
            hosts: Arc::new(hosts),
            requests: Requests::new(login, clock),
            trust,
            place: address.shown,
            root: address.root,
        })
    }

    /// The same for a child that was forked off, without its parent's connections.
    pub(super) fn after_fork(&self) -> Self {
        let trust = self.trust.as_ref().map(Trust::after_fork);
        Client {
            hosts: Arc::new(self.hosts.after_fork(trust.as_ref())),
            requests: self.requests.after_fork(),
            trust,
            place: self.place.clone(),
            root: self.root.clone(),
        }
    }

    /// For errors: the URL, without user and password.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// How long there is sense in asking again when there is no answer.
    pub(super) fn patience(&self) -> Duration {
        self.hosts.patience()
    }

    /// What all keys begin with, before a `/`; empty without.
    pub(super) fn root(&self) -> &str {
        &self.root
    }

    /// Carries out a transaction. One that changes something is sent to another host only if the first has begun with nothing.
    pub(super) fn transact(
        &self,
        txn: &Txn,
        deadline: &Deadline,
    ) -> Result<Answer, Unanswered<Failure>> {
        let body = json::txn(txn).to_string();
        let ask = |connection: &mut Connection, deadline: &Deadline| {
            self.requests
                .transact(connection, body.as_bytes(), deadline)
        };
        Ok(self.ask(txn.only_reads(), deadline, ask)?)
    }

    /// Grants the lease of that number, which a host that didn't answer may have granted already: before, or in this call.
    pub(super) fn grant_lease(
        &self,
        (lease, may_be_there): (LeaseId, bool),
        seconds: u64,
        deadline: &Deadline,
    ) -> Result<Granted, Failure> {
        // Read before sending: the servers' lease starts no earlier than this.
        let since = self.requests.clock.now();
        let mut may_be_there = may_be_there;
        let granted = self.ask(true, deadline, |connection, deadline| {
            let asked = (lease, std::mem::replace(&mut may_be_there, true));
            self.requests.grant(connection, asked, seconds, deadline)
        });
        Ok(Granted {
            lease,
            seconds: granted.map_err(Failure::from)?,
            since,
        })
    }

    /// Ends a lease, with all keys that it has; a transaction that comes later with it is refused. One that is gone already is
    /// fine.
    pub(super) fn revoke(&self, lease: LeaseId, deadline: &Deadline) -> Result<(), Failure> {
        let revoked = self.ask(true, deadline, |connection, deadline| {
            self.requests.revoke(connection, lease, deadline)
        });
        revoked.map_err(Failure::from)
    }

    /// Keeps the lease alive, and then carries out `look`, which only reads, and reads one key at least.
    pub(super) fn keep_alive(
        &self,
        lease: LeaseId,
        look: &Txn,
        deadline: &Deadline,
    ) -> Result<KeptAlive, Failure> {
        debug_assert!(look.only_reads() && look.reads());
        let look = json::txn(look).to_string();
        let kept = self.ask(true, deadline, |connection, deadline| {
            self.requests
                .keep_alive(connection, lease, look.as_bytes(), deadline)
        });
        kept.map_err(Failure::from)
    }

    /// Asks for the lease to be kept alive, and reads nothing. `None`: whether it is kept alive is to be proved.
    pub(super) fn touch(
        &self,
        lease: LeaseId,
        deadline: &Deadline,
    ) -> Result<Option<Touched>, Failure> {
        let touched = self.ask(true, deadline, |connection, deadline| {
            self.requests.touch(connection, lease, deadline)
        });
        touched.map_err(Failure::from)
    }

    /// How many seconds a lease lasts if it isn't kept alive; `None`: it is gone.
    pub(super) fn time_to_live(
        &self,
        lease: LeaseId,
        deadline: &Deadline,
    ) -> Result<Option<u64>, Failure> {
        let left = self.ask(true, deadline, |connection, deadline| {
            self.requests.time_to_live(connection, lease, deadline)
        });
        left.map_err(Failure::from)
    }

    /// Watches for deletions, and `puts` if asked for, from now on.
    pub(super) fn watch(
        &self,
        ranges: &[Range],
        puts: bool,
        deadline: &Deadline,
    ) -> Result<Watch, Failure> {
        let body = requests::watch_of(ranges, puts);
        let ask = || {
            self.hosts.ask(true, deadline, |connection, deadline| {
                self.requests
                    .watch(connection, (&body, ranges.len()), deadline)
            })
        };
        let begun = match ask() {
            Err(failed) if failed.may_be_of_old_token() && self.requests.login.renew() => ask(),
            begun => begun,
        };
        let (messages, used) = begun.map_err(Failure::from)?;
        Ok(Watch::new(messages, used, self.hosts.clone()))
    }

    /// Asks one host what it says of itself.
    pub(super) fn any_status(&self, deadline: &Deadline) -> Result<MemberStatus, Failure> {
        let status = self.ask(true, deadline, |connection, deadline| {
            self.requests.status(connection, deadline)
        });
        status.map_err(Failure::from)
    }

    /// Asks each host of the URL what it says of itself.
    pub(super) fn status(&self, deadline: &Deadline) -> Vec<Status> {
        let names: Vec<_> = self.hosts.names().collect();
        let ask = |(host, name): (usize, &&str)| {
            let left = u32::try_from(names.len() - host).unwrap_or(u32::MAX);
            let share = deadline.within(deadline.remaining() / left);
            let found = self.hosts.ask_one(host, &share, |connection, deadline| {
                self.requests.status(connection, deadline)
            });
            Status {
                host: String::from(*name),
                found: found.map_err(Failure::from),
            }
        };
        names.iter().enumerate().map(ask).collect()
    }

    fn ask<T>(
        &self,
        is_repeatable: bool,
        deadline: &Deadline,
        ask: impl FnMut(&mut Connection, &Deadline) -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        let (answer, used) = self.hosts.ask(is_repeatable, deadline, ask)?;
        self.hosts.put_back(used);
        Ok(answer)
    }
}
