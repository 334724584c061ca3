//! An entry in the line of a name, as it stands in its key.
//!
//! The text of an entry has two lines: how the owner wants the name, and the owner. The first is words: `x` (alone), `r` (to
//! read) or `p 2/5` (permits); then `kept`, if nobody has it any more, and its time isn't over; `since=`, when it was
//! written, by its host's clock; `token=`, of a lease that is not the first of its entry. An entry with another text is
//! that of a program that isn't crosslock, such as `etcdctl lock`, and excludes all.

use std::fmt::Write;

use super::client::KeyValue;
use super::keys::Keys;
use crate::base::claim::Mode;
use crate::base::owner::Owner;
use crate::engine::line::{Entry, Line, Who};

/// What an owner has written into its entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) mode: Mode,
    /// `None`: its owner has released it, and it stays taken for a while.
    pub(super) owner: Option<Owner>,
    /// In milliseconds since 1970, by the clock of the owner's host: for those who look.
    pub(super) since: u64,
    /// The first token of the lease; `None`: that of its entry's revision.
    pub(super) token: Option<u64>,
}

impl Text {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut text = match self.mode {
            Mode::Permits { .. } => format!("p {}", self.mode),
            mode => mode.to_string(),
        };
        if self.owner.is_none() {
            text.push_str(" kept");
        }
        let _ = write!(text, " since={}", self.since);
        if let Some(token) = self.token {
            let _ = write!(text, " token={token}");
        }
        if let Some(owner) = &self.owner {
            text.push('\n');
            text.push_str(owner.as_str());
        }
        text.into_bytes()
    }

    /// That of an entry, if it is one of ours.
    pub(super) fn of(entry: &Entry) -> Option<Self> {
        (entry.who != Who::Stranger).then(|| Text {
            mode: entry.mode,
            owner: entry.owner().cloned(),
            since: entry.since,
            token: entry.token,
        })
    }

    /// `None` for what no owner has written.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let (first, owner) = match text.split_once('\n') {
            Some((first, owner)) => (first, Some(Owner::from_text(owner))),
            None => (text, None),
        };
        let mut words = first.split(' ').peekable();
        let mode = match words.next()? {
            "p" => Mode::parse(words.next()?)?,
            lock @ ("x" | "r") => Mode::parse(lock)?,
            _ => return None,
        };
        let is_kept = words.next_if_eq(&"kept").is_some();
        let since = words.next()?.strip_prefix("since=")?.parse().ok()?;
        let token = match words.next() {
            Some(word) => Some(word.strip_prefix("token=")?.parse().ok()?),
            None => None,
        };
        let is_whole = words.next().is_none() && is_kept == owner.is_none();
        is_whole.then_some(Text {
            mode,
            owner,
            since,
            token,
        })
    }
}

/// What stands in the line of that name.
pub(super) fn line_of(keys: &Keys, found: Vec<KeyValue>) -> Line {
    Line::of(found.into_iter().map(|found| entry_of(keys, found)))
}

/// What one of its keys holds.
pub(super) fn entry_of(keys: &Keys, found: KeyValue) -> Entry {
    let text = Text::parse(&found.value);
    let who = match &text {
        Some(Text {
            owner: Some(owner), ..
        }) => Who::Owner(owner.clone()),
        Some(_) => Who::Kept,
        None => Who::Stranger,
    };
    let prefix = keys.line_prefix();
    let id = found.key.strip_prefix(&prefix).unwrap_or(&found.key);
    Entry {
        id: id.to_owned(),
        place: found.created,
        mode: text.as_ref().map_or(Mode::Exclusive, |text| text.mode),
        who,
        token: text.as_ref().and_then(|text| text.token),
        since: text.map_or(0, |text| text.since),
        session: found.lease.map(|lease| lease.0),
        version: found.modified,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::{Random, for_any};

    fn any_mode(random: &mut Random) -> Mode {
        match random.u8(0..3) {
            0 => Mode::Exclusive,
            1 => Mode::Shared,
            _ => {
                let of = random.u32(1..);
                let count = random.u32(1..=of);
                Mode::Permits { count, of }
            }
        }
    }

    #[test]
    fn text_is_read_as_it_was_written() {
        for_any(|random| {
            let label = random.text_without(char::is_control, 0..=5);
            let owner = Owner::from_text(&format!("id/host/1/2/{label}"));
            let text = Text {
                mode: any_mode(random),
                owner: random.option(|_| owner.clone()),
                since: random.magnitude(),
                token: random.option(Random::magnitude),
            };
            assert_eq!(Text::parse(&text.to_bytes()), Some(text));
        });
    }

    #[test]
    fn text_is_what_operators_read() {
        let text = Text {
            mode: Mode::Permits { count: 2, of: 5 },
            owner: Some(Owner::from_text("id/host/1/2")),
            since: 1_700_000_000_000,
            token: Some(4097),
        };
        let bytes = text.to_bytes();
        let read = String::from_utf8_lossy(&bytes);
        assert_eq!(read, "p 2/5 since=1700000000000 token=4097\nid/host/1/2");
    }

    #[test]
    fn other_texts_are_no_places_of_ours() {
        for other in [
            "",
            "x",
            "x\nid",
            "x since=1",
            "x kept since=1\nid",
            "p 2 since=1\nid",
            "r since=1 token=\nid",
            "r since=1 token=5 more\nid",
            "X since=1\nid",
        ] {
            assert_eq!(Text::parse(other.as_bytes()), None, "{other:?}");
        }
        assert_eq!(Text::parse(b"\xff since=1\nid"), None);
    }
}
