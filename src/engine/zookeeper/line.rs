//! The line of a name, as its children tell it.

use super::nodes::{self, HELD, Member, VALUE};
use crate::base::claim::Mode;
use crate::engine::line::{self, Standing};

/// The line of a name, and what else its children tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// In the order in which they came.
    pub(super) members: Vec<Member>,
    /// Whether an exclusive owner was let in and hasn't released the lock.
    pub(super) is_marked: bool,
    pub(super) has_value: bool,
    /// Owners whose locks were broken.
    pub(super) broken: Vec<String>,
}

impl Line {
    /// That of a name with these children.
    pub(super) fn of(children: &[String]) -> Self {
        let mut line = Line::default();
        for child in children {
            match &**child {
                HELD => line.is_marked = true,
                VALUE => line.has_value = true,
                other => match nodes::broken_owner(other) {
                    Some(owner) => line.broken.push(owner.to_owned()),
                    None => line.members.extend(Member::of(other)),
                },
            }
        }
        line.sort();
        line
    }

    /// The servers' counter goes on below zero after its largest number.
    fn sort(&mut self) {
        const FAR: i32 = 1 << 30;
        let numbers = || self.members.iter().map(|member| member.number);
        let has_wrapped =
            numbers().any(|number| number > FAR) && numbers().any(|number| number < -FAR);
        let place = |member: &Member| {
            let number = i64::from(member.number);
            if has_wrapped && number < 0 {
                number + (1 << 32)
            } else {
                number
            }
        };
        self.members.sort_by_key(place);
    }

    /// Where that node stands.
    pub(super) fn place(&self, path: &str) -> Option<usize> {
        let (_, node) = path.rsplit_once('/')?;
        self.members.iter().position(|member| member.node == node)
    }

    /// Where an owner stands: with the first of its nodes, if an earlier session has left others.
    pub(super) fn position(&self, uuid: &str) -> Option<usize> {
        let is_it = |member: &Member| !member.is_kept && member.uuid == uuid;
        self.members.iter().position(is_it)
    }

    /// The owner that is first, if it excludes all others, and says in `held` that it was let in.
    pub(super) fn first_exclusive(&self) -> Option<&str> {
        let first = self.members.first()?;
        let is_one = first.mode == Mode::Exclusive && !first.is_kept && !first.is_curators();
        is_one.then_some(&first.uuid)
    }

    /// Whether the owner is there.
    pub(super) fn has(&self, uuid: &str) -> bool {
        self.position(uuid).is_some()
    }

    /// Whether somebody broke the lock of that owner.
    pub(super) fn is_broken(&self, uuid: &str) -> bool {
        self.broken.iter().any(|broken| broken == uuid)
    }

    fn modes(&self) -> Vec<Mode> {
        self.members.iter().map(|member| member.mode).collect()
    }

    /// How the owner at that place stands.
    pub(super) fn standing(&self, place: usize) -> Standing {
        let modes = self.modes();
        line::standing(&modes[..place], modes[place])
    }

    /// Whether an owner that came now would hold.
    pub(super) fn lets_in(&self, mode: Mode) -> bool {
        line::standing(&self.modes(), mode) == Standing::Holds
    }

    /// The places that are kept.
    pub(super) fn kept(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.is_kept)
    }

    /// Those that hold, among them the places that are kept.
    pub(super) fn holders(&self) -> Vec<&Member> {
        let holds: Vec<_> = line::holders(&self.modes()).collect();
        let members = self.members.iter().zip(holds);
        members
            .filter_map(|(member, holds)| holds.then_some(member))
            .collect()
    }

    /// How many of so many permits are free.
    pub(super) fn free_permits(&self, of: u32) -> u32 {
        let modes: Vec<_> = self.holders().iter().map(|member| member.mode).collect();
        match modes.first() {
            None => of,
            Some(Mode::Permits { .. }) => {
                let used = line::used(&modes).try_into().unwrap_or(of);
                of.saturating_sub(used)
            }
            // Where a writer or readers have the name, none is free.
            Some(_) => 0,
        }
    }

    /// Without those members.
    pub(super) fn without(mut self, gone: &[String]) -> Self {
        self.members.retain(|member| !gone.contains(&member.node));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::for_any;

    fn uuid(number: u32) -> String {
        format!("{number:08x}-89ab-4def-8123-456789abcdef")
    }

    fn node(tag: &str, number: i32) -> String {
        let owner = uuid(number.unsigned_abs());
        format!("{tag}-{owner}-lock-{number:010}")
    }

    #[test]
    fn owners_stand_in_the_order_of_their_numbers() {
        for_any(|random| {
            let first = random.u32(..).cast_signed();
            let count = random.u32(1..20).cast_signed();
            let numbers: Vec<_> = (0..count).map(|at| first.wrapping_add(at)).collect();
            let mut children: Vec<_> = numbers.iter().map(|number| node("x", *number)).collect();
            let swapped = random.usize(..children.len());
            children.swap(0, swapped);
            children.push(HELD.to_owned());
            let line = Line::of(&children);
            let found: Vec<_> = line.members.iter().map(|member| member.number).collect();
            assert_eq!(found, numbers);
            assert!(line.is_marked && !line.has_value);
        });
    }

    #[test]
    fn those_ahead_decide() {
        let children = [node("r", 3), node("x", 4), node("kr", 2), node("r", 5)];
        let line = Line::of(&children);
        assert_eq!(line.standing(1), Standing::Holds);
        assert_eq!(line.standing(2), Standing::Behind(1));
        assert_eq!(line.standing(3), Standing::Behind(2));
        assert_eq!(line.position(&uuid(2)), None, "it is only kept");
        assert_eq!(line.position(&uuid(4)), Some(2));
        assert_eq!(line.kept().count(), 1);
        assert_eq!(line.holders().len(), 2);
        assert!(!line.lets_in(Mode::Shared));
        let later = line.without(&[node("x", 4)]);
        assert!(later.lets_in(Mode::Shared) && !later.lets_in(Mode::Exclusive));
        assert_eq!(later.free_permits(3), 0);
    }

    #[test]
    fn permits_are_counted() {
        let line = Line::of(&[node("p2of5", 1), node("kp1of5", 2), node("p3of5", 3)]);
        assert_eq!(line.free_permits(5), 2);
        assert_eq!(line.standing(2), Standing::BehindSome);
        assert_eq!(Line::default().free_permits(5), 5);
        assert_eq!(Line::of(&[node("x", 1)]).free_permits(5), 0);
    }

    #[test]
    fn broken_owners_and_other_nodes_are_no_members() {
        let one = uuid(1);
        let children = [nodes::broken(&one), VALUE.into(), "lock-0000000001".into()];
        let line = Line::of(&children);
        assert!(line.members.is_empty() && line.has_value && line.is_broken(&one));
        assert!(!line.is_broken(&uuid(2)));
    }
}
