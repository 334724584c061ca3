//! What members of etcd or ZooKeeper show of the locks.
//!
//! Each look is one that a majority answers, in the order of all that is committed.

mod etcd;
mod zookeeper;

use std::net::SocketAddr;
use std::time::Duration;

use super::history::{Event, Mode};
use super::names::MOST_PERMITS;
pub(crate) use etcd::{EtcdLook, compact, delete, revoke_lease_of, short_leases, value_at};
pub(crate) use zookeeper::ZooKeeperLook;

/// Looks at one member.
pub(crate) trait Look: Send {
    /// What it shows of all names; `None` if it doesn't answer.
    fn look(&mut self) -> Option<View>;
}

/// What there is.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    /// A number that is larger for each leader than for the one before.
    pub(crate) term: u64,
    /// Those that anything is known of.
    pub(crate) lines: Vec<Line>,
    /// Keys of owners that end with no lease and no session.
    pub(crate) bare: Vec<String>,
    /// Keys that only a lease that somebody has keeps there.
    pub(crate) owned: Vec<String>,
}

/// What there is of a name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    pub(crate) name: String,
    /// In the order in which they came.
    pub(crate) places: Vec<Place>,
    /// The first parts of owners whose leases were broken.
    pub(crate) broken: Vec<String>,
}

/// Who stands in a line.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The key or node.
    pub(crate) key: String,
    pub(crate) owner: String,
    pub(crate) mode: Mode,
    /// The first of its lease.
    pub(crate) token: u64,
    /// The change that made it.
    pub(crate) revision: u64,
}

/// What the value of a lock that is shared stands for.
const SHARED: &str = "crosslock:shared";
/// How many tokens there are for each revision.
const TOKENS_OF_REVISION: u64 = 4096;

/// Looks at the member at this address.
pub(crate) type Open = fn(SocketAddr) -> Box<dyn Look>;

/// One that hangs doesn't keep the others from being looked at for long.
const TIMEOUT: Duration = Duration::from_secs(1);

/// What comes before the names of locks.
const NAMESPACE: &str = "crosslock";

impl Line {
    /// How many of those in front hold the lock.
    fn holders(&self) -> usize {
        let mut permits = 0;
        let first = self.places.first().map(|first| first.mode);
        let holds = |(at, place): &(usize, &Place)| match (first, place.mode) {
            (Some(Mode::Read), Mode::Read) => true,
            (Some(Mode::Permits(_)), Mode::Permits(count)) => {
                permits += count;
                permits <= MOST_PERMITS
            }
            _ => *at == 0,
        };
        self.places.iter().enumerate().take_while(holds).count()
    }

    /// What a history tells of it.
    pub(crate) fn events(&self, at: u64) -> [Event; 3] {
        let event = |op, detail| Event::shown(at, op, &self.name, detail);
        let (holders, waiters) = self.places.split_at(self.holders());
        let waiting: Vec<_> = waiters.iter().map(|place| &*place.owner).collect();
        let broken = self.broken.iter().map(|owner| format!("0:{owner}"));
        let broken: Vec<_> = broken.collect();
        let mut held = event("key", String::new());
        if let Some(first) = holders.first() {
            held.token = first.token;
            held.detail = match first.mode {
                Mode::Exclusive => first.owner.clone(),
                Mode::Read | Mode::Permits(_) => SHARED.to_owned(),
            };
        }
        [
            held,
            event("line", waiting.join(" ")),
            event("broken", broken.join(" ")),
        ]
    }
}

impl View {
    /// The line of a name, which is made if there is none.
    fn line(&mut self, name: &str) -> &mut Line {
        let found = self.lines.iter().position(|line| line.name == name);
        let at = found.unwrap_or_else(|| {
            self.lines.push(Line {
                name: name.to_owned(),
                ..Line::default()
            });
            self.lines.len() - 1
        });
        &mut self.lines[at]
    }
}

#[cfg(test)]
mod tests;
