//! What a URL says, and what an error may show of it.

use crate::base::error::Error;

#[cfg(any(feature = "file", feature = "_sockets"))]
pub(super) mod parts;
#[cfg(feature = "_sockets")]
pub(super) mod query;

pub(super) fn invalid_url(url: &str, reason: &str) -> Error {
    Error::InvalidUrl {
        url: redacted(url),
        reason: reason.to_owned(),
    }
}

/// `url` without what may be a user, a password, or a query with one.
fn redacted(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        let (scheme, rest) = url.split_once(':').unwrap_or((url, ""));
        return match scheme.to_ascii_lowercase().as_str() {
            "file" | "memory" => url.to_owned(),
            _ if scheme.contains('@') => "…".to_owned(),
            _ if rest.is_empty() => url.to_owned(),
            _ => format!("{scheme}:…"),
        };
    };
    // A password that isn't escaped may hold any of the characters that part a URL.
    if rest.find('?') < rest.rfind('@') && rest.contains('?') {
        return format!("{scheme}://…");
    }
    let (login, rest) = rest
        .rsplit_once('@')
        .map_or(("", rest), |(_, rest)| ("…@", rest));
    let (place, query) = rest
        .split_once('?')
        .map_or((rest, ""), |(place, _)| (place, "?…"));
    let (authority, path) = place.split_once('/').unwrap_or((place, ""));
    if scheme != "file" && (!is_address(authority) || path.starts_with(':')) {
        // `redis://:password`, or `redis://user:password`, whose host was forgotten.
        return format!("{scheme}://…");
    }
    format!("{scheme}://{login}{place}{query}")
}

/// Whether it can be nothing but a host, with or without a port.
fn is_address(authority: &str) -> bool {
    let is_port = |port: &str| port.parse::<u16>().is_ok();
    if let Some(behind) = authority.strip_prefix('[') {
        return behind.split_once(']').is_some_and(|(_, port)| {
            port.is_empty() || port.strip_prefix(':').is_some_and(is_port)
        });
    }
    match authority.split_once(':') {
        Some((host, port)) => !host.is_empty() && is_port(port),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redacted_url_keeps_the_address() {
        assert_eq!(redacted("redis://u:p@host:1/0"), "redis://…@host:1/0");
        assert_eq!(redacted("redis://host/0?x=y"), "redis://host/0?…");
        assert_eq!(redacted("redis://:a?b@c@host/"), "redis://…");
        assert_eq!(redacted("redis://[::1]:6379/"), "redis://[::1]:6379/");
        assert_eq!(redacted("redis://:secret"), "redis://…");
        assert_eq!(redacted("redis://user:secret/0"), "redis://…");
        assert_eq!(redacted("redis://user:123456"), "redis://…");
        assert_eq!(redacted("redis://:123456"), "redis://…");
        assert_eq!(redacted("redis:///:secret"), "redis://…");
        assert_eq!(redacted("redis://u:1secret2:22/"), "redis://…");
        assert_eq!(redacted("file:///a:b/c"), "file:///a:b/c");
        assert_eq!(redacted("unix:///a:b/c"), "unix:///a:b/c");
        assert_eq!(redacted("redis::secret"), "redis:…");
        assert_eq!(redacted("UNIX:/s?pass=secret"), "UNIX:…");
        assert_eq!(redacted("user:secret@host:6379"), "user:…");
        assert_eq!(redacted("//user:secret@host/"), "//user:…");
        assert_eq!(redacted("secret@host"), "…");
        assert_eq!(redacted("file:relative"), "file:relative");
        assert_eq!(redacted("redis://:a@b@host/"), "redis://…@host/");
        assert_eq!(redacted("file:///tmp/a"), "file:///tmp/a");
    }
}
