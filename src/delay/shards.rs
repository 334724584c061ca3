//! How a queue is split over the slots of a cluster.

use std::sync::Arc;

use crate::base::Key;

pub(super) const MOST_SHARDS: u16 = 256;

/// The names of a queue that is split; none of one that isn't.
pub(super) fn shards_of(key: &Key, count: u16) -> Arc<[Key]> {
    key.shards(count).filter(|_| count > 1).collect()
}

/// By an id alone: FNV-1a. Every version of every program must say the same.
pub(super) fn shard_of(id: &str, count: usize) -> usize {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    // The low bits alone depend on too few bytes of a short id.
    usize::try_from((hash ^ (hash >> 32)) % count as u64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs of other versions look for a task where these say.
    #[test]
    fn shards_of_ids_stay_as_they_are() {
        let shards = ["a", "b", "invoice-17", "é", ""].map(|id| shard_of(id, 16));
        assert_eq!(shards, [0, 9, 6, 6, 1]);
        assert_eq!(shard_of("a", 1), 0);
        let mut of_each = [0; 16];
        (0..1600).for_each(|id: u32| of_each[shard_of(&id.to_string(), 16)] += 1);
        assert!(
            of_each.iter().all(|tasks| (50..150).contains(tasks)),
            "{of_each:?}"
        );
    }
}
