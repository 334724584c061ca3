//! What a `redis://`, `rediss://`, `valkey://`, `valkeys://` or `unix://` URL says, also with `+sentinel`, `+cluster`
//! or `+quorum` behind the scheme; and what is the same for all of its servers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::base::{Options, Result, sys::net::can_be_socket};
use crate::engine::net::address::{Authority, Endpoint, HostPort, Login, Password, number};
use crate::engine::net::tls::{OwnCertificate, Trust};
use crate::engine::url::{Parts, Query, decoded, invalid_url};

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
    /// For how long after its start a server of a quorum doesn't vote.
    pub(super) rejoin: Duration,
    /// For errors: the URL without user and password.
    pub(super) shown: String,
}

/// How the server of a name is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Single,
    Sentinel,
    Cluster,
    Quorum,
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
            At::Quorum { .. } => Kind::Quorum,
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
            rejoin: given.rejoin.unwrap_or(REJOIN),
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
            rejoin: self.rejoin,
            shown: self.shown.clone(),
        }
    }
}

/// Where servers are, and who we are to them.
#[derive(Debug)]
pub(super) struct Address {
    pub(super) at: At,
    pub(super) tls: bool,
    /// Certificates to trust instead of the system's.
    pub(super) ca: Option<PathBuf>,
    /// By which servers know us.
    pub(super) own: Option<OwnCertificate>,
    pub(super) login: Login,
    pub(super) database: u32,
    pub(super) given: Given,
    /// For errors: the URL without user and password.
    pub(super) shown: String,
}

/// How the server that has a name is found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum At {
    /// It is this one.
    One(Endpoint),
    /// These know which server is the master of that name.
    Sentinels {
        hosts: Vec<HostPort>,
        master: String,
        login: Login,
    },
    /// These are some of a cluster's nodes.
    Cluster { hosts: Vec<HostPort> },
    /// It is what a majority of these say, which know nothing of each other.
    Quorum { hosts: Vec<HostPort> },
}

/// Options that a URL has, too. There they go before those of the builder.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) min_replicas: Option<u32>,
    pub(super) replica_timeout: Option<Duration>,
    pub(super) clock_skew: Option<Duration>,
    pub(super) rejoin: Option<Duration>,
}

/// The longest ttl with a quorum, unless its URL says otherwise.
const REJOIN: Duration = Duration::from_secs(60);

const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;
const SENTINEL_PASSWORD: &str = "sentinel_password";

const FORM: &str =
    "use redis://user:password@host:port/0, with %2F for /, %3F for ? and %25 for % in a password";

/// Understands all of a URL, or says which part it doesn't.
pub(super) fn parse(url: &str) -> Result<Address> {
    understand(url).map_err(|reason| invalid_url(url, &reason))
}

fn understand(url: &str) -> Result<Address, String> {
    let (scheme, _) = url.split_once(':').ok_or(FORM)?;
    let parts = Parts::of(url)?;
    match scheme.to_ascii_lowercase().as_str() {
        "unix" => unix(parts),
        // A password that isn't escaped may have parted the URL, and then be taken for a query key.
        scheme => {
            let has_secret = url.contains('@') || url.contains(SENTINEL_PASSWORD);
            tcp(scheme, parts, !parts.may_be_login() && !has_secret)
        }
    }
}

fn tcp(scheme: &str, parts: Parts<'_>, show_keys: bool) -> Result<Address, String> {
    let (server_scheme, kind) = scheme.split_once('+').unwrap_or((scheme, ""));
    let tls = matches!(server_scheme, "rediss" | "valkeys");
    let port = if kind == "sentinel" {
        SENTINEL_PORT
    } else {
        PORT
    };
    let authority = Authority::parse(parts.authority.unwrap_or_default(), port);
    let Authority { login, servers } = authority.map_err(|reason| format!("{reason}: {FORM}"))?;
    has_password(&login)?;
    let mut query = Query::of(parts.query)?;
    let (at, database, shown) = place(kind, servers, parts.path, &mut query)?;
    let (ca, own) = match tls {
        true => query.take_certificates()?,
        false => (None, None),
    };
    let mut given = Given::take(&mut query)?;
    if kind == "quorum" {
        given.rejoin = query.take_duration("rejoin")?;
    }
    query.finish(&known(tls, kind), show_keys)?;
    Ok(Address {
        at,
        shown: format!("{scheme}://{shown}"),
        tls,
        ca,
        own: own.map(|(chain, key)| OwnCertificate { chain, key }),
        login,
        database,
        given,
    })
}

/// Where the servers are, the database, and both for errors.
fn place(
    kind: &str,
    servers: Vec<HostPort>,
    path: &str,
    query: &mut Query,
) -> Result<(At, u32, String), String> {
    let hosts: Vec<_> = servers.iter().map(HostPort::to_string).collect();
    let hosts = hosts.join(",");
    Ok(match kind {
        "" => {
            let database = database(path)?;
            let endpoint = Endpoint::Tcp(only(servers)?);
            (At::One(endpoint), database, format!("{hosts}/{database}"))
        }
        "sentinel" => {
            let (master, database) = master(path)?;
            let shown = format!("{hosts}/{master}/{database}");
            (sentinels(servers, master, query)?, database, shown)
        }
        "cluster" => match database(path)? {
            0 => (At::Cluster { hosts: servers }, 0, hosts),
            _ => return Err("a cluster has only database 0: leave the path out".into()),
        },
        "quorum" => {
            let database = database(path)?;
            let hosts_of_all = quorum(servers)?;
            (hosts_of_all, database, format!("{hosts}/{database}"))
        }
        _ => {
            return Err(format!(
                "+{kind} is unknown: use +sentinel, +cluster or +quorum"
            ));
        }
    })
}

fn only(servers: Vec<HostPort>) -> Result<HostPort, String> {
    let [server] = <[_; 1]>::try_from(servers)
        .map_err(|_| "it has several addresses: use one, or redis+sentinel://, redis+cluster:// or redis+quorum://")?;
    Ok(server)
}

/// Servers of which any two majorities have one in common, which a server that is named twice would be alone.
fn quorum(hosts: Vec<HostPort>) -> Result<At, String> {
    if !matches!(hosts.len(), 3 | 5 | 7 | 9) {
        return Err("a quorum has 3, 5, 7 or 9 servers: list all of them".into());
    }
    let is_twice = |(at, host): (usize, &HostPort)| hosts[..at].contains(host);
    if hosts.iter().enumerate().any(is_twice) {
        return Err("it lists a server twice: list each server once".into());
    }
    Ok(At::Quorum { hosts })
}

/// The name of a master, and a database.
fn master(path: &str) -> Result<(String, u32), String> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let (name, rest) = path.split_at(path.find('/').unwrap_or(path.len()));
    if name.contains('@') {
        // It would be shown.
        return Err(
            "write an @ in the name of a master as %40, and a / in a password as %2F".into(),
        );
    }
    let name = decoded(name)?;
    if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(
            "the name of the master is missing: use redis+sentinel://host,host/mymaster".into(),
        );
    }
    Ok((name, database(rest)?))
}

fn sentinels(hosts: Vec<HostPort>, master: String, query: &mut Query) -> Result<At, String> {
    let login = Login {
        user: query.take("sentinel_username"),
        password: query.take(SENTINEL_PASSWORD).map(Password::new),
    };
    has_password(&login)?;
    Ok(At::Sentinels {
        hosts,
        master,
        login,
    })
}

fn has_password(login: &Login) -> Result<(), String> {
    if login.user.is_some() && login.password.is_none() {
        return Err("a user needs a password: use redis://user:password@host/".into());
    }
    Ok(())
}

/// The query keys that such a URL may have.
fn known(tls: bool, kind: &str) -> String {
    let mut known = String::new();
    if tls {
        known += "ca, cert, key, ";
    }
    if kind == "sentinel" {
        known += "sentinel_username, sentinel_password, ";
    }
    if kind == "quorum" {
        known += "rejoin, ";
    }
    known + GIVEN
}

const GIVEN: &str = "min_replicas, replica_timeout, clock_skew; a database is /N";

impl Given {
    fn take(query: &mut Query) -> Result<Self, String> {
        let min_replicas = match query.take("min_replicas") {
            Some(text) => {
                let least = number(&text);
                Some(least.ok_or("`min_replicas` isn't a number: use ?min_replicas=1")?)
            }
            None => None,
        };
        Ok(Given {
            min_replicas,
            replica_timeout: query.take_duration("replica_timeout")?,
            clock_skew: query.take_duration("clock_skew")?,
            rejoin: None,
        })
    }
}

fn unix(parts: Parts<'_>) -> Result<Address, String> {
    if !parts.authority.unwrap_or_default().is_empty() {
        return Err("the path of the socket must be absolute: use unix:///path.sock".into());
    }
    let path = decoded(parts.path)?;
    if !path.starts_with('/') || Path::new(&path).file_name().is_none() {
        return Err("the path of the socket is missing: use unix:///path.sock".into());
    }
    if !can_be_socket(Path::new(&path)) {
        return Err(format!(
            "the path of the socket is too long: it has {} bytes",
            path.len()
        ));
    }
    let mut query = Query::of(parts.query)?;
    let login = Login {
        user: query.take("user"),
        password: query.take("pass").map(Password::new),
    };
    if login.user.is_some() && login.password.is_none() {
        return Err("a user needs a password: use ?user=USER&pass=PASSWORD".into());
    }
    let database = query
        .take("db")
        .map_or(Ok(0), |db| number(&db).ok_or(NO_DATABASE))?;
    let given = Given::take(&mut query)?;
    query.finish(
        "db, user, pass, min_replicas, replica_timeout, clock_skew",
        false,
    )?;
    Ok(Address {
        shown: format!("unix://{path}?db={database}"),
        at: At::One(Endpoint::Unix(path.into())),
        tls: false,
        ca: None,
        own: None,
        login,
        database,
        given,
    })
}

const NO_DATABASE: &str = "the database isn't a number: use redis://host:port/0";

fn database(path: &str) -> Result<u32, String> {
    match path {
        "" | "/" => Ok(0),
        path => Ok(number(&path[1..]).ok_or(NO_DATABASE)?),
    }
}

#[cfg(test)]
mod tests;
