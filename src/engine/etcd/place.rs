//! A place in the line of a name, as it stands in its key, and the line.
//!
//! The text of a place has two lines: how the owner wants the name, and the owner. The first is words: `x` (alone), `r` (to
//! read) or `p 2/5` (permits); then `kept`, if nobody has it any more, and its time isn't over; `since=`, when it was
//! written, by its host's clock; `token=`, of a lease that is not the first of its place. A place with another text is
//! that of a program that isn't crosslock, such as `etcdctl lock`, and excludes all.

use std::fmt::Write;

use super::client::txn::{Entry, LeaseId};
use super::keys::last_part;
use crate::base::claim::Mode;
use crate::base::owner::Owner;
use crate::engine::line::{self, Standing, token_of};

/// What an owner has written into its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) mode: Mode,
    /// `None`: its owner has released it, and it stays taken for a while.
    pub(super) owner: Option<Owner>,
    /// In milliseconds since 1970, by the clock of the owner's host: for those who look.
    pub(super) since: u64,
    /// The first token of the lease; `None`: that of its place.
    pub(super) token: Option<u64>,
}

impl Text {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut text = match self.mode {
            Mode::Exclusive => String::from("x"),
            Mode::Shared => String::from("r"),
            Mode::Permits { count, of } => format!("p {count}/{of}"),
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

    /// `None` for what no owner has written.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let (first, owner) = match text.split_once('\n') {
            Some((first, owner)) => (first, Some(Owner::from_text(owner))),
            None => (text, None),
        };
        let mut words = first.split(' ').peekable();
        let mode = match words.next()? {
            "x" => Mode::Exclusive,
            "r" => Mode::Shared,
            "p" => permits(words.next()?)?,
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

fn permits(word: &str) -> Option<Mode> {
    let (count, of) = word.split_once('/')?;
    Some(Mode::Permits {
        count: count.parse().ok()?,
        of: of.parse().ok()?,
    })
}

/// A place in the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The last part of its key.
    pub(super) id: String,
    pub(super) key: String,
    /// `None`: of a program that isn't crosslock.
    pub(super) text: Option<Text>,
    /// Its order in the line.
    pub(super) created: u64,
    pub(super) modified: u64,
    pub(super) lease: Option<LeaseId>,
}

impl Place {
    fn of(entry: Entry) -> Self {
        Place {
            id: last_part(&entry.key).to_owned(),
            text: Text::parse(&entry.value),
            key: entry.key,
            created: entry.created,
            modified: entry.modified,
            lease: entry.lease,
        }
    }

    pub(super) fn mode(&self) -> Mode {
        self.text.as_ref().map_or(Mode::Exclusive, |text| text.mode)
    }

    pub(super) fn owner(&self) -> Option<&Owner> {
        self.text.as_ref()?.owner.as_ref()
    }

    /// Whether nobody has it any more, and it stays taken for a while.
    pub(super) fn is_kept(&self) -> bool {
        self.text.as_ref().is_some_and(|text| text.owner.is_none())
    }

    /// The first token of its lease.
    pub(super) fn token(&self, abandoned: bool) -> u64 {
        let own = self.text.as_ref().and_then(|text| text.token);
        own.unwrap_or_else(|| token_of(self.created, abandoned).number)
    }
}

/// All that stand in line for a name, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line(pub(super) Vec<Place>);

impl Line {
    pub(super) fn of(entries: Vec<Entry>) -> Self {
        let mut places: Vec<_> = entries.into_iter().map(Place::of).collect();
        places.sort_by_key(|place| place.created);
        Line(places)
    }

    pub(super) fn modes(&self) -> Vec<Mode> {
        self.0.iter().map(Place::mode).collect()
    }

    /// The place of an owner, and where it is.
    pub(super) fn find(&self, owner: &Owner) -> Option<(usize, &Place)> {
        let mut places = self.0.iter().enumerate();
        places.find(|(_, place)| place.owner() == Some(owner))
    }

    /// How the one at that place stands.
    pub(super) fn standing(&self, at: usize) -> Standing {
        let modes = self.modes();
        line::standing(&modes[..at], modes[at])
    }

    /// The nearest of those ahead of the one at that place, which waits, that leave too few permits for it, however many of
    /// the others leave.
    pub(super) fn in_way_of(&self, at: usize) -> impl Iterator<Item = &Place> {
        let modes = self.modes();
        let left = match modes[at] {
            Mode::Permits { count, of } => u64::from(of).saturating_sub(count.into()),
            Mode::Exclusive | Mode::Shared => 0,
        };
        let first = (0..=at)
            .rev()
            .find(|first| left < line::used(&modes[*first..at]));
        self.0[first.unwrap_or(0)..at].iter()
    }

    /// Which of them hold the name.
    pub(super) fn holders(&self) -> impl Iterator<Item = &Place> {
        let modes = self.modes();
        let holds: Vec<_> = line::holders(&modes).collect();
        let places = self.0.iter().zip(holds);
        places.filter(|(_, holds)| *holds).map(|(place, _)| place)
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
            _ => Mode::Permits {
                count: random.u32(..),
                of: random.u32(..),
            },
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

    fn entry(id: &str, created: u64, text: &str) -> Entry {
        Entry {
            key: format!("ns/a/w/{id}"),
            value: text.into(),
            created,
            modified: created,
            lease: None,
        }
    }

    #[test]
    fn whoever_came_first_is_first_and_strangers_exclude() {
        let reader = |id: &str| format!("r since=1\n{id}/h/1/1");
        let line = Line::of(vec![
            entry("c", 9, &reader("c")),
            entry("a", 3, &reader("a")),
            entry("f", 5, ""),
            entry("b", 4, &reader("b")),
        ]);
        let ids: Vec<_> = line.0.iter().map(|place| &*place.id).collect();
        assert_eq!(ids, ["a", "b", "f", "c"]);
        let holders: Vec<_> = line.holders().map(|place| &*place.id).collect();
        assert_eq!(holders, ["a", "b"]);
        let c = Owner::from_text("c/h/1/1");
        assert_eq!(line.find(&c).map(|(at, _)| at), Some(3));
        assert_eq!(line.standing(3), Standing::Behind(2));
        assert_eq!(line.standing(1), Standing::Holds);
        assert_eq!(line.find(&Owner::from_text("f/h/1/1")), None);
    }

    #[test]
    fn one_of_those_in_the_way_leaves_before_it_is_ones_turn() {
        for_any(|random| {
            let of = random.u32(1..=5);
            let place = |nth: u64, count: u32| Place {
                id: nth.to_string(),
                key: nth.to_string(),
                text: Some(Text {
                    mode: Mode::Permits { count, of },
                    owner: Some(Owner::new()),
                    since: 0,
                    token: None,
                }),
                created: nth,
                modified: nth,
                lease: None,
            };
            let counts = random.list(1..=8, |random| random.u32(1..=of));
            let places = counts
                .iter()
                .zip(0..)
                .map(|(count, nth)| place(nth, *count));
            let line = Line(places.collect());
            let last = line.0.len() - 1;
            if line.standing(last) == Standing::Holds {
                return;
            }
            let in_way: Vec<_> = line.in_way_of(last).map(|place| place.created).collect();
            assert!(!in_way.is_empty());
            // All others leave.
            let left = line.0.iter().enumerate();
            let left = left.filter(|(at, one)| *at == last || in_way.contains(&one.created));
            let left = Line(left.map(|(_, one)| one.clone()).collect());
            assert_ne!(left.standing(left.0.len() - 1), Standing::Holds);
        });
    }
}
