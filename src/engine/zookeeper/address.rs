//! What a `zk://` or `zks://` URL says.

use std::{path::PathBuf, time::Duration};

use crate::engine::net::address::{Authority, HostPort, Password};
use crate::engine::url::{Parts, Query, decoded, invalid_url};
use crate::{base::Result, engine::net::tls::OwnCertificate};

/// The servers of a URL, and the login for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) hosts: Vec<HostPort>,
    pub(super) tls: bool,
    /// Certificates to trust instead of the system's.
    pub(super) ca: Option<PathBuf>,
    /// By which servers know us.
    pub(super) own: Option<OwnCertificate>,
    /// The node under which all others are: "" or `/a/b`.
    pub(super) chroot: String,
    pub(super) auth: Option<Auth>,
    /// The servers' tickTime, if the URL says it.
    pub(super) tick: Option<Duration>,
    /// For errors: the URL without login.
    pub(super) shown: String,
}

/// The login for servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Auth {
    pub(super) scheme: String,
    /// Of the scheme `digest`: `user:password`.
    pub(super) credentials: Password,
}

const PORT: u16 = 2181;

/// That of TLS in ZooKeeper's own examples: there is no other default.
const SECURE_PORT: u16 = 2281;

const FORM: &str = "use zk://host:2181,host:2181/chroot?auth=digest:user:password, with %26 for &, \
                    %23 for # and %25 for % in a password";

/// Understands all of a URL, or says which part it doesn't.
pub(super) fn parse(url: &str) -> Result<Address> {
    understand(url).map_err(|reason| invalid_url(url, &reason))
}

fn understand(url: &str) -> Result<Address, String> {
    let (scheme, _) = url.split_once(':').ok_or(FORM)?;
    let scheme = scheme.to_ascii_lowercase();
    let tls = scheme == "zks";
    let parts = Parts::of(url)?;
    let authority = parts.authority.unwrap_or_default();
    // A password that isn't escaped may have parted the URL, and then be taken for a path, or for a query key.
    if authority.contains('@') || parts.path.contains('@') {
        return Err(
            "a login can't precede the hosts: use ?auth=digest:user:password, and write @ as %40"
                .into(),
        );
    }
    let Authority { servers: hosts, .. } =
        Authority::parse(authority, if tls { SECURE_PORT } else { PORT })
            .map_err(|reason| format!("{reason}: {FORM}"))?;
    let chroot = chroot(parts.path)?;
    let mut query = Query::of(parts.query)?;
    let auth = query.take("auth").map(|text| Auth::parse(&text));
    let auth = auth.transpose()?;
    let tick = query.take_duration("tick")?;
    if tick.is_some_and(|tick| tick.is_zero()) {
        return Err("`tick` is 0: use the tickTime of the servers, such as ?tick=2s".into());
    }
    let ((ca, own), known) = match tls {
        true => (query.take_certificates()?, "auth, tick, ca, cert, key"),
        false => ((None, None), "auth, tick; with zks:// also ca, cert, key"),
    };
    query.finish(known, shows_keys(url, parts.query))?;
    let shown: Vec<_> = hosts.iter().map(HostPort::to_string).collect();
    Ok(Address {
        shown: format!("{scheme}://{}{chroot}", shown.join(",")),
        hosts,
        tls,
        ca,
        own: own.map(|(chain, key)| OwnCertificate { chain, key }),
        chroot,
        auth,
        tick,
    })
}

/// Whether an error may show the keys of a query: a login without its key would be taken for one.
fn shows_keys(url: &str, query: Option<&str>) -> bool {
    let has_login = query.is_some_and(|query| query.contains(':') || query.contains("%3"));
    !url.contains('@') && !url.contains("auth") && !has_login
}

/// A path as servers take it, without a slash at its end.
fn chroot(path: &str) -> Result<String, String> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let mut chroot = String::new();
    for part in path.split('/').skip(1) {
        let part = decoded(part)?;
        if part.is_empty() || part == "." || part == ".." {
            return Err("the path has an empty part, a . or a ..: use zk://host/a/b".into());
        }
        if part.contains(is_odd) {
            return Err("the path contains a character that a node's name can't have".into());
        }
        chroot = format!("{chroot}/{part}");
    }
    if chroot == "/zookeeper" || chroot.starts_with("/zookeeper/") {
        return Err("the servers use /zookeeper: use another path".into());
    }
    Ok(chroot)
}

/// What servers take in no path, and a slash that was escaped.
fn is_odd(char: char) -> bool {
    char == '/'
        || char.is_control()
        || ('\u{e000}'..='\u{f8ff}').contains(&char)
        || ('\u{fff0}'..='\u{ffff}').contains(&char)
}

impl Auth {
    fn parse(text: &str) -> Result<Self, String> {
        const FORM: &str = "`auth` isn't SCHEME:CREDENTIALS: use ?auth=digest:user:password";
        let (scheme, credentials) = text.split_once(':').ok_or(FORM)?;
        let is_user_and_password = |text: &str| {
            text.split_once(':')
                .is_some_and(|(user, _)| !user.is_empty())
        };
        if scheme.is_empty()
            || credentials.is_empty()
            || (scheme == "digest" && !is_user_and_password(credentials))
        {
            return Err(FORM.into());
        }
        Ok(Auth {
            scheme: scheme.to_owned(),
            credentials: Password::new(credentials.to_owned()),
        })
    }
}

#[cfg(test)]
mod tests;
