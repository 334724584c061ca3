//! What a state file holds: a head that says where a text stands, and the text.
//!
//! ```text
//! 0     crosslock 2 <boot> at=<offset> len=<bytes> sum=<sum>, spaces, and a newline: 64 bytes
//! 64    a short text, up to byte 4064; what is behind it means nothing
//! 4064  seen <token>, spaces, and a newline: the last lease that was given to a waiter, and that its owner has seen
//! S     a long text; S is a power of two, no smaller than the text or 8192
//! 2 S   or here
//! ```
//!
//! What always holds here: whenever the process is killed, the file has the text before a write or the one after it. A
//! short text is written with its head into the first page by one call, which the kernel does wholly or not at all. A
//! long one is written to where the one in use isn't, and then the head alone. The room for a write is there before the
//! head is written, and the room for another long text as long as this one: a disk that becomes full keeps none from
//! being replaced.
//!
//! A power cut may leave parts of several writes, by which the sum is wrong. Such a text is of another boot, and counts
//! as none; in the same boot somebody else has written to the file. Whoever reads has the file locked, and whoever
//! writes.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::{borrow::Cow, os::unix::fs::FileExt, sync::OnceLock};

use super::create::check_size;
use super::platform;
use crate::base::fork::get_or_make;

/// Where a long text may begin at the earliest: behind the first page.
const PAGE: usize = 4096;
/// Where an owner notes which lease it has seen.
const SEEN: usize = PAGE - 32;
const LONGEST_SHORT: usize = SEEN - HEAD;
const LONGEST: usize = 1 << 26;
/// A file that is longer than a page is cut when its text is shorter than this.
const CUT: usize = 1024;

/// What a state file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing yet.
    Fresh,
    /// What a power cut has left, unless somebody writes it at this moment. It says nothing.
    Cut,
    Text {
        text: String,
        /// Whether the process that wrote it had the boot id of this one.
        boots: Boots,
        /// The token of the last lease that its owner has seen, of those that were given to waiters.
        seen: Option<u64>,
    },
}

/// Where the text in use stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    at: usize,
    length: usize,
    /// The file's length; one of more than a page may be longer than this.
    filled: usize,
}

impl Extent {
    /// Where nothing is in use.
    fn none(filled: usize) -> Self {
        Extent {
            at: HEAD,
            length: 0,
            filled,
        }
    }

    /// Where a text of this length doesn't overwrite the one in use, unless both are in the first page.
    fn next(self, length: usize) -> usize {
        if length <= LONGEST_SHORT {
            return HEAD;
        }
        let slot = slot_of(length);
        let is_free = self.at >= 2 * slot || self.at + self.length <= slot;
        if is_free { slot } else { 2 * slot }
    }
}

/// The room for a long text, which is also where the first of its two places begins.
fn slot_of(length: usize) -> usize {
    length.next_power_of_two().max(2 * PAGE)
}

/// Whether a text of this length may stand there.
fn is_extent(at: usize, length: usize) -> bool {
    match length {
        0..=LONGEST_SHORT => at == HEAD,
        // Somebody else may have written any length.
        _ if length > LONGEST => false,
        _ => [slot_of(length), 2 * slot_of(length)].contains(&at),
    }
}

/// `None`: the file holds something else.
pub(super) fn read(file: &File, boot: &BootId) -> io::Result<Option<(Found, Extent)>> {
    let mut page = [0; PAGE + 1];
    let filled = read_page(file, &mut page)?;
    let page = &page[..filled];
    // A note may come after somebody has emptied the file.
    let rest = match seen_in(page) {
        Some(_) => &page[..SEEN],
        None => page,
    };
    if rest.iter().all(|byte| *byte == 0) {
        return Ok(Some((Found::Fresh, Extent::none(filled))));
    }
    let Some(head) = Head::parse(page) else {
        return Ok(None);
    };
    let boots = head.boot.compare(*boot);
    if let Some(text) = text_of(file, page, &head)? {
        let extent = Extent {
            at: head.at,
            length: head.length,
            filled,
        };
        let seen = seen_in(page);
        let found = Found::Text { text, boots, seen };
        return Ok(Some((found, extent)));
    }
    Ok((boots != Boots::Same).then(|| (Found::Cut, Extent::none(filled))))
}

/// Replaces what was read at `now`. After an error it may be either text.
pub(super) fn write(file: &File, boot: &BootId, text: &str, now: &Extent) -> io::Result<Extent> {
    if text.len() > LONGEST {
        let text = "the lock has more waiters than its file can hold";
        return Err(io::Error::new(ErrorKind::FileTooLarge, text));
    }
    let at = now.next(text.len());
    // A long text is to have room for another of its length, to be written while it is in use.
    let needed = match at {
        HEAD => PAGE,
        _ => 3 * slot_of(text.len()),
    };
    check_size(needed)?;
    let mut filled = now.filled;
    if filled.min(needed) > PAGE {
        let length = file.metadata()?.len();
        filled = length.try_into().unwrap_or(usize::MAX);
    }
    reserve(file, &mut filled, needed)?;
    for (at, bytes) in steps(boot, at, text) {
        file.write_all_at(&bytes, at as u64)?;
    }
    cut(file, &mut filled, text.len());
    Ok(Extent {
        at,
        length: text.len(),
        filled,
    })
}

/// The first page as it was seen last, for who looks at it again and again.
pub(super) struct Peek {
    head: [u8; HEAD],
    page: [u8; PAGE],
}

impl Peek {
    pub(super) fn new() -> Self {
        Peek {
            head: [0; HEAD],
            page: [0; PAGE],
        }
    }

    /// The text, if it is a short one, and another one than before. While another process writes it there may be none.
    pub(super) fn changed(&mut self, file: &File) -> io::Result<Option<String>> {
        let read = file.read_at(&mut self.page, 0)?;
        let page = &self.page[..read];
        if page.starts_with(&self.head) {
            return Ok(None);
        }
        let head = Head::parse(page).filter(|head| head.at == HEAD);
        let Some(head) = head else { return Ok(None) };
        let text = text_of(file, page, &head)?;
        if text.is_some() {
            self.head.copy_from_slice(&page[..HEAD]);
        }
        Ok(text)
    }
}

const SEEN_WORD: &str = "seen ";

/// Notes that the owner of a lease, which was given to it, has seen it.
pub(super) fn note_seen(file: &File, token: u64) -> io::Result<()> {
    let note = format!(
        "{:<31}\n",
        format_args!("{SEEN_WORD}{token:020}").to_string()
    );
    check_size(PAGE)?;
    file.write_all_at(note.as_bytes(), SEEN as u64)
}

fn seen_in(page: &[u8]) -> Option<u64> {
    let note = str::from_utf8(page.get(SEEN..PAGE)?).ok()?;
    note.strip_prefix(SEEN_WORD)?.trim_end().parse().ok()
}

/// What is written where, in this order: the last of it makes the text the one in use.
fn steps<'a>(boot: &BootId, at: usize, text: &'a str) -> Vec<(usize, Cow<'a, [u8]>)> {
    let head = Head::new(*boot, at, text).line();
    let head = head.expect("the longest text's head fits");
    let text = text.as_bytes();
    match at {
        HEAD => vec![(0, [&head, text].concat().into())],
        _ => vec![(at, text.into()), (0, head.to_vec().into())],
    }
}

/// Has the file be so long. Zeros are written, because a hole takes its room when it is written to.
fn reserve(file: &File, filled: &mut usize, length: usize) -> io::Result<()> {
    const ZEROS: [u8; PAGE] = [0; PAGE];
    while *filled < length {
        // Up to the end of a page, and then whole pages.
        let step = (PAGE - *filled % PAGE).min(length - *filled);
        file.write_all_at(&ZEROS[..step], *filled as u64)?;
        *filled += step;
    }
    Ok(())
}

/// Gives back what a long text has needed.
fn cut(file: &File, filled: &mut usize, length: usize) {
    // One that stays long costs room, and nothing else.
    if *filled > PAGE && length < CUT && file.set_len(PAGE as u64).is_ok() {
        *filled = PAGE;
    }
}

/// `None`: it isn't there as it was written.
fn text_of(file: &File, page: &[u8], head: &Head) -> io::Result<Option<String>> {
    if !is_extent(head.at, head.length) {
        return Ok(None);
    }
    let bytes = match head.at {
        HEAD => page.get(HEAD..HEAD + head.length).map(<[u8]>::to_vec),
        _ => long_text(file, head)?,
    };
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    Ok(text.filter(|text| head.fits(text)))
}

fn long_text(file: &File, head: &Head) -> io::Result<Option<Vec<u8>>> {
    let mut text = vec![0; head.length];
    match file.read_exact_at(&mut text, head.at as u64) {
        Err(e) if e.kind() == ErrorKind::UnexpectedEof => Ok(None),
        read => read.map(|()| Some(text)),
    }
}

/// The first page, and a byte more, which tells whether there is more. Returns how much of it there is.
fn read_page(file: &File, page: &mut [u8; PAGE + 1]) -> io::Result<usize> {
    let mut filled = 0;
    // Most files are a page long: another read to see their end would be one for nothing.
    while filled < PAGE {
        match file.read_at(&mut page[filled..], filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

/// Which boot of the host it is, so far as the host tells. It doesn't tell enough: a container may have a boot id of
/// its own, and share the directory with processes that have another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BootId(pub(super) [u8; 8]);

/// What two boot ids say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Boots {
    /// Surely no reboot was between them.
    Same,
    Differ,
    /// One of them isn't known.
    Unclear,
}

impl BootId {
    pub(super) fn current() -> Self {
        static CURRENT: OnceLock<BootId> = OnceLock::new();
        *get_or_make(&CURRENT, || {
            let id = platform::boot_id();
            id.first_chunk().map_or(BootId::UNKNOWN, |id| BootId(*id))
        })
    }

    /// That of a host that doesn't tell. A text whose sum is wrong then counts as none: it may be what a power cut
    /// left.
    pub(super) const UNKNOWN: BootId = BootId(*b"--------");

    pub(super) fn is_known(self) -> bool {
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
}

pub(super) const HEAD: usize = 64;

const MAGIC: &str = "crosslock 2 ";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) boot: BootId,
    pub(super) at: usize,
    pub(super) length: usize,
    sum: u32,
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
        let Head {
            at, length, sum, ..
        } = self;
        let boot = String::from_utf8_lossy(&self.boot.0);
        let text = format!("{MAGIC}{boot} at={at} len={length} sum={sum:08x}");
        let line = format!("{text:<0$}\n", HEAD - 1);
        line.as_bytes().try_into().ok()
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

#[cfg(test)]
mod tests;
