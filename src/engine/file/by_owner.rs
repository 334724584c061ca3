//! Maps and sets of owners.
//!
//! An owner's text begins with random digits, so a few operations make a good hash of it. One who may write to the directory could
//! make others slow by owners with equal hashes; it could as well keep every lock.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use crate::base::owner::Owner;

pub(super) type ByOwner<T> = HashMap<Owner, T, BuildHasherDefault<OwnerHasher>>;
pub(super) type Owners = HashSet<Owner, BuildHasherDefault<OwnerHasher>>;

/// The hash of the Rust compiler (FxHash), with the bits mixed at the end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OwnerHasher(u64);

const FACTOR: u64 = 0x517c_c1b7_2722_0a95;

impl OwnerHasher {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(FACTOR);
    }
}

impl Hasher for OwnerHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.add(u64::from_le_bytes(*word));
        }
        for byte in rest {
            self.add(u64::from(*byte));
        }
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}
