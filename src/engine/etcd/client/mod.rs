//! A client of etcd by its JSON gateway: requests over HTTP/1.1, each of which ends by its deadline.
//!
//! It uses `base`, `engine::net` and the address of its servers, and knows nothing of locks. What always holds here:
//! a connection is closed after any failure on it; what changes something is sent again only if no server has begun
//! with it.

use std::{sync::Arc, time::Duration};

use serde_json::json;

pub(super) use self::answers::{
    Answer, Event, KeptAlive, KeyValue, MemberStatus, OpResult, Status, Touched,
};
use self::failure::{Effect, HostFailure};
use self::hosts::{Hosts, Used};
use self::login::{Exchange, Login};
use self::proof::{Proof, Verdict};
pub(super) use self::txn::{Compare, LeaseId, Op, Range, Txn};
pub(super) use self::{failure::Failure, login::Watch, proof::MemberTerm};
use super::address::Address;
use crate::base::{Clock, Deadline, Options, Result};
use crate::engine::{Failed, net::tls::Trust};

mod answers;
mod connection;
mod failure;
#[cfg(fuzzing)]
pub(super) mod fuzzing;
mod hosts;
mod login;
mod proof;
mod txn;

/// A client of the servers of one URL.
#[derive(Debug)]
pub(super) struct Client {
    hosts: Arc<Hosts>,
    login: Login,
    clock: Arc<dyn Clock>,
    /// `None`: connections are plain.
    trust: Option<Trust>,
    endpoint: String,
    root: String,
}

/// How often a lease is kept alive until that is proven. Each time counts but for the first with a member, unless the
/// leader has changed.
const ROUNDS: u32 = 4;

const UNPROVEN: &str = "the leader changes repeatedly, or a proxy spreads requests over several members: then list \
                        the members in the URL";

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
        Ok(Client {
            hosts: Arc::new(hosts),
            login: Login::new(address.login),
            clock,
            trust,
            endpoint: address.shown,
            root: address.root,
        })
    }

    /// The same for a child that was forked off, without its parent's connections.
    pub(super) fn after_fork(&self) -> Self {
        let trust = self.trust.as_ref().map(Trust::after_fork);
        Client {
            hosts: Arc::new(self.hosts.after_fork(trust.as_ref())),
            login: self.login.after_fork(),
            clock: self.clock.clone(),
            trust,
            endpoint: self.endpoint.clone(),
            root: self.root.clone(),
        }
    }

    /// For errors: the URL, without user and password.
    pub(super) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// How long there is sense in asking again when there is no answer.
    pub(super) fn patience(&self) -> Duration {
        self.hosts.patience()
    }

    /// What all keys begin with, before a `/`; empty without.
    pub(super) fn root(&self) -> &str {
        &self.root
    }

    /// Carries out a transaction. One that changes something is sent to another host only if the first has begun with
    /// nothing.
    pub(super) fn transact(
        &self,
        txn: &Txn,
        deadline: &Deadline,
    ) -> Result<Answer, Failed<Failure>> {
        let body = txn.to_json();
        let ask = |host: &mut Exchange<'_>| host.transact(&body);
        let (answer, used) = self.exchange(txn.only_reads(), deadline, ask)?;
        self.hosts.put_back(used);
        Ok(answer)
    }

    /// Grants the lease of that number, which a host that didn't answer may have granted already: before, or in this
    /// call. Says for how many seconds: the servers may give more than what was asked.
    pub(super) fn grant_lease(
        &self,
        (lease, mut may_be_there): (LeaseId, bool),
        seconds: u64,
        deadline: &Deadline,
    ) -> Result<u64, Failure> {
        let body = json!({ "ID": lease.0.to_string(), "TTL": seconds.to_string() });
        self.ask(deadline, |host| {
            let may_be_there = std::mem::replace(&mut may_be_there, true);
            match host.ask("/v3/lease/grant", &body, answers::lease) {
                Ok((granted, seconds)) if granted == lease => Ok(seconds),
                Ok(_) => Err(HostFailure::surprised()),
                Err(failed) if may_be_there && matches!(failed.why, Failure::LeaseExists) => {
                    host.ask(TIME_TO_LIVE, &lease.to_json(), answers::granted_for)
                }
                Err(failed) => Err(failed),
            }
        })
    }

    /// Ends a lease, with all keys that it has; a transaction that comes later with it is refused. One that is gone
    /// already is fine.
    pub(super) fn revoke(&self, lease: LeaseId, deadline: &Deadline) -> Result<(), Failure> {
        let ask =
            |host: &mut Exchange<'_>| host.ask("/v3/lease/revoke", &lease.to_json(), |_| Some(()));
        match self.ask(deadline, ask) {
            Err(Failure::LeaseGone) => Ok(()),
            revoked => revoked,
        }
    }

    /// Keeps the lease alive, and then carries out `look`, which only reads, and reads one key at least.
    pub(super) fn keep_alive(
        &self,
        lease: LeaseId,
        look: &Txn,
        deadline: &Deadline,
    ) -> Result<KeptAlive, Failure> {
        debug_assert!(look.only_reads() && look.reads());
        let look = look.to_json();
        self.ask(deadline, |host| {
            let mut proof = Proof::after(host.connection.seen());
            for _ in 0..ROUNDS {
                let since = self.clock.now();
                let renewal = host.renew(lease)?;
                let answer = host.transact(&look)?;
                let since = match proof.judge(renewal, answer.by) {
                    Verdict::Kept => Some(since),
                    Verdict::Gone => None,
                    Verdict::Unproven => continue,
                };
                return Ok(KeptAlive { since, answer });
            }
            Err(Effect::Unclear.by(Failure::Unreachable(UNPROVEN.into())))
        })
    }

    /// Asks a member to keep the lease alive that is known to be in a term, and says so again; reads nothing. `None`:
    /// it isn't, or says no. Whether the lease is kept alive is then to be proved.
    pub(super) fn touch(
        &self,
        lease: LeaseId,
        deadline: &Deadline,
    ) -> Result<Option<Touched>, Failure> {
        self.ask(deadline, |host| {
            let (since, known) = (self.clock.now(), host.connection.seen());
            let renewal = host.renew(lease)?;
            let by = known.filter(|_| renewal.is_there && renewal.by == known);
            Ok(by.map(|by| Touched { lease, since, by }))
        })
    }

    /// How many seconds a lease lasts if it isn't kept alive; `None`: it is gone.
    pub(super) fn time_to_live(
        &self,
        lease: LeaseId,
        deadline: &Deadline,
    ) -> Result<Option<u64>, Failure> {
        self.ask(deadline, |host| {
            host.ask(TIME_TO_LIVE, &lease.to_json(), answers::time_to_live)
        })
    }

    /// Watches for deletions, and `puts` if asked for, from now on.
    pub(super) fn watch(
        &self,
        ranges: &[Range],
        puts: bool,
        deadline: &Deadline,
    ) -> Result<Watch, Failure> {
        let begin = || {
            self.exchange(true, deadline, |host| {
                login::Messages::begin(host, ranges, puts)
            })
        };
        let begun = match begin() {
            Err(failed) if failed.may_be_of_old_token() && self.login.renew() => begin(),
            begun => begun,
        };
        let (messages, used) = begun?;
        Ok(Watch::new(messages, used, self.hosts.clone()))
    }

    /// Asks one host what it says of itself.
    pub(super) fn any_status(&self, deadline: &Deadline) -> Result<MemberStatus, Failure> {
        self.ask(deadline, |host| host.status())
    }

    /// Asks each host of the URL what it says of itself.
    pub(super) fn status(&self, deadline: &Deadline) -> Vec<Status> {
        let names: Vec<_> = self.hosts.names().collect();
        let ask = |(host, name): (usize, &&str)| {
            let left = u32::try_from(names.len() - host).unwrap_or(u32::MAX);
            let share = deadline.within(deadline.remaining() / left);
            let found = self.hosts.ask_one(host, &share, |connection, deadline| {
                Exchange::new(connection, &self.login, deadline).status()
            });
            Status {
                host: String::from(*name),
                found: found.map_err(Failure::from),
            }
        };
        names.iter().enumerate().map(ask).collect()
    }

    /// Asks for what is harmless to do twice.
    fn ask<T>(
        &self,
        deadline: &Deadline,
        ask: impl FnMut(&mut Exchange<'_>) -> Result<T, HostFailure>,
    ) -> Result<T, Failure> {
        let (answer, used) = self.exchange(true, deadline, ask)?;
        self.hosts.put_back(used);
        Ok(answer)
    }

    fn exchange<T>(
        &self,
        is_repeatable: bool,
        deadline: &Deadline,
        mut ask: impl FnMut(&mut Exchange<'_>) -> Result<T, HostFailure>,
    ) -> Result<(T, Used), HostFailure> {
        self.hosts
            .ask(is_repeatable, deadline, |connection, deadline| {
                ask(&mut Exchange::new(connection, &self.login, deadline))
            })
    }
}

const TIME_TO_LIVE: &str = "/v3/lease/timetolive";
