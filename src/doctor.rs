//! What the place where locks live is like, and which guarantee doesn't hold there.
//!
//! An engine reports what only it can see. What is asked of all of them in the same way is here.

use std::time::Duration;

use crate::base::{Deadline, Finding, Key, Namespace, Options, Result, sys::time};
use crate::engine::Engine;

/// All findings. A place that can't be reached at all is an error.
pub(crate) fn diagnose(
    engine: &dyn Engine,
    namespace: &Namespace,
    options: &Options,
) -> Result<Vec<Finding>> {
    let mut findings = engine.diagnose((namespace, options), &Deadline::NEVER)?;
    let key = Key::new(namespace, "crosslock-doctor")?;
    findings.push(match looks(engine, &key, options.io_timeout) {
        Ok(samples) => latency(&samples, options),
        Err(e) => Finding::unknown(
            LATENCY,
            format!("can't inspect a lock: {e}"),
            "check the other findings",
        ),
    });
    Ok(findings)
}

const LATENCY: &str = "latency";

/// How often a name is inspected.
const LOOKS: usize = 20;

/// How long it takes to inspect a name, the shortest time first.
fn looks(engine: &dyn Engine, key: &Key, timeout: Duration) -> Result<Vec<Duration>> {
    let look = |_| {
        let began = time::now();
        engine.inspect(key, &Deadline::after(timeout))?;
        Ok(time::since(began))
    };
    let mut samples = (0..LOOKS).map(look).collect::<Result<Vec<_>>>()?;
    samples.sort_unstable();
    Ok(samples)
}

fn latency(samples: &[Duration], options: &Options) -> Finding {
    let (median, slowest) = (samples[samples.len() / 2], samples[samples.len() - 1]);
    let found =
        format!("inspecting a lock took {median:.0?} at the median and {slowest:.0?} at most");
    let (io_timeout, renew_every) = (options.io_timeout, options.renew_every());
    // A renewal has to be answered in time, and repeated if it isn't.
    if slowest <= io_timeout.min(renew_every) / 4 {
        return Finding::fine(LATENCY, found);
    }
    Finding::weak(
        LATENCY,
        found,
        format!(
            "this is slow for an I/O timeout of {io_timeout:?} and renewals every {renew_every:?}: calls may fail \
             with `Unavailable`, and leases may end although their holders are alive"
        ),
        "use a longer ttl and I/O timeout, or servers that are nearer or less busy",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_answers_are_weak() {
        let millis = Duration::from_millis;
        for (slowest, verdict) in [(1, "fine"), (499, "fine"), (501, "weak")] {
            let finding = latency(&[millis(0), millis(slowest)], &Options::default());
            assert_eq!(finding.verdict.to_string(), verdict, "{slowest}");
        }
    }
}
