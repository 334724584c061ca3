//! The tokens of leases that an operator has broken.

use std::ops::Range;
use std::time::Duration;

use super::{Kind, Name};
use crate::judge::plan;
use crate::plan::Topology;

/// By how much the next token on Redis is above that of a broken exclusive lease, if the server's clock is behind it:
/// the break and the next grant each pass over the tokens that the broken lease may have been handed over with.
const ABOVE_A_BROKEN_ONE: (u64, u64) = (4_098, 4_110);

/// The tokens of a lease, from its first on. On Redis only exclusive leases are handed over, with larger ones.
fn tokens_of_a_lease(kind: Kind) -> u64 {
    match plan().topology {
        Topology::Etcd | Topology::ZooKeeper => 256,
        _ if kind == Kind::Exclusive => 1024,
        _ => 1,
    }
}

fn is_redis() -> bool {
    matches!(
        plan().topology,
        Topology::Redis | Topology::Sentinel | Topology::Cluster
    )
}

/// Whether a token says that its holder shares the lock, as those of Redis do: see `lua/README.md`.
fn is_shared(token: u64) -> bool {
    is_redis() && (token.is_multiple_of(4) || token % 8 == 7)
}

/// Whether the token of a guard of this kind is one of the lease that began with `first`.
pub(super) fn is_of_lease(first: u64, token: u64, kind: Kind) -> bool {
    match is_shared(first) {
        true => token == first,
        false => (first..first + tokens_of_a_lease(kind)).contains(&token),
    }
}

impl Name {
    /// When the lease with this token was broken. A guard of that kind has it.
    pub(super) fn broken_at(&self, token: u64, kind: Kind) -> Option<Duration> {
        let mut broken = self.broken.iter();
        let is_its = |first: u64| is_of_lease(first, token, kind);
        broken.find(|(first, _)| is_its(*first)).map(|(_, at)| *at)
    }

    /// Whether the largest token is ahead of the server's clock because of breaks, and this one is between it and that
    /// of a broken lease. A server grants such a token if it loses the counter within 5 ms after the break. Several
    /// breaks add up.
    pub(super) fn passes_over(&self, token: u64) -> bool {
        let (last, _) = self.token;
        let are_broken = |range: Range<u64>| {
            let firsts = self.broken.iter().map(|(first, _)| *first);
            firsts.filter(move |it| !is_shared(*it) && range.contains(it))
        };
        is_redis()
            && token < last
            && are_broken(0..token).any(|first| {
                let count = are_broken(first..last).count() as u64;
                let (least, most) = ABOVE_A_BROKEN_ONE;
                (least..=most * count).contains(&(last - first))
            })
    }
}
