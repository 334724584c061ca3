//! The head of a state file: which boot wrote it, where the text stands, and the sum of the text.
//!
//! It uses `base`. What always holds here: each head is 64 bytes, and is parsed as it was written only.

use std::fs;
use std::sync::OnceLock;

use crate::base::fork::get_or_make;
use crate::engine::file::digits;

pub(super) const HEAD: usize = 64;

const MAGIC: &str = "crosslock 2 ";

/// Which boot of the host it is, so far as the host tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::file) struct BootId(pub(super) [u8; 8]);

/// What two boot ids say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine::file) enum Boots {
    Same,
    Differ,
    /// One of them isn't known.
    Unclear,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) boot: BootId,
    pub(super) at: usize,
    pub(super) length: usize,
    sum: u32,
}

impl BootId {
    pub(in crate::engine::file) fn current() -> Self {
        static CURRENT: OnceLock<BootId> = OnceLock::new();
        *get_or_make(&CURRENT, || {
            let id = fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
            id.first_chunk().map_or(BootId::UNKNOWN, |id| BootId(*id))
        })
    }

    /// That of a host that doesn't tell. A text whose sum is wrong then counts as none: it may be what a power cut left.
    pub(super) const UNKNOWN: BootId = BootId(*b"--------");

    pub(in crate::engine::file) fn is_known(self) -> bool {
        self != BootId::UNKNOWN
    }

    /// What they say of two texts. Those of two containers differ, though no reboot was between them.
    pub(super) fn compare(self, other: BootId) -> Boots {
        match self == other {
            _ if !self.is_known() || !other.is_known() => Boots::Unclear,
            true => Boots::Same,
            false => Boots::Differ,
        }
    }

    /// Surely: no reboot was between them.
    pub(super) fn is_same(self, other: BootId) -> bool {
        self == other && self.is_known()
    }
}

impl Head {
    pub(super) fn new(boot: BootId, at: usize, text: &str) -> Self {
        Head {
            boot,
            at,
            length: text.len(),
            sum: sum(text.as_bytes()),
        }
    }

    pub(super) fn fits(&self, text: &str) -> bool {
        *self == Head::new(self.boot, self.at, text)
    }

    /// `None` when its numbers have too many digits: a text has at most eight, and its place nine.
    pub(super) fn line(&self) -> Option<[u8; HEAD]> {
        let mut text = String::with_capacity(2 * HEAD);
        text.push_str(MAGIC);
        text.push_str(&String::from_utf8_lossy(&self.boot.0));
        text.push_str(" at=");
        digits::push(&mut text, self.at as u64);
        text.push_str(" len=");
        digits::push(&mut text, self.length as u64);
        text.push_str(" sum=");
        digits::push_hex(&mut text, self.sum.to_be_bytes());
        let mut line = [b' '; HEAD];
        line[HEAD - 1] = b'\n';
        // The last is the newline.
        let place = line[..HEAD - 1].get_mut(..text.len())?;
        place.copy_from_slice(text.as_bytes());
        Some(line)
    }

    /// `None` for what is none.
    pub(super) fn parse(page: &[u8]) -> Option<Self> {
        let line = page.first_chunk::<HEAD>()?;
        let mut words = str::from_utf8(line).ok()?.strip_prefix(MAGIC)?.split(' ');
        let boot = words.next()?.as_bytes().try_into().ok().map(BootId)?;
        let head = Head {
            boot,
            at: words.next()?.strip_prefix("at=")?.parse().ok()?,
            length: words.next()?.strip_prefix("len=")?.parse().ok()?,
            sum: u32::from_str_radix(words.next()?.strip_prefix("sum=")?, 16).ok()?,
        };
        (head.line() == Some(*line)).then_some(head)
    }
}

/// A sum of the words of a text, as the hash of the Rust compiler is (FxHash), with the bits mixed at the end.
fn sum(text: &[u8]) -> u32 {
    const FACTOR: u64 = 0x517c_c1b7_2722_0a95;
    // Not that of zeros for no text.
    let mut sum = !(text.len() as u64);
    for part in text.chunks(8) {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        sum = (sum.rotate_left(5) ^ u64::from_le_bytes(word)).wrapping_mul(FACTOR);
    }
    let mixed = (sum ^ sum >> 32).wrapping_mul(FACTOR);
    (mixed >> 32) as u32
}
