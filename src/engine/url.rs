//! A URL: its parts and its query, and what an error may show of it.

use std::{net::Ipv4Addr, path::PathBuf, time::Duration};

use crate::base::{Error, percent};

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
            return Err("it begins or ends with whitespace".into());
        }
        if url.contains(char::is_control) {
            return Err("it contains a control character: write it as %xx".into());
        }
        if url.contains('#') {
            return Err("it contains a #: write %23".into());
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
    bytes.ok_or_else(|| "a % isn't followed by two hexadecimal digits: write %25 for %".into())
}

/// The text that a part stands for.
pub(crate) fn decoded(part: &str) -> Result<String, String> {
    let text = String::from_utf8(decoded_bytes(part)?);
    text.map_err(|_| "its percent-encoded bytes aren't UTF-8".into())
}

/// The file with certificates to trust; and those with our own, and with its key.
pub(crate) type Certificates = (Option<PathBuf>, Option<(PathBuf, PathBuf)>);

/// The keys and values of a query, each of which is to be taken once. A key without a `=` has no value.
pub(crate) struct Query(Vec<(String, Option<String>)>);

impl Query {
    pub(crate) fn of(query: Option<&str>) -> Result<Self, String> {
        let pairs = query.unwrap_or_default().split('&');
        let pairs = pairs.filter(|pair| !pair.is_empty()).map(|pair| {
            let (key, value) = match pair.split_once('=') {
                Some((key, value)) => (key, Some(decoded(value)?)),
                None => (pair, None),
            };
            Ok((decoded(key)?, value))
        });
        pairs.collect::<Result<_, _>>().map(Query)
    }

    pub(crate) fn take(&mut self, key: &str) -> Option<String> {
        let at = self.0.iter().position(|(k, _)| k == key)?;
        Some(self.0.remove(at).1.unwrap_or_default())
    }

    /// `?ca=`, `?cert=` and `?key=`, of which the last two need each other.
    pub(crate) fn take_certificates(&mut self) -> Result<Certificates, String> {
        let [ca, cert, key] = ["ca", "cert", "key"].map(|name| self.take(name).map(PathBuf::from));
        let own = match (cert, key) {
            (Some(chain), Some(key)) => Some((chain, key)),
            (None, None) => None,
            _ => {
                let reason = "`cert` and `key` belong together: use ?cert=FILE&key=FILE";
                return Err(reason.into());
            }
        };
        Ok((ca, own))
    }

    /// A duration such as `500ms` or `2s`.
    pub(crate) fn take_duration(&mut self, key: &str) -> Result<Option<Duration>, String> {
        let Some(text) = self.take(key) else {
            return Ok(None);
        };
        let unit_at = text.find(|c: char| !c.is_ascii_digit());
        let (number, unit) = text.split_at(unit_at.unwrap_or(text.len()));
        let duration = match (number.parse(), unit) {
            (Ok(number), "ms") => Some(Duration::from_millis(number)),
            (Ok(number), "s") => Some(Duration::from_secs(number)),
            _ => None,
        };
        let reason = || format!("`{key}` isn't a duration such as 500ms or 2s");
        duration.map(Some).ok_or_else(reason)
    }

    /// Complains of what wasn't taken. The key isn't `shown` where it may be the end of a password with a `?` or an
    /// `&`, unless a known key was mistyped. A key without a value isn't shown either: it is more likely such an end.
    pub(crate) fn finish(self, known: &str, shown: bool) -> Result<(), String> {
        let Some((key, value)) = self.0.first() else {
            return Ok(());
        };
        let mut words = known.split(|c: char| !c.is_ascii_alphabetic() && c != '_');
        let may_be_shown = shown || words.any(|word| is_almost(key, word));
        let key = if may_be_shown && value.is_some() {
            key
        } else {
            "…"
        };
        Err(format!(
            "the query key `{key}` is unknown or given twice; known keys: {known}"
        ))
    }
}

/// Whether it is that long word but for one character, which may be missing or too many.
fn is_almost(key: &str, word: &str) -> bool {
    const LONG: usize = 5;
    let least = key.len().min(word.len());
    let pairs = key.bytes().zip(word.bytes());
    let begin = pairs.take_while(|(one, other)| one == other).count();
    let pairs = key.bytes().rev().zip(word.bytes().rev());
    let end = pairs.take_while(|(one, other)| one == other).count();
    let same = begin + end.min(least - begin);
    word.len() >= LONG && same + 1 >= key.len().max(word.len())
}

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
    fn keys_are_taken_once() {
        let mut query = Query::of(Some("a=%26&&b&a=2")).unwrap();
        assert_eq!(query.take("a").as_deref(), Some("&"));
        assert_eq!(query.take("b").as_deref(), Some(""));
        assert_eq!(query.take("c"), None);
        let reason = query.finish("a, b", true).unwrap_err();
        // Without a value, or where it may be the end of a password.
        for (text, shown) in [("secret", true), ("secret=1", false)] {
            let hidden = Query::of(Some(text)).unwrap().finish("none", shown);
            assert!(!hidden.unwrap_err().contains("secret"), "{text}");
        }
        assert!(
            reason.contains("`a`") && reason.contains("a, b"),
            "{reason}"
        );
        Query::of(None).unwrap().finish("none", true).unwrap();
    }

    #[test]
    fn known_key_that_is_mistyped_is_shown() {
        for (key, word, is_it) in [
            ("min_replica", "min_replicas", true),
            ("min_replicass", "min_replicas", true),
            ("mim_replicas", "min_replicas", true),
            ("replicas", "min_replicas", false),
            ("aabb", "abb", false),
            ("abcbc", "abcab", false),
            ("ab", "abcbab", false),
            ("kez", "key", false),
        ] {
            assert_eq!(is_almost(key, word), is_it, "{key}");
        }
        let hidden = Query::of(Some("clock_sew=1"))
            .unwrap()
            .finish("clock_skew", false);
        assert!(hidden.unwrap_err().contains("clock_sew"));
    }

    #[test]
    fn durations_have_units() {
        for (text, millis) in [("0ms", 0), ("500ms", 500), ("2s", 2_000)] {
            let mut query = Query::of(Some(&format!("a={text}"))).unwrap();
            let expected = Some(Duration::from_millis(millis));
            assert_eq!(query.take_duration("a").unwrap(), expected);
            assert_eq!(query.take_duration("a").unwrap(), None);
        }
        for text in ["", "1", "ms", "-1s", "1.5s", "1 s", "99999999999999999999s"] {
            let mut query = Query::of(Some(&format!("a={text}"))).unwrap();
            assert!(query.take_duration("a").is_err(), "{text}");
        }
    }

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
