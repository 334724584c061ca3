//! How fast the server answers, and what its clock says.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ::redis::Value;

use super::probe::{Asked, Probe, text};
use crate::base::diagnosis::Finding;
use crate::base::error::Result;
use crate::base::options::Options;

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
    let (began, before) = (Instant::now(), SystemTime::now());
    let asked = probe.ask(&::redis::cmd("TIME"))?;
    let took = began.elapsed();
    let ours = micros(before + took / 2);
    let theirs = match asked {
        Asked::Answer(answer) => server_micros(&answer),
        Asked::Denied | Asked::Failed => None,
    };
    let ahead = theirs.map(|theirs| theirs - ours);
    Ok(Sample { took, ahead })
}

fn micros(time: SystemTime) -> i128 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_micros().try_into().unwrap_or(i128::MAX)
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
