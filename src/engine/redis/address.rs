//! What a `redis://`, `rediss://`, `valkey://`, `valkeys://` or `unix://` URL says.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;
use url::{Host, Url};

use crate::base::error::Result;
use crate::engine::url::invalid_url;

/// Where a server is, and who we are to it.
#[derive(Debug)]
pub(super) struct Address {
    pub(super) place: Place,
    pub(super) tls: bool,
    /// Certificates to trust instead of the system's.
    #[cfg_attr(not(feature = "tls"), expect(dead_code))]
    pub(super) ca: Option<PathBuf>,
    pub(super) user: Option<String>,
    pub(super) password: Option<Password>,
    pub(super) database: u32,
    /// For errors: the URL without user and password.
    pub(super) shown: String,
}

#[derive(Debug)]
pub(super) enum Place {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

/// A password, which its `Debug` output hides.
pub(super) struct Password(String);

impl Password {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

const PORT: u16 = 6379;

/// Understands all of a URL, or says which part it doesn't.
pub(super) fn parse(text: &str) -> Result<Address> {
    understand(text).map_err(|reason| invalid_url(text, &reason))
}

fn understand(text: &str) -> Result<Address, String> {
    if text.trim() != text {
        return Err("there is space around it".into());
    }
    if has_several_addresses(text) {
        return Err("several addresses aren't supported: name one server".into());
    }
    let url = Url::parse(text).map_err(|e| {
        format!(
            "{e}: use redis://user:password@host:port/0, with %2F for / and %23 for # in a password"
        )
    })?;
    if url.fragment().is_some() {
        return Err("a # has no meaning here: write %23 where it belongs to a part".into());
    }
    if url.scheme() == "unix" {
        unix(&url)
    } else {
        tcp(&url)
    }
}

/// As clients of clusters and Sentinels take them.
fn has_several_addresses(text: &str) -> bool {
    let place = text.split_once("://").map_or("", |(_, rest)| rest);
    let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
    let authority = place.split(['/', '?', '#']).next().unwrap_or_default();
    !text.starts_with("unix:") && authority.contains(',')
}

fn tcp(url: &Url) -> Result<Address, String> {
    let tls = matches!(url.scheme(), "rediss" | "valkeys");
    let host = match url.host() {
        None | Some(Host::Domain("")) => {
            return Err("it names no host: use redis://host:port/".into());
        }
        Some(Host::Domain(name)) => decoded(name)?,
        Some(Host::Ipv4(address)) => address.to_string(),
        Some(Host::Ipv6(address)) => address.to_string(),
    };
    let port = url.port().unwrap_or(PORT);
    let database = match url.path() {
        "" | "/" => 0,
        path => number(&path[1..])?,
    };
    let mut query = Query::of(url)?;
    let ca = if tls {
        query.take("ca").map(PathBuf::from)
    } else {
        None
    };
    query.finish(url, if tls { "ca" } else { "none; a database is /N" })?;
    let user = Some(decoded(url.username())?).filter(|user| !user.is_empty());
    let password = url.password().map(decoded).transpose()?;
    let shown = match url.host() {
        Some(Host::Ipv6(_)) => format!("{}://[{host}]:{port}/{database}", url.scheme()),
        _ => format!("{}://{host}:{port}/{database}", url.scheme()),
    };
    finish(Address {
        place: Place::Tcp { host, port },
        tls,
        ca,
        user,
        password: password.map(Password),
        database,
        shown,
    })
}

fn unix(url: &Url) -> Result<Address, String> {
    if url.host_str().is_some_and(|host| !host.is_empty()) || !url.username().is_empty() {
        return Err("a socket is named by its whole path: use unix:///path.sock".into());
    }
    let path = decoded(url.path())?;
    if !path.starts_with('/') || path.len() < 2 {
        return Err("it names no socket: use unix:///path.sock".into());
    }
    if socket2::SockAddr::unix(&path).is_err() {
        return Err(format!("a socket's path can't have {} bytes", path.len()));
    }
    let mut query = Query::of(url)?;
    let (user, password) = (query.take("user"), query.take("pass"));
    let database = query.take("db").map_or(Ok(0), |db| number(&db))?;
    query.finish(url, "db, user, pass")?;
    let shown = format!("unix://{path}?db={database}");
    let (place, password) = (Place::Unix(path.into()), password.map(Password));
    finish(Address {
        place,
        tls: false,
        ca: None,
        user,
        password,
        database,
        shown,
    })
}

fn finish(address: Address) -> Result<Address, String> {
    if address.user.is_some() && address.password.is_none() {
        return Err(match address.place {
            Place::Tcp { .. } => "a user needs a password: use redis://user:password@host/".into(),
            Place::Unix(_) => "a user needs a password: use ?user=USER&pass=PASSWORD".into(),
        });
    }
    Ok(address)
}

fn decoded(text: &str) -> Result<String, String> {
    let is_escape = |rest: &str| {
        let mut digits = rest.bytes().take(2).filter(u8::is_ascii_hexdigit);
        digits.next().is_some() && digits.next().is_some()
    };
    if !text.split('%').skip(1).all(is_escape) {
        return Err("a % in it isn't followed by two hexadecimal digits: write %25 for %".into());
    }
    let decoded = percent_decode_str(text).decode_utf8();
    decoded
        .map(Cow::into_owned)
        .map_err(|_| "a part of it isn't UTF-8 behind its %".into())
}

fn number(text: &str) -> Result<u32, String> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let number = if digits { text.parse().ok() } else { None };
    number.ok_or_else(|| "its database isn't a number: use redis://host:port/0".into())
}

/// The query, each key of which must be taken once.
struct Query(Vec<(String, String)>);

impl Query {
    fn of(url: &Url) -> Result<Self, String> {
        let mut pairs = Vec::new();
        for part in url
            .query()
            .unwrap_or("")
            .split('&')
            .filter(|part| !part.is_empty())
        {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            pairs.push((decoded(key)?, decoded(value)?));
        }
        Ok(Query(pairs))
    }

    fn take(&mut self, key: &str) -> Option<String> {
        let at = self.0.iter().position(|(k, _)| k == key)?;
        Some(self.0.remove(at).1)
    }

    fn finish(self, url: &Url, known: &str) -> Result<(), String> {
        let Some((key, _)) = self.0.first() else {
            return Ok(());
        };
        // What looks like a key may be the end of a password with an & or a ? in it.
        let secretive = url.scheme() == "unix" || url.as_str().contains('@');
        let key = if secretive { "…" } else { key };
        Err(format!(
            "its query key `{key}` isn't known, or is there twice; known: {known}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::Error;
    use proptest::prelude::*;

    fn reason(url: &str) -> String {
        match parse(url) {
            Err(Error::InvalidUrl { reason, .. }) => reason,
            other => panic!("{url}: {other:?}"),
        }
    }

    fn host_and_port(url: &str) -> (String, u16) {
        match parse(url).unwrap().place {
            Place::Tcp { host, port } => (host, port),
            Place::Unix(path) => panic!("{}", path.display()),
        }
    }

    #[test]
    fn every_part_is_understood() {
        let address = parse("redis://me:p%40ss%3F@example.org:1234/7").unwrap();
        assert_eq!(address.user.as_deref(), Some("me"));
        assert_eq!(address.password.as_ref().unwrap().as_str(), "p@ss?");
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
            (address.user, address.password.unwrap().as_str()),
            (None, "secret")
        );
    }

    #[test]
    fn unix_sockets_have_login_and_database_in_the_query() {
        let address = parse("unix:///run/my%20redis.sock?db=3&user=u&pass=p%26q").unwrap();
        assert!(
            matches!(&address.place, Place::Unix(p) if p.to_str() == Some("/run/my redis.sock"))
        );
        assert_eq!((address.user.as_deref(), address.database), (Some("u"), 3));
        assert_eq!(address.password.unwrap().as_str(), "p&q");
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

    proptest! {
        #[test]
        fn nothing_makes_the_parser_panic(rest in "\\PC{0,60}", scheme in "redis|rediss|unix") {
            let _ = parse(&format!("{scheme}:{rest}"));
            let _ = parse(&format!("{scheme}://{rest}"));
        }

        #[test]
        fn password_comes_back_as_it_was(password in "\\PC{1,20}") {
            let escaped: String = password.bytes().map(|b| format!("%{b:02X}")).collect();
            let address = parse(&format!("redis://:{escaped}@h")).unwrap();
            let found = address.password.unwrap();
            prop_assert_eq!(found.as_str(), password);
        }
    }
}
