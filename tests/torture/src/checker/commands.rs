//! C10: what `crosslock run` runs under a lock.

use std::time::Duration;

use super::facts::Holding;
use super::{Facts, Rules, Violation, nanos, shown, violation};

/// The program has killed its command when so much of the lease is left.
const MARGIN: Duration = Duration::from_millis(100);
/// The watchdog does it when so much is left: a machine that stands still for longer lets the command live on. Half of
/// that is enough to excuse it, as elsewhere.
const LAST_MARGIN: Duration = Duration::from_millis(50);

/// A command is dead before another has its lock.
pub(super) fn outlived(facts: &Facts<'_>, rules: &Rules) -> Vec<Violation> {
    let commands = facts.holdings.iter().filter(|one| one.is_of_command());
    let found = commands.filter_map(|command| {
        let next = next_before_its_end(facts, command)?;
        if may_live_on(facts, rules, command, next) {
            return None;
        }
        let lived = shown(command.seen - next.from());
        let text = format!(
            "{}: a command ran for {lived:?} while another had its lock",
            command.name()
        );
        let events = [command.answer, next.answer, command.last];
        Some(violation("C10", text, &events))
    });
    found.collect()
}

/// The first that was let in after the command, as tokens tell, and while it lived.
fn next_before_its_end<'a, 'b>(
    facts: &'b Facts<'a>,
    command: &Holding<'a>,
) -> Option<&'b Holding<'a>> {
    let mut holdings = facts.holdings_of(command.name());
    holdings.find(|next| {
        next.was_valid() && next.token() > command.token() && next.from() < command.seen
    })
}

fn may_live_on(
    facts: &Facts<'_>,
    rules: &Rules,
    command: &Holding<'_>,
    next: &Holding<'_>,
) -> bool {
    if let Some(broken) = facts.break_of(command)
        && command.seen <= facts.may_believe_until(rules, command, broken)
    {
        return true;
    }
    let killed = next.from().saturating_sub(nanos(MARGIN));
    let lateness = facts.lateness.of_program(killed, command.seen);
    lateness >= nanos(LAST_MARGIN) / 2
}
