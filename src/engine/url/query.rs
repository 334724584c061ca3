//! The query of a URL.

use std::path::PathBuf;
use std::time::Duration;

use super::parts::decoded;

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
                let reason = "a certificate needs its key, and a key its certificate: use ?cert=FILE&key=FILE";
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
        let reason = || format!("its {key} isn't a time such as 500ms or 2s");
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
            "its query key `{key}` isn't known, or is there twice; known: {known}"
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_taken_once() {
        let mut query = Query::of(Some("a=%26&&b&a=2")).unwrap();
        assert_eq!(query.take("a").as_deref(), Some("&"));
        assert_eq!(query.take("b").as_deref(), Some(""));
        assert_eq!(query.take("c"), None);
        let reason = query.finish("a, b", true).unwrap_err();
        let hidden = Query::of(Some("secret")).unwrap().finish("a", true);
        assert!(!hidden.unwrap_err().contains("secret"), "it has no value");
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
    fn key_that_may_be_secret_is_not_shown() {
        let reason = Query::of(Some("secret")).unwrap().finish("none", false);
        assert!(!reason.unwrap_err().contains("secret"));
    }
}
