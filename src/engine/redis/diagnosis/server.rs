//! Which server it is, and whether its version has what the scripts need.

use ::redis::Value;

use super::{ALLOW_INFO, Asked, Facts, Probe, text};
use crate::base::defects::{self, Defect};
use crate::base::diagnosis::Finding;
use crate::base::error::Result;

const VERSION: &str = "version";

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

/// Since 6.2 scripts may read the time before they write, and PEXPIRE and SET know all that they use.
const DEFECTS: [Defect; 1] = [Defect {
    mended: &[[6, 2, 0]],
    since: [0, 0, 0],
    what: "the scripts need commands that this version doesn't have, so locks fail",
    better: "use Redis 6.2 or later, or Valkey",
}];

fn judged(server: Option<(String, String)>) -> Finding {
    let Some((name, version)) = server else {
        let found = "it doesn't say what it is";
        return Finding::unknown(VERSION, found, ALLOW_INFO);
    };
    match name.as_str() {
        "redis" | "valkey" => defects::version(&name, vec![&version], &DEFECTS),
        _ => Finding::unknown(
            VERSION,
            format!("{name} {version}"),
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
