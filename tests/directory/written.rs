//! What a lock's file says, written as `docs/file.md` has it.

/// How long its first line is.
pub(crate) const HEAD: usize = 64;

/// A file that says this.
pub(crate) fn file_that_says(boot: &str, text: &str) -> String {
    let (len, sum) = (text.len(), sum(text.as_bytes()));
    let head = format!("crosslock 2 {boot} at={HEAD} len={len} sum={sum:08x}");
    format!("{head:63}\n{text}")
}

fn sum(text: &[u8]) -> u32 {
    const FACTOR: u64 = 0x517c_c1b7_2722_0a95;
    let words = text.chunks(8).map(|part| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        u64::from_le_bytes(word)
    });
    let sum = words.fold(!(text.len() as u64), |sum, word| {
        (sum.rotate_left(5) ^ word).wrapping_mul(FACTOR)
    });
    ((sum ^ sum >> 32).wrapping_mul(FACTOR) >> 32) as u32
}
