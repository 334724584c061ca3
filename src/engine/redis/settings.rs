//! What is the same for all servers of a URL.

use std::time::Duration;

use super::address::{Address, At};
use crate::base::error::Result;
use crate::base::options::Options;
use crate::engine::net::address::Login;
use crate::engine::net::tls::Trust;

/// What is the same for all servers of a URL.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) kind: Kind,
    pub(super) login: Login,
    pub(super) database: u32,
    /// Whom to trust; `None`: connections are plain.
    pub(super) trust: Option<Trust>,
    /// Whether we have a certificate to show.
    pub(super) has_certificate: bool,
    pub(super) connect_timeout: Duration,
    pub(super) io_timeout: Duration,
    /// `None`: what is written needn't be on any replica.
    pub(super) replicas: Option<Replicas>,
    /// For errors: the URL without user and password.
    pub(super) shown: String,
}

/// How the server of a name is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Single,
    Sentinel,
    Cluster,
}

/// The replicas that must have what is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Replicas {
    pub(super) least: u32,
    pub(super) timeout: Duration,
}

impl Settings {
    pub(super) fn new(address: &Address, options: &Options) -> Result<Self> {
        let given = &address.given;
        let least = given.min_replicas.unwrap_or(options.min_replicas);
        let timeout = given.replica_timeout.unwrap_or(options.replica_timeout);
        let kind = match address.at {
            At::One(_) => Kind::Single,
            At::Sentinels { .. } => Kind::Sentinel,
            At::Cluster { .. } => Kind::Cluster,
        };
        let (ca, own) = (address.ca.as_deref(), address.own.as_ref());
        let trust = address.tls.then(|| Trust::new(ca, own, &address.shown));
        Ok(Settings {
            kind,
            login: address.login.clone(),
            database: address.database,
            trust: trust.transpose()?,
            has_certificate: own.is_some(),
            connect_timeout: options.connect_timeout,
            io_timeout: options.io_timeout,
            replicas: (least > 0).then_some(Replicas { least, timeout }),
            shown: address.shown.clone(),
        })
    }

    /// The scheme of a plain URL with TLS.
    pub(super) fn tls_scheme(&self) -> String {
        let scheme = self.shown.split(':').next().unwrap_or_default();
        let (server, kind) = scheme.split_at(scheme.find('+').unwrap_or(scheme.len()));
        format!("{server}s{kind}")
    }

    /// The same for servers that have another login, and no locks: sentinels.
    pub(super) fn of_sentinels(&self, login: Login) -> Self {
        Settings {
            kind: Kind::Single,
            login,
            database: 0,
            replicas: None,
            ..self.after_fork()
        }
    }

    /// The same for a child that was forked off.
    pub(super) fn after_fork(&self) -> Self {
        Settings {
            kind: self.kind,
            login: self.login.clone(),
            database: self.database,
            trust: self.trust.as_ref().map(Trust::after_fork),
            has_certificate: self.has_certificate,
            connect_timeout: self.connect_timeout,
            io_timeout: self.io_timeout,
            replicas: self.replicas,
            shown: self.shown.clone(),
        }
    }
}
