//! The line of a name: who stands in it, in the order in which they came.

use super::order::{self, Standing};
use crate::base::claim::Mode;
use crate::base::owner::Owner;

/// One that stands in the line of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// How the store tells it from the others of its line.
    pub(crate) id: String,
    /// Its order in the line, and in none but lines of this store: who came later has more.
    pub(crate) place: u64,
    pub(crate) mode: Mode,
    pub(crate) who: Who,
    /// The first token of its lease, if that isn't the token of its place.
    pub(crate) token: Option<u64>,
    /// When it came, in milliseconds since 1970, by its host's clock or the servers': for those who look.
    pub(crate) since: u64,
    /// What it ends with at the servers: a lease, or a session. `None`: nothing, or it isn't known.
    pub(crate) session: Option<i64>,
    /// In which it was seen: who changes it changes that. 0 where the store compares none.
    pub(crate) version: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// Where a look shows no more, it is the owner's uuid alone.
    Owner(Owner),
    /// Nobody: its owner has released it, and it stays taken for a while.
    Kept,
    /// A program that isn't crosslock.
    Stranger,
}

impl Entry {
    pub(crate) fn owner(&self) -> Option<&Owner> {
        match &self.who {
            Who::Owner(owner) => Some(owner),
            Who::Kept | Who::Stranger => None,
        }
    }

    pub(crate) fn is_of(&self, owner: &Owner) -> bool {
        self.owner()
            .is_some_and(|one| uuid_of(one) == uuid_of(owner))
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.who == Who::Kept
    }
}

/// By which the entries of an owner are told from those of others: what is random of it.
pub(crate) fn uuid_of(owner: &Owner) -> &str {
    const UUID: usize = 36;
    let text = owner.as_str();
    text.get(..UUID).unwrap_or(text)
}

/// Those that stand in line for a name, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line(pub(crate) Vec<Entry>);

impl Line {
    pub(crate) fn of(entries: impl IntoIterator<Item = Entry>) -> Self {
        let mut entries: Vec<_> = entries.into_iter().collect();
        entries.sort_by_key(|entry| entry.place);
        Line(entries)
    }

    pub(crate) fn modes(&self) -> Vec<Mode> {
        self.0.iter().map(|entry| entry.mode).collect()
    }

    /// The entry of an owner, and where it is.
    pub(crate) fn find(&self, owner: &Owner) -> Option<(usize, &Entry)> {
        let mut entries = self.0.iter().enumerate();
        entries.find(|(_, entry)| entry.is_of(owner))
    }

    /// How the one at that place stands.
    pub(crate) fn standing(&self, at: usize) -> Standing {
        let modes = self.modes();
        order::standing(&modes[..at], modes[at])
    }

    /// Whether an owner that came now would hold.
    pub(crate) fn lets_in(&self, mode: Mode) -> bool {
        order::standing(&self.modes(), mode) == Standing::Holds
    }

    /// The nearest of those ahead of the one at that place, which waits, that leave too few permits for it, however many of
    /// the others leave.
    pub(crate) fn in_way_of(&self, at: usize) -> &[Entry] {
        let modes = self.modes();
        let left = match modes[at] {
            Mode::Permits { count, of } => u64::from(of).saturating_sub(count.into()),
            Mode::Exclusive | Mode::Shared => 0,
        };
        let first = (0..=at)
            .rev()
            .find(|first| left < order::used(&modes[*first..at]));
        &self.0[first.unwrap_or(0)..at]
    }

    /// Which of them hold the name. Whoever holds has nobody ahead that doesn't.
    pub(crate) fn holders(&self) -> &[Entry] {
        let modes = self.modes();
        let holds = order::holders(&modes).take_while(|holds| *holds);
        &self.0[..holds.count()]
    }

    /// How many of so many permits are free. Where a writer or readers have the name, none is.
    pub(crate) fn free_permits(&self, of: u32) -> u32 {
        let modes: Vec<_> = self.holders().iter().map(|entry| entry.mode).collect();
        let is_permits = |mode: &Mode| matches!(mode, Mode::Permits { .. });
        if !modes.iter().all(is_permits) {
            return 0;
        }
        let free = u64::from(of).saturating_sub(order::used(&modes));
        free.try_into().unwrap_or(of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::for_any;

    fn entry(id: &str, place: u64, mode: Mode) -> Entry {
        Entry {
            id: id.to_owned(),
            place,
            mode,
            who: Who::Owner(Owner::from_text(&format!("{id}/h/1/1"))),
            token: None,
            since: 0,
            session: None,
            version: place,
        }
    }

    #[test]
    fn whoever_came_first_is_first_and_strangers_exclude() {
        let stranger = Entry {
            who: Who::Stranger,
            ..entry("f", 5, Mode::Exclusive)
        };
        let reader = |id, place| entry(id, place, Mode::Shared);
        let line = Line::of([reader("c", 9), reader("a", 3), stranger, reader("b", 4)]);
        let ids = |entries: &[Entry]| entries.iter().map(|one| one.id.clone()).collect::<String>();
        assert_eq!(ids(&line.0), "abfc");
        assert_eq!(ids(line.holders()), "ab");
        let c = Owner::from_text("c/h/1/1");
        let found = line.0.iter().position(|one| one.owner() == Some(&c));
        assert_eq!(found, Some(3));
        assert_eq!(line.standing(3), Standing::Behind(2));
        assert_eq!(line.standing(1), Standing::Holds);
        assert!(!line.lets_in(Mode::Shared));
        assert_eq!(line.find(&Owner::new()), None);
    }

    #[test]
    fn owner_is_found_by_its_uuid() {
        let owner = Owner::new();
        let mut own = entry("a", 2, Mode::Exclusive);
        own.who = Who::Owner(Owner::from_text(uuid_of(&owner)));
        let line = Line::of([own, entry("b", 1, Mode::Exclusive)]);
        assert_eq!(line.find(&owner).map(|(at, _)| at), Some(1));
        let kept = Entry {
            who: Who::Kept,
            ..line.0[1].clone()
        };
        assert_eq!(Line::of([kept]).find(&owner), None);
    }

    #[test]
    fn permits_are_counted() {
        let permits = |place, count| entry("p", place, Mode::Permits { count, of: 5 });
        let line = Line::of([permits(1, 2), permits(2, 1), permits(3, 3)]);
        assert_eq!(line.free_permits(5), 2);
        assert_eq!(line.standing(2), Standing::BehindSome);
        assert_eq!(Line::default().free_permits(5), 5);
        assert_eq!(
            Line::of([entry("x", 1, Mode::Exclusive)]).free_permits(5),
            0
        );
    }

    #[test]
    fn one_of_those_in_the_way_leaves_before_it_is_ones_turn() {
        for_any(|random| {
            let of = random.u32(1..=5);
            let counts = random.list(1..=8, |random| random.u32(1..=of));
            let entries = counts.iter().zip(0..);
            let entries =
                entries.map(|(count, nth)| entry("p", nth, Mode::Permits { count: *count, of }));
            let line = Line::of(entries);
            let last = line.0.len() - 1;
            if line.standing(last) == Standing::Holds {
                return;
            }
            let in_way = line.in_way_of(last);
            assert!(!in_way.is_empty());
            // All others leave.
            let left = Line::of(in_way.iter().chain([&line.0[last]]).cloned());
            assert_ne!(left.standing(left.0.len() - 1), Standing::Holds);
        });
    }
}
