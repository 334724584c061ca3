//! Which server it is, and whether its version has what the scripts need.

use ::redis::Value;

use super::facts::{ALLOW_INFO, Facts};
use super::probe::{Asked, Probe, text};
use crate::base::diagnosis::Finding;
use crate::base::error::Result;

const CHECK: &str = "version";

/// Since this one, scripts may read the time before they write, and PEXPIRE and SET know all that they use.
const LEAST: (u32, u32) = (6, 2);

pub(super) fn version(probe: &Probe<'_>, facts: &Facts) -> Result<Finding> {
    // HELLO may be sent by any user.
    let hello = match probe.ask(&::redis::cmd("HELLO"))? {
        Asked::Answer(Value::Array(pairs)) => told(&pairs),
        Asked::Answer(_) | Asked::Denied | Asked::Failed => None,
    };
    Ok(judged(hello.or_else(|| seen(facts))))
}

/// The name and the version of the server, in the answer to HELLO.
fn told(pairs: &[Value]) -> Option<(String, String)> {
    let field = |name: &str| {
        let mut pairs = pairs.chunks_exact(2);
        let found = pairs.find(|pair| text(&pair[0]) == Some(name))?;
        text(&found[1]).map(str::to_owned)
    };
    Some((field("server")?, field("version")?))
}

/// The same by INFO. Valkey has a version of its own besides that of the Redis whose protocol it speaks.
fn seen(facts: &Facts) -> Option<(String, String)> {
    let (name, version) = match facts.get("valkey_version") {
        Some(version) => ("valkey", version),
        None => ("redis", facts.get("redis_version")?),
    };
    Some((name.to_owned(), version.to_owned()))
}

fn judged(server: Option<(String, String)>) -> Finding {
    let Some((name, version)) = server else {
        let found = "it doesn't say what it is";
        return Finding::unknown(CHECK, found, ALLOW_INFO);
    };
    let found = format!("{name} {version}");
    let mut parts = version.split('.').map_while(|part| part.parse().ok());
    let number = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    match name.as_str() {
        "redis" | "valkey" if number >= LEAST => Finding::fine(CHECK, found),
        "redis" | "valkey" => Finding::weak(
            CHECK,
            found,
            "the scripts need commands that this version doesn't have, so locks fail",
            "use Redis 6.2 or later, or Valkey",
        ),
        _ => Finding::unknown(
            CHECK,
            found,
            "crosslock is tested with Redis and Valkey: test what you rely on",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::diagnosis::Verdict;

    #[test]
    fn old_and_foreign_servers_are_told_from_known_ones() {
        for (name, version, verdict) in [
            ("redis", "6.2.0", "fine"),
            ("redis", "7.0.15", "fine"),
            ("redis", "10.0.0", "fine"),
            ("valkey", "8.1.0-rc1", "fine"),
            ("redis", "6.0.16", "weak"),
            ("redis", "x", "weak"),
            ("dragonfly", "7.4.0", "unknown"),
        ] {
            let finding = judged(Some((name.to_owned(), version.to_owned())));
            assert_eq!(finding.verdict.to_string(), verdict, "{name} {version}");
        }
        assert!(matches!(judged(None).verdict, Verdict::Unknown { .. }));
    }

    #[test]
    fn valkeys_own_version_counts() {
        let facts = Facts::of("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1");
        assert_eq!(seen(&facts), Some(("valkey".into(), "8.0.1".into())));
        assert_eq!(seen(&Facts::default()), None);
    }
}
