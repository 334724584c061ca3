//! Which server it is, and whether its version has what the scripts need.

use std::net::IpAddr;
use std::time::Duration;

use ::redis::Value;

use super::{ALLOW_INFO, Asked, Facts, Probe, text};
use crate::base::diagnosis::Finding;
use crate::base::error::Result;
use crate::base::options::Options;
use crate::base::sys::time;

const VERSION: &str = "version";

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
        return Finding::unknown(VERSION, found, ALLOW_INFO);
    };
    let found = format!("{name} {version}");
    let mut parts = version.split('.').map_while(|part| part.parse().ok());
    let number = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    match name.as_str() {
        "redis" | "valkey" if number >= LEAST => Finding::fine(VERSION, found),
        "redis" | "valkey" => Finding::weak(
            VERSION,
            found,
            "the scripts need commands that this version doesn't have, so locks fail",
            "use Redis 6.2 or later, or Valkey",
        ),
        _ => Finding::unknown(
            VERSION,
            found,
            "crosslock is tested with Redis and Valkey: test what you rely on",
        ),
    }
}

const NETWORK: &str = "network";

pub(super) fn network(probe: &Probe<'_>) -> Result<Finding> {
    let connection = probe.server.connect(probe.deadline);
    let connection = connection.map_err(|e| probe.commands.error(None, e))?;
    let place = &probe.server.settings().shown;
    Ok(if connection.is_encrypted() {
        Finding::fine(NETWORK, format!("{place}: encrypted by TLS"))
    } else {
        plain(place, connection.peer())
    })
}

/// In plain text, to nobody if it is by a unix socket.
fn plain(place: &str, peer: Option<IpAddr>) -> Finding {
    let Some(peer) = peer else {
        return Finding::fine(NETWORK, format!("{place}: a socket of this host"));
    };
    if peer.is_loopback() {
        return Finding::fine(NETWORK, format!("{place}: this host"));
    }
    if is_private(peer) {
        let found = format!("{place}: a private network, in plain text");
        return Finding::fine(NETWORK, found);
    }
    Finding::weak(
        NETWORK,
        format!("{place}: a public address, in plain text"),
        "whoever is on the way reads the password, and can free and fake every lock",
        "use rediss:// or valkeys://",
    )
}

fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.is_private() || v4.is_link_local() || is_shared(v4.octets()),
        IpAddr::V6(v6) => v6.is_unique_local() || v6.is_unicast_link_local(),
    }
}

/// 100.64.0.0/10, which carriers and overlay networks use.
fn is_shared([first, second, ..]: [u8; 4]) -> bool {
    first == 100 && (64..128).contains(&second)
}

const LATENCY: &str = "latency";
const CLOCK: &str = "clock";
const ROUNDS: usize = 100;

/// One question for the time.
#[derive(Clone, Copy)]
struct Sample {
    took: Duration,
    /// How far the server's clock is ahead of ours, in microseconds.
    ahead: Option<i128>,
}

pub(super) fn timing(probe: &Probe<'_>, options: &Options) -> Result<Vec<Finding>> {
    let mut samples = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        samples.push(sample(probe)?);
    }
    samples.sort_by_key(|sample| sample.took);
    Ok(vec![latency(&samples, options), clock(&samples[0])])
}

fn sample(probe: &Probe<'_>) -> Result<Sample> {
    let (began, before) = (time::now(), time::wall());
    let asked = probe.ask(&::redis::cmd("TIME"))?;
    let took = time::since(began);
    let ours = micros(before + took / 2);
    let theirs = match asked {
        Asked::Answer(answer) => server_micros(&answer),
        Asked::Denied | Asked::Failed => None,
    };
    let ahead = theirs.map(|theirs| theirs - ours);
    Ok(Sample { took, ahead })
}

fn micros(time: Duration) -> i128 {
    time.as_micros().try_into().unwrap_or(i128::MAX)
}

/// The answer to TIME: seconds, and microseconds.
fn server_micros(answer: &Value) -> Option<i128> {
    let Value::Array(parts) = answer else {
        return None;
    };
    let number = |part: Option<&Value>| -> Option<i128> { text(part?)?.parse().ok() };
    Some(number(parts.first())? * 1_000_000 + number(parts.get(1))?)
}

/// Of samples by their duration.
fn latency(samples: &[Sample], options: &Options) -> Finding {
    let at = |percent: usize| samples[(samples.len() - 1) * percent / 100].took;
    let (median, slow) = (at(50), at(99));
    let found =
        format!("half of {ROUNDS} answers came within {median:.0?}, 99 % within {slow:.0?}");
    // A renewal has to be answered in time, and repeated if it isn't.
    let patience = options.io_timeout.min(options.renew_every()) / 4;
    if slow <= patience {
        return Finding::fine(LATENCY, found);
    }
    Finding::weak(
        LATENCY,
        found,
        format!(
            "that is slow for an I/O timeout of {:?} and a renewal each {:?}: calls fail with `Unavailable`, and leases may \
             end although their holders live",
            options.io_timeout,
            options.renew_every(),
        ),
        "a longer ttl and I/O timeout, or a server that is nearer or less busy",
    )
}

/// Clocks needn't agree, so whatever it is will do.
fn clock(fastest: &Sample) -> Finding {
    let Some(ahead) = fastest.ahead else {
        let advice = "allow this user TIME (ACL SETUSER: +time)";
        return Finding::unknown(CLOCK, "the server doesn't tell its time", advice);
    };
    let by = Duration::from_micros(u64::try_from(ahead.unsigned_abs()).unwrap_or(u64::MAX));
    let error = fastest.took / 2;
    let found = match ahead {
        _ if by <= error => format!("as ours, within {error:.0?}"),
        1.. => format!("{by:.1?} ahead of ours"),
        _ => format!("{by:.1?} behind ours"),
    };
    let found = format!("{found}; clocks needn't agree, but the server's must not be set back");
    Finding::fine(CLOCK, found)
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

    #[test]
    fn plain_text_is_weak_only_on_a_public_network() {
        for (peer, verdict) in [
            ("127.0.0.1", "fine"),
            ("::1", "fine"),
            ("10.1.2.3", "fine"),
            ("::ffff:192.168.0.1", "fine"),
            ("fd00::1", "fine"),
            ("100.64.0.1", "fine"),
            ("100.128.0.1", "weak"),
            ("1.1.1.1", "weak"),
            ("2606:4700::1111", "weak"),
        ] {
            let found = plain("redis://h:6379/0", Some(peer.parse().unwrap()));
            assert_eq!(found.verdict.to_string(), verdict, "{peer}");
        }
        assert_eq!(plain("unix:///s", None).verdict.to_string(), "fine");
    }

    fn sample_of(took: u64, ahead: i128) -> Sample {
        Sample {
            took: Duration::from_micros(took),
            ahead: Some(ahead),
        }
    }

    #[test]
    fn slow_answers_are_weak() {
        for (slowest, verdict) in [(1_000, "fine"), (499_000, "fine"), (501_000, "weak")] {
            let samples = [sample_of(100, 0), sample_of(slowest, 0)];
            // Of two, the second is above all.
            let samples = [&samples[..1], &[samples[1]; 99]].concat();
            let finding = latency(&samples, &Options::default());
            assert_eq!(finding.verdict.to_string(), verdict, "{slowest}");
        }
    }

    #[test]
    fn clock_is_ahead_behind_or_the_same() {
        for (ahead, words) in [
            (40, "as ours, within 50µs"),
            (-40, "as ours, within 50µs"),
            (1_500_000, "1.5s ahead of ours"),
            (-90_000, "90.0ms behind ours"),
        ] {
            let finding = clock(&sample_of(100, ahead));
            assert!(finding.found.starts_with(words), "{}", finding.found);
            assert_eq!(finding.verdict.to_string(), "fine");
        }
    }

    #[test]
    fn time_is_seconds_and_microseconds() {
        let part = |text: &str| Value::BulkString(text.into());
        let answer = Value::Array(vec![part("2"), part("30")]);
        assert_eq!(server_micros(&answer), Some(2_000_030));
        assert_eq!(server_micros(&Value::Nil), None);
    }
}
