//! What a `redis://`, `rediss://`, `valkey://`, `valkeys://` or `unix://` URL says, and with `+sentinel` or `+cluster` behind
//! the scheme.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::base::error::Result;
use crate::engine::net::address::{Authority, Endpoint, HostPort, Login, Password, number};
use crate::engine::url::invalid_url;
use crate::engine::url::parts::{Parts, decoded};
use crate::engine::url::query::Query;

/// Where servers are, and who we are to them.
#[derive(Debug)]
pub(super) struct Address {
    pub(super) at: At,
    pub(super) tls: bool,
    /// Certificates to trust instead of the system's.
    pub(super) ca: Option<PathBuf>,
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
}

/// Options that a URL has, too. There they go before those of the builder.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) min_replicas: Option<u32>,
    pub(super) replica_timeout: Option<Duration>,
    pub(super) clock_skew: Option<Duration>,
}

const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

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
        scheme => tcp(scheme, parts, !url.contains('@')),
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
    let hosts: Vec<_> = servers.iter().map(HostPort::to_string).collect();
    let hosts = hosts.join(",");
    let mut query = Query::of(parts.query)?;
    let (at, database, shown) = match kind {
        "" => {
            let database = database(parts.path)?;
            let endpoint = Endpoint::Tcp(only(servers)?);
            (At::One(endpoint), database, format!("{hosts}/{database}"))
        }
        "sentinel" => {
            let (master, database) = master(parts.path)?;
            let shown = format!("{hosts}/{master}/{database}");
            (sentinels(servers, master, &mut query)?, database, shown)
        }
        "cluster" => match database(parts.path)? {
            0 => (At::Cluster { hosts: servers }, 0, hosts),
            _ => return Err("a cluster has database 0 alone: leave the path out".into()),
        },
        _ => return Err(format!("there is no +{kind}: use +sentinel or +cluster")),
    };
    let ca = if tls { query.take("ca") } else { None };
    let given = Given::take(&mut query)?;
    query.finish(&known(tls, kind), show_keys)?;
    Ok(Address {
        at,
        shown: format!("{scheme}://{shown}"),
        tls,
        ca: ca.map(PathBuf::from),
        login,
        database,
        given,
    })
}

fn only(servers: Vec<HostPort>) -> Result<HostPort, String> {
    let [server] = <[_; 1]>::try_from(servers)
        .map_err(|_| "several addresses are of redis+sentinel:// or redis+cluster://: name one")?;
    Ok(server)
}

/// The name of a master, and a database.
fn master(path: &str) -> Result<(String, u32), String> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let (name, rest) = path.split_at(path.find('/').unwrap_or(path.len()));
    let name = decoded(name)?;
    if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err("it names no master: use redis+sentinel://host,host/mymaster".into());
    }
    Ok((name, database(rest)?))
}

fn sentinels(hosts: Vec<HostPort>, master: String, query: &mut Query) -> Result<At, String> {
    let login = Login {
        user: query.take("sentinel_username"),
        password: query.take("sentinel_password").map(Password::new),
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
        known += "ca, ";
    }
    if kind == "sentinel" {
        known += "sentinel_username, sentinel_password, ";
    }
    known + GIVEN
}

const GIVEN: &str = "min_replicas, replica_timeout, clock_skew; a database is /N";

impl Given {
    fn take(query: &mut Query) -> Result<Self, String> {
        let min_replicas = match query.take("min_replicas") {
            Some(text) => {
                let least = number(&text);
                Some(least.ok_or("its min_replicas isn't a number: use ?min_replicas=1")?)
            }
            None => None,
        };
        Ok(Given {
            min_replicas,
            replica_timeout: query.take_duration("replica_timeout")?,
            clock_skew: query.take_duration("clock_skew")?,
        })
    }
}

fn unix(parts: Parts<'_>) -> Result<Address, String> {
    if !parts.authority.unwrap_or_default().is_empty() {
        return Err("a socket is named by its whole path: use unix:///path.sock".into());
    }
    let path = decoded(parts.path)?;
    if !path.starts_with('/') || Path::new(&path).file_name().is_none() {
        return Err("it names no socket: use unix:///path.sock".into());
    }
    if socket2::SockAddr::unix(&path).is_err() {
        return Err(format!("a socket's path can't have {} bytes", path.len()));
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
        login,
        database,
        given,
    })
}

const NO_DATABASE: &str = "its database isn't a number: use redis://host:port/0";

fn database(path: &str) -> Result<u32, String> {
    match path {
        "" | "/" => Ok(0),
        path => Ok(number(&path[1..]).ok_or(NO_DATABASE)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::Error;
    use crate::base::random::for_any;

    fn reason(url: &str) -> String {
        match parse(url) {
            Err(Error::InvalidUrl { reason, .. }) => reason,
            other => panic!("{url}: {other:?}"),
        }
    }

    fn host_and_port(url: &str) -> (String, u16) {
        match parse(url).unwrap().at {
            At::One(Endpoint::Tcp(server)) => (server.host, server.port),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_part_is_understood() {
        let address = parse("redis://me:p%40ss%3F@example.org:1234/7").unwrap();
        assert_eq!(address.login.user.as_deref(), Some("me"));
        assert_eq!(address.login.password.as_ref().unwrap().as_str(), "p@ss?");
        assert_eq!(address.database, 7);
        assert_eq!(address.shown, "redis://example.org:1234/7");
        assert_eq!(
            host_and_port("redis://example.org:1234/7"),
            ("example.org".into(), 1234)
        );
        assert_eq!(host_and_port("redis://[::1]/"), ("::1".into(), 6379));
        assert_eq!(host_and_port("redis://h"), ("h".into(), 6379));
        let address = parse("redis://:secret@h").unwrap();
        assert_eq!(
            (address.login.user, address.login.password.unwrap().as_str()),
            (None, "secret")
        );
    }

    #[test]
    fn unix_sockets_have_login_and_database_in_the_query() {
        let address = parse("unix:///run/my%20redis.sock?db=3&user=u&pass=p%26q").unwrap();
        assert!(
            matches!(&address.at, At::One(Endpoint::Unix(p)) if p.to_str() == Some("/run/my redis.sock"))
        );
        assert_eq!(
            (address.login.user.as_deref(), address.database),
            (Some("u"), 3)
        );
        assert_eq!(address.login.password.unwrap().as_str(), "p&q");
    }

    #[test]
    fn parts_that_are_not_understood_are_named() {
        assert!(reason("redis://h/0?timeout=3").contains("`timeout`"));
        assert!(reason("redis://h/0?ca=/x").contains("`ca`"));
        assert!(reason("unix:///s?db=1&db=2").contains("db, user, pass"));
        assert!(reason("redis://h/x").contains("database"));
        assert!(reason("redis://h/-1").contains("database"));
        assert!(reason("redis://h/1/2").contains("database"));
        assert!(reason("redis://h/99999999999").contains("database"));
        assert!(reason("redis://h/#x").contains('#'));
        assert!(reason("redis:///0").contains("host"));
        assert!(reason("redis://u@h/").contains("password"));
        assert!(reason("unix:///s?user=u").contains("?user="));
        assert!(reason("redis://:pa/ss@h/").contains("%2F"));
        assert!(reason("redis://:p%ss@h/").contains("%25"));
        assert!(reason("redis://:p%a@h/").contains("%25"));
        assert!(reason("redis://h/ ").contains("space"));
        assert!(reason("redis://h:x/").contains("redis://"));
        assert!(reason("unix://run/s").contains("unix:///"));
        assert!(reason("unix:///").contains("unix:///"));
        assert!(reason("unix:///..").contains("unix:///"));
        assert!(reason(&format!("unix:///{}", "x".repeat(200))).contains("201 bytes"));
    }

    #[test]
    fn sentinels_know_the_master_of_a_name() {
        let url = "rediss+sentinel://u:p@a,b:1/my%20master/2?sentinel_password=s&min_replicas=1";
        let reason = reason(url);
        assert!(reason.contains("mymaster"), "{reason}");
        let address = parse(&url.replace("%20", "-")).unwrap();
        let At::Sentinels {
            hosts,
            master,
            login,
        } = &address.at
        else {
            panic!("{address:?}")
        };
        let hosts: Vec<_> = hosts.iter().map(HostPort::to_string).collect();
        assert_eq!(
            (hosts.join(","), &**master),
            ("a:26379,b:1".into(), "my-master")
        );
        assert_eq!(login.password.as_ref().unwrap().as_str(), "s");
        assert_eq!(address.login.user.as_deref(), Some("u"));
        assert_eq!(address.shown, "rediss+sentinel://a:26379,b:1/my-master/2");
        assert_eq!(address.given.min_replicas, Some(1));
        assert!(address.tls && address.database == 2);
    }

    #[test]
    fn cluster_is_named_by_some_of_its_nodes() {
        let address =
            parse("valkey+cluster://a:7000,[::1]/?clock_skew=20ms&replica_timeout=1s").unwrap();
        assert_eq!(address.shown, "valkey+cluster://a:7000,[::1]:6379");
        assert_eq!(address.given.clock_skew, Some(Duration::from_millis(20)));
        assert_eq!(address.given.replica_timeout, Some(Duration::from_secs(1)));
        for (url, words) in [
            ("redis+cluster://a/1", "database 0"),
            ("redis+sentinel://a", "mymaster"),
            ("redis+sentinel://a/m?sentinel_username=u", "password"),
            ("redis+cluster://a/?sentinel_password=s", "min_replicas"),
            ("redis+x://a", "+cluster"),
            ("redis://a,b", "redis+cluster://"),
            ("redis://a/?min_replicas=-1", "min_replicas"),
            ("redis://a/?clock_skew=1", "clock_skew"),
        ] {
            assert!(reason(url).contains(words), "{url}: {}", reason(url));
        }
    }

    #[test]
    fn debug_output_hides_the_password() {
        let address = parse("redis://u:secret@h").unwrap();
        assert!(!format!("{address:?}").contains("secret"));
    }

    #[cfg(feature = "tls")]
    #[test]
    fn certificates_to_trust_are_a_query_key() {
        let address = parse("rediss://h/?ca=/etc/my%20ca.pem").unwrap();
        assert!(address.tls);
        assert_eq!(address.ca.unwrap().to_str(), Some("/etc/my ca.pem"));
    }

    #[test]
    fn nothing_makes_the_parser_panic() {
        for_any(|random| {
            let (rest, scheme) = (
                random.text(0..=60),
                random.one_of(&["redis", "rediss", "unix"]),
            );
            let _ = parse(&format!("{scheme}:{rest}"));
            let _ = parse(&format!("{scheme}://{rest}"));
        });
    }

    #[test]
    fn address_that_is_shown_leads_to_the_same_place() {
        for_any(|random| {
            let user = random.text_of("abcxyz", 0..=3);
            let host = match random.u8(..4) {
                0 => "[::1]".to_owned(),
                _ => random.text_of("abzAZ09.-", 1..=20),
            };
            let (port, database) = (random.u16(..), random.u32(..));
            let address = parse(&format!("redis://{user}:!!!@{host}:{port}/{database}")).unwrap();
            assert!(!address.shown.contains("!!!"));
            let shown = parse(&address.shown).unwrap();
            assert_eq!(shown.at, address.at);
            assert_eq!(shown.database, database);
        });
    }

    #[test]
    fn password_comes_back_as_it_was() {
        for_any(|random| {
            let password = random.text(1..=20);
            let escaped: String = password.bytes().map(|b| format!("%{b:02X}")).collect();
            let address = parse(&format!("redis://:{escaped}@h")).unwrap();
            let found = address.login.password.unwrap();
            assert_eq!(found.as_str(), password);
        });
    }
}
