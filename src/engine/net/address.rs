//! Where servers are, and the login that a URL has for them.

use std::{fmt, net::Ipv6Addr, path::PathBuf};

use crate::engine::url::decoded;

/// Where one server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Tcp(HostPort),
    Unix(PathBuf),
}

/// A host, by its name or its address, and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct HostPort {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// What stands between `//` and the path of a URL: `user:password@host:port,host:port`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Authority {
    pub(crate) login: Login,
    pub(crate) servers: Vec<HostPort>,
}

/// Who a client says that it is. An empty user is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Password>,
}

/// A password, which its `Debug` output hides.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Password(String);

impl Authority {
    /// Understands all of it, or says which part it doesn't.
    pub(crate) fn parse(authority: &str, default_port: u16) -> Result<Self, String> {
        // A password that isn't escaped may have an @ in it; a host can't.
        let (login, servers) = authority.rsplit_once('@').unwrap_or(("", authority));
        let servers = servers.split(',');
        let servers = servers.map(|server| HostPort::parse(server, default_port));
        Ok(Authority {
            servers: servers.collect::<Result<_, _>>()?,
            login: Login::parse(login)?,
        })
    }
}

impl Login {
    fn parse(login: &str) -> Result<Self, String> {
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let present = |text: &str| Some(decoded(text)).filter(|_| !text.is_empty());
        Ok(Login {
            user: present(user).transpose()?,
            password: present(password).transpose()?.map(Password),
        })
    }
}

impl HostPort {
    fn parse(server: &str, default_port: u16) -> Result<Self, String> {
        let port_at = match server.rfind(']') {
            Some(bracket) => bracket + 1,
            None if server.starts_with('[') => server.len(),
            None => server.find(':').unwrap_or(server.len()),
        };
        let (host, port) = server.split_at(port_at);
        let port = match port.strip_prefix(':') {
            Some("") => default_port,
            Some(port) => number(port).ok_or("the port isn't a number from 0 to 65535")?,
            None if port.is_empty() => default_port,
            None => return Err("only a port may follow the ] of the host".into()),
        };
        let host = parse_host(host)?;
        Ok(HostPort { host, port })
    }
}

/// An IPv6 address without its brackets, or anything that may be a name.
fn parse_host(host: &str) -> Result<String, String> {
    if host.is_empty() {
        return Err("the host is missing".into());
    }
    if let Some(address) = host.strip_prefix('[') {
        let address = address.strip_suffix(']').unwrap_or_default();
        let address: Result<Ipv6Addr, _> = address.parse();
        return address
            .map(|address| address.to_string())
            .map_err(|_| "the text between [ and ] isn't an IPv6 address".into());
    }
    let host = decoded(host)?;
    let is_odd =
        |char: char| char.is_whitespace() || char.is_control() || r"#%/:<>?@[\]^|".contains(char);
    if host.contains(is_odd) {
        return Err("the host contains an invalid character".into());
    }
    Ok(host)
}

/// Without a sign, which `parse` would take.
pub(crate) fn number<T: std::str::FromStr>(digits: &str) -> Option<T> {
    let only_digits = digits.bytes().all(|digit| digit.is_ascii_digit());
    digits.parse().ok().filter(|_| only_digits)
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HostPort { host, port } = self;
        if host.contains(':') {
            write!(f, "[{host}]:{port}")
        } else {
            write!(f, "{host}:{port}")
        }
    }
}

impl Password {
    pub(crate) fn new(password: String) -> Self {
        Password(password)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(host: &str, port: u16) -> HostPort {
        let host = host.to_owned();
        HostPort { host, port }
    }

    #[test]
    fn servers_are_a_list() {
        for (text, servers) in [
            ("h", vec![server("h", 7)]),
            (
                "h:1,[::1]:2,k",
                vec![server("h", 1), server("::1", 2), server("k", 7)],
            ),
            (
                "u:p,q@h:,127.0.0.1:0",
                vec![server("h", 7), server("127.0.0.1", 0)],
            ),
            ("%68%C3%A9", vec![server("hé", 7)]),
        ] {
            assert_eq!(
                Authority::parse(text, 7).unwrap().servers,
                servers,
                "{text}"
            );
        }
    }

    #[test]
    fn parts_that_are_not_understood_are_named() {
        for (text, reason) in [
            ("", "host is missing"),
            (":1", "host is missing"),
            ("h,", "host is missing"),
            ("u:p@", "host is missing"),
            ("h:x", "port"),
            ("h:65536", "port"),
            ("h:+1", "port"),
            ("::1", "port"),
            ("[::1]1", "]"),
            ("[::1", "IPv6"),
            ("[1.2.3.4]", "IPv6"),
            ("[fe80::1%25eth0]", "IPv6"),
            ("a]", "invalid character"),
            ("a b", "invalid character"),
            ("a%00b", "invalid character"),
            ("a%2525", "invalid character"),
            ("h%2", "%25"),
            ("h%ff", "UTF-8"),
            (":%ff@h", "UTF-8"),
            (":%@h", "%25"),
        ] {
            let found = Authority::parse(text, 7).unwrap_err();
            assert!(found.contains(reason), "{text}: {found}");
        }
    }
}
