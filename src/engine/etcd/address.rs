//! What an `etcd://` or `etcds://` URL says.

use std::path::PathBuf;

use crate::engine::net::address::{Authority, HostPort, Login};
use crate::engine::url::{Parts, Query, decoded, invalid_url};
use crate::{base::Result, engine::net::tls::OwnCertificate};

/// The servers of a URL, and the login for them.
#[derive(Debug)]
pub(super) struct Address {
    /// One at least.
    pub(super) hosts: Vec<HostPort>,
    pub(super) tls: bool,
    /// Certificates to trust instead of the system's.
    pub(super) ca: Option<PathBuf>,
    /// By which servers know us.
    pub(super) own: Option<OwnCertificate>,
    pub(super) login: Login,
    /// What all keys begin with, before a `/`: without slashes around it, and empty without.
    pub(super) root: String,
    /// For errors: the URL without user, password and query.
    pub(super) shown: String,
}

const PORT: u16 = 2379;

const FORM: &str = "use etcd://user:password@host:port,host:port/root, with %2F for /, %3F for ? and %25 for % \
                    in a password";

/// Understands all of a URL, or says which part it doesn't.
pub(super) fn parse(url: &str) -> Result<Address> {
    understand(url).map_err(|reason| invalid_url(url, &reason))
}

fn understand(url: &str) -> Result<Address, String> {
    let (scheme, _) = url.split_once(':').ok_or(FORM)?;
    let scheme = scheme.to_ascii_lowercase();
    let tls = scheme == "etcds";
    let parts = Parts::of(url)?;
    let authority = Authority::parse(parts.authority.unwrap_or_default(), PORT);
    let Authority { login, servers } = authority.map_err(|reason| format!("{reason}: {FORM}"))?;
    if login.user.is_some() != login.password.is_some() {
        return Err("user and password belong together: use etcd://user:password@host".into());
    }
    let root = root(parts.path)?;
    let mut query = Query::of(parts.query)?;
    let ((ca, own), known) = match tls {
        true => (query.take_certificates()?, "ca, cert, key"),
        false => ((None, None), "none; with etcds:// ca, cert, key"),
    };
    // A password that isn't escaped may have parted the URL, and then be taken for a query key.
    query.finish(known, !url.contains('@') && !parts.may_be_login())?;
    let hosts: Vec<_> = servers.iter().map(HostPort::to_string).collect();
    let shown = format!("{scheme}://{}/{root}", hosts.join(","));
    let own = own.map(|(chain, key)| OwnCertificate { chain, key });
    Ok(Address {
        shown: shown.trim_end_matches('/').to_owned(),
        hosts: servers,
        tls,
        ca,
        own,
        login,
        root,
    })
}

/// One or more names with a `/` between them.
fn root(path: &str) -> Result<String, String> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let before = path.strip_suffix('/').filter(|before| !before.is_empty());
    let path = before.unwrap_or(path);
    if path.contains('@') {
        // It would be shown.
        return Err("write an @ in the root as %40, and a / in a password as %2F".into());
    }
    let root = decoded(path)?;
    if root.contains(char::is_control) {
        return Err("the root contains a control character".into());
    }
    let is_empty = |name: &str| name.is_empty();
    if !root.is_empty() && root.split('/').any(is_empty) {
        return Err(
            "the root has an empty part: use etcd://host/root or etcd://host/some/root".into(),
        );
    }
    Ok(root)
}

#[cfg(test)]
mod tests;
