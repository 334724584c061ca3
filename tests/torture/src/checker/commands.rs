//! C10: what `crosslock run` runs under a lock.

use std::time::Duration;

use super::facts::{Facts, Holding};
use super::{Violation, violation};

/// The watchdog kills a command 50 ms before the end of its lease. A busy machine may let it run so much later, and a
/// command of which nobody took care lives for longer.
const LATE: Duration = Duration::from_millis(250);

/// A command is dead before another has its lock.
pub(super) fn judge(facts: &Facts<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for (name, holdings) in facts.by_name() {
        // A command that wrote once only is valid for no time.
        for command in facts.holdings.iter().filter(|one| one.is_command()) {
            if command.name() != name {
                continue;
            }
            let is_next =
                |next: &&&Holding<'_>| next.token > command.token && next.from() < command.last.at;
            let Some(next) = holdings.iter().find(is_next) else {
                continue;
            };
            let lived = Duration::from_nanos(command.last.at - next.from());
            if lived > LATE {
                let text =
                    format!("{name}: a command ran for {lived:?} while another had its lock");
                let events = [command.held, next.held, command.last];
                found.push(violation("C10", text, &events));
            }
        }
    }
    found
}
