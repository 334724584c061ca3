//! Which slot of a cluster has a key, and a short text that is in a given slot.
//!
//! It uses `base`. What always holds here: nodes count slots in the same way, as the cluster specification has it.

use std::sync::OnceLock;

use crate::base::fork::get_or_make;

/// How many slots a cluster has.
pub(in crate::engine::redis) const SLOTS: u16 = 16384;

/// The slot of a key: that of its hash tag, if it has one.
pub(in crate::engine::redis) fn slot_of(key: &str) -> u16 {
    slot(hashed(key).as_bytes())
}

/// A text of three letters or digits whose slot is this one: between braces it puts any key there.
pub(in crate::engine::redis) fn tag_of(slot: u16) -> &'static str {
    static TAGS: OnceLock<String> = OnceLock::new();
    let start = LENGTH * usize::from(slot % SLOTS);
    let tags = get_or_make(&TAGS, tags);
    tags.get(start..start + LENGTH).unwrap_or_default()
}

/// The part of a key that decides on its slot: what stands between its first braces, if that isn't empty.
fn hashed(key: &str) -> &str {
    let behind = key.split_once('{').map(|(_, behind)| behind);
    match behind.and_then(|behind| behind.split_once('}')) {
        Some((tag, _)) if !tag.is_empty() => tag,
        _ => key,
    }
}

fn slot(hashed: &[u8]) -> u16 {
    crc16(hashed) % SLOTS
}

/// The variant that is called XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    let step = |crc: u16, byte: &u8| {
        let [high, _] = crc.to_be_bytes();
        (crc << 8) ^ REMAINDERS[usize::from(high ^ byte)]
    };
    bytes.iter().fold(0, step)
}

/// What each byte adds.
static REMAINDERS: [u16; 256] = remainders();

const fn remainders() -> [u16; 256] {
    const POLYNOMIAL: u16 = 0x1021;
    let mut remainders = [0; 256];
    let mut byte: u16 = 0;
    while byte < 256 {
        let mut crc = byte << 8;
        let mut bit = 0;
        while bit < 8 {
            let is_high = crc & 0x8000 != 0;
            crc <<= 1;
            if is_high {
                crc ^= POLYNOMIAL;
            }
            bit += 1;
        }
        remainders[byte as usize] = crc;
        byte += 1;
    }
    remainders
}

/// Of a tag.
const LENGTH: usize = 3;

/// The first tag of each slot, one behind the other. Some of the texts of this length are in each slot: a test looks.
fn tags() -> String {
    const LETTERS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let mut tags = vec![b'0'; LENGTH * usize::from(SLOTS)];
    let mut found = vec![false; usize::from(SLOTS)];
    for first in LETTERS {
        for second in LETTERS {
            for third in LETTERS {
                let tag = [*first, *second, *third];
                let slot = usize::from(slot(&tag));
                if !found[slot] {
                    found[slot] = true;
                    tags[LENGTH * slot..][..LENGTH].copy_from_slice(&tag);
                }
            }
        }
    }
    String::from_utf8(tags).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(crc16(b""), 0);
        // As Redis 7.0 answers to CLUSTER KEYSLOT.
        for (key, slot) in [
            ("foo", 12182),
            ("bar", 5061),
            ("{user1000}.following", 3443),
            ("{user1000}.followers", 3443),
            ("foo{}{bar}", 8363),
            ("foo{{bar}}zap", 4015),
            ("foo{bar}{zap}", 5061),
            ("{open", 7674),
            ("}{", 12793),
            ("ü{ß}", 12625),
        ] {
            assert_eq!(slot_of(key), slot, "{key}");
        }
    }

    #[test]
    fn every_slot_has_a_tag_of_its_own() {
        for slot in 0..SLOTS {
            let tag = tag_of(slot);
            assert_eq!(tag.len(), LENGTH);
            assert!(tag.chars().all(|c| c.is_ascii_alphanumeric()), "{tag}");
            assert_eq!(slot_of(&format!("app:inbox:{{{tag}}}")), slot);
        }
    }
}
