//! The parts of a URL.

#[cfg(feature = "_sockets")]
use std::net::Ipv4Addr;

use crate::base::percent;

/// The parts of a URL behind its scheme, as they stand in it: `%xx` is still to be decoded.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(Debug))]
pub(crate) struct Parts<'a> {
    /// What stands between `//` and the path; `None` without `//`.
    pub(crate) authority: Option<&'a str>,
    pub(crate) path: &'a str,
    /// What stands behind `?`; `None` without one.
    pub(crate) query: Option<&'a str>,
}

impl<'a> Parts<'a> {
    /// Or why they can't be told apart: none of our schemes has a fragment, so a `#` is a mistake.
    pub(crate) fn of(url: &'a str) -> Result<Self, String> {
        if url.trim() != url {
            return Err("there is space around it".into());
        }
        if url.contains(char::is_control) {
            return Err("there is a control character in it: write it as %xx".into());
        }
        if url.contains('#') {
            return Err("a # has no meaning here: write %23 where it belongs to a part".into());
        }
        let (_, rest) = url.split_once(':').ok_or("it has no scheme")?;
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query)),
            None => (rest, None),
        };
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => {
                let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                (Some(authority), path)
            }
            None => (None, rest),
        };
        Ok(Parts {
            authority,
            path,
            query,
        })
    }
}

#[cfg(feature = "_sockets")]
impl Parts<'_> {
    /// Whether a user, and the beginning of a password, may be what stands in the place of the hosts, which were
    /// forgotten: `user:12?secret=1`. No user has the name of an address, or `localhost`.
    pub(crate) fn may_be_login(&self) -> bool {
        let authority = self.authority.unwrap_or_default();
        let (host, _) = authority.split_once(':').unwrap_or_default();
        let is_host = host == "localhost" || host.parse::<Ipv4Addr>().is_ok();
        authority.contains(':') && !authority.starts_with('[') && !is_host
    }
}

/// The bytes that a part stands for.
pub(crate) fn decoded_bytes(part: &str) -> Result<Vec<u8>, String> {
    let bytes = percent::unescaped(part);
    bytes
        .ok_or_else(|| "a % in it isn't followed by two hexadecimal digits: write %25 for %".into())
}

/// The text that a part stands for.
#[cfg(feature = "_sockets")]
pub(crate) fn decoded(part: &str) -> Result<String, String> {
    let text = String::from_utf8(decoded_bytes(part)?);
    text.map_err(|_| "a part of it isn't UTF-8 behind its %".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::{Random, for_any};

    #[test]
    fn parts_end_where_the_next_begins() {
        for (url, authority, path, query) in [
            ("a:", None, "", None),
            ("a:b/c", None, "b/c", None),
            ("a:/b?", None, "/b", Some("")),
            ("a://", Some(""), "", None),
            ("a://b", Some("b"), "", None),
            ("a://b?c/d", Some("b"), "", Some("c/d")),
            ("a://u:p@b:1//c?d?e", Some("u:p@b:1"), "//c", Some("d?e")),
        ] {
            let parts = Parts {
                authority,
                path,
                query,
            };
            assert_eq!(Parts::of(url), Ok(parts), "{url}");
        }
        for url in ["a", "a:b#", " a:", "a:b\n", "a:\tb", "a:b\u{85}c"] {
            assert!(Parts::of(url).is_err(), "{url:?}");
        }
    }

    #[test]
    fn percent_is_followed_by_two_digits() {
        assert_eq!(decoded_bytes("%41b%2fé%FF").unwrap(), b"Ab/\xc3\xa9\xff");
        for part in ["%", "%4", "a%4", "%4g", "%+4", "%é", "%%41"] {
            assert!(decoded_bytes(part).is_err(), "{part}");
        }
    }

    #[test]
    fn parts_are_put_together_again() {
        for_any(|random| {
            let text = |random: &mut Random, excluded: &str| {
                let excluded =
                    |any: char| any.is_control() || any.is_whitespace() || excluded.contains(any);
                random.text_without(excluded, 0..=9)
            };
            let authority = random.option(|random| text(random, "/?#"));
            let path = random.option(|random| format!("/{}", text(random, "?#")));
            let path = path.unwrap_or_default();
            let query = random.option(|random| text(random, "#"));
            let before = authority.as_ref().map(|authority| format!("//{authority}"));
            let behind = query.as_ref().map(|query| format!("?{query}"));
            let [before, behind] = [before, behind].map(Option::unwrap_or_default);
            let url = format!("a:{before}{path}{behind}");
            let parts = Parts::of(&url).unwrap();
            assert!(authority.is_none() || parts.authority == authority.as_deref());
            assert!(authority.is_none() || parts.path == path);
            assert_eq!(parts.query, query.as_deref());
        });
    }

    #[test]
    fn escaped_bytes_come_back() {
        for_any(|random| {
            let bytes = random.list(0..=100, |random| random.u8(..));
            let escaped: String = bytes.iter().map(|byte| format!("%{byte:02X}")).collect();
            assert_eq!(decoded_bytes(&escaped).unwrap(), bytes);
        });
    }
}
