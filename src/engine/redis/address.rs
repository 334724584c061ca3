//! What a `redis://`, `rediss://`, `valkey://`, `valkeys://` or `unix://` URL says.

use std::path::{Path, PathBuf};

use crate::base::error::Result;
use crate::engine::net::address::{Authority, Endpoint, Login, Password, number};
use crate::engine::url::invalid_url;
use crate::engine::url::parts::{Parts, decoded};
use crate::engine::url::query::Query;

/// Where a server is, and who we are to it.
#[derive(Debug)]
pub(super) struct Address {
    pub(super) endpoint: Endpoint,
    pub(super) tls: bool,
    /// Certificates to trust instead of the system's.
    pub(super) ca: Option<PathBuf>,
    pub(super) login: Login,
    pub(super) database: u32,
    /// For errors: the URL without user and password.
    pub(super) shown: String,
}

const PORT: u16 = 6379;

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
    let authority = Authority::parse(parts.authority.unwrap_or_default(), PORT);
    let Authority { login, servers } = authority.map_err(|reason| format!("{reason}: {FORM}"))?;
    let Ok([server]) = <[_; 1]>::try_from(servers) else {
        return Err("several addresses aren't supported: name one server".into());
    };
    if login.user.is_some() && login.password.is_none() {
        return Err("a user needs a password: use redis://user:password@host/".into());
    }
    let tls = matches!(scheme, "rediss" | "valkeys");
    let database = match parts.path {
        "" | "/" => 0,
        path => database(&path[1..])?,
    };
    let mut query = Query::of(parts.query)?;
    let ca = if tls { query.take("ca") } else { None };
    let known = if tls { "ca" } else { "none; a database is /N" };
    query.finish(known, show_keys)?;
    Ok(Address {
        shown: format!("{scheme}://{server}/{database}"),
        endpoint: Endpoint::Tcp(server),
        tls,
        ca: ca.map(PathBuf::from),
        login,
        database,
    })
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
    let database = query.take("db").map_or(Ok(0), |db| database(&db))?;
    query.finish("db, user, pass", false)?;
    Ok(Address {
        shown: format!("unix://{path}?db={database}"),
        endpoint: Endpoint::Unix(path.into()),
        tls: false,
        ca: None,
        login,
        database,
    })
}

fn database(text: &str) -> Result<u32, String> {
    number(text).ok_or_else(|| "its database isn't a number: use redis://host:port/0".into())
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
        match parse(url).unwrap().endpoint {
            Endpoint::Tcp(server) => (server.host, server.port),
            Endpoint::Unix(path) => panic!("{}", path.display()),
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
            matches!(&address.endpoint, Endpoint::Unix(p) if p.to_str() == Some("/run/my redis.sock"))
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
            assert_eq!(shown.endpoint, address.endpoint);
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
