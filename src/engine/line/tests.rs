//! The recipe of a waiter over a store that answers as it is told, and notes what it was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::wait::LineWait;
use super::*;
use crate::base::claim::{Claim, Mode};
use crate::base::clock::{BootInstant, Deadline};
use crate::base::error::{Error, Result};
use crate::base::options::Options;
use crate::base::owner::Owner;
use crate::base::random::for_any;
use crate::base::sys::sync::Mutex;
use crate::base::token::Token;
use crate::engine::{Answer, Capabilities, Failed, Grant, Pace, Request, Revocations, Wait};

/// `None`: there is no answer.
#[derive(Debug, Default)]
struct Fake(Mutex<(VecDeque<Option<Step>>, Vec<String>)>);

struct FakeWatch;

/// Whether a watch is current: those of this revision are.
const CURRENT: u64 = 7;

impl Fake {
    fn step(&self, asked: String) -> Result<Step, Failed> {
        let mut all = self.0.lock();
        all.1.push(asked);
        let step = all.0.pop_front().expect("it is told the answer");
        step.ok_or_else(|| Failed::sent(Error::unavailable(Some("n"), "fake", "no answer")))
    }

    fn note(&self, asked: &str) {
        self.0.lock().1.push(asked.to_owned());
    }
}

impl LineWatch for FakeWatch {
    fn goes_on_for(&mut self, _blocker: &Blocker, _seen: &Snapshot) -> bool {
        true
    }

    fn wait(&mut self, _until: &Deadline) -> Result<bool> {
        Ok(false)
    }
}

impl LineStore for Fake {
    type Watch = FakeWatch;

    fn endpoint(&self) -> &str {
        "fake"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn gives_up_by(&self, deadline: &Deadline) -> Deadline {
        deadline.clone()
    }

    fn enter(&self, _: Request<'_>, when: When, _: &Deadline) -> Result<Step, Failed> {
        self.step(format!("enter {when:?}"))
    }

    fn look(&self, _: Request<'_>, why: Why, _: &Deadline) -> Result<Step, Failed> {
        self.step(format!("look {why:?}"))
    }

    fn admit(&self, _: Request<'_>, _: &Snapshot, _: &Deadline) -> Result<Step, Failed> {
        self.step("admit".to_owned())
    }

    fn rest(&self, _: Request<'_>) -> Duration {
        Duration::from_secs(1)
    }

    fn watch(
        &self,
        _: Request<'_>,
        _: &Blocker,
        seen: &Snapshot,
        _: &Deadline,
    ) -> Result<Watched<FakeWatch>> {
        self.note("watch");
        Ok(Watched {
            watch: FakeWatch,
            is_current: seen.revision == CURRENT,
            holder: None,
        })
    }

    fn leave(&self, _: Request<'_>, _: &Deadline) -> Result<(), Failed> {
        self.step("leave".to_owned()).map(drop)
    }

    fn has_inflight(&self, _: Request<'_>) -> bool {
        true
    }

    fn retire(&self, _: Request<'_>, _: &Deadline) {
        self.note("retire");
    }

    fn discard(&self, _: Request<'_>, _: &Deadline) {
        self.note("discard");
    }

    fn settle(&self, _: Request<'_>, _: &Deadline) {}

    fn tell_revocations(&self, _: Weak<dyn Revocations>) {}

    fn after_fork(&self) -> Arc<Self> {
        Arc::default()
    }
}

struct Call {
    fake: Arc<Fake>,
    wait: LineWait<Fake>,
    claim: Claim,
    owner: Owner,
}

impl Call {
    fn new(mode: Mode) -> Self {
        let fake = Arc::new(Fake::default());
        Call {
            wait: LineWait::new(fake.clone()),
            fake,
            claim: Claim {
                mode,
                ..Claim::exclusive("ns", "n")
            },
            owner: Owner::new(),
        }
    }

    /// Asks, and gives the answer if there is one, and what the store was asked.
    fn ask(
        &mut self,
        waits: bool,
        steps: impl IntoIterator<Item = Option<Step>>,
    ) -> (Option<Answer>, Vec<String>) {
        *self.fake.0.lock() = (steps.into_iter().collect(), Vec::new());
        let request = Request {
            claim: &self.claim,
            owner: &self.owner,
            ttl: Duration::from_secs(30),
            granted: None,
        };
        let mut backoff = Options::default().backoff.waits();
        let mut pace = waits.then_some(Pace {
            backoff: &mut backoff,
            counted: false,
            until: &Deadline::NEVER,
        });
        let answer = self.wait.ask(request, pace.as_mut(), &Deadline::NEVER).ok();
        if let Some(Answer::Taken {
            is_queued: true, ..
        }) = answer
        {
            self.wait.wait(request, pace.as_mut().expect("it waits"));
        }
        let asked = std::mem::take(&mut self.fake.0.lock().1);
        (answer, asked)
    }

    /// The owner behind so many others, with its entry; or these alone.
    fn seen(&self, others: u64, own: Presence, revision: u64) -> Option<Step> {
        let entry = |place, owner| Entry {
            id: format!("{place}"),
            place,
            mode: self.claim.mode,
            who: Who::Owner(owner),
            token: None,
            since: 0,
            session: None,
            version: 0,
        };
        let has_entry = own == Presence::Entries;
        let own_entry = has_entry.then(|| entry(others, self.owner.clone()));
        let ahead = (0..others).map(|place| entry(place, Owner::new()));
        Some(Step::Seen(Snapshot {
            lines: vec![Line::of(ahead.chain(own_entry))],
            is_whole: true,
            own,
            is_broken: false,
            is_abandoned: false,
            value: None,
            revision,
        }))
    }
}

fn let_in() -> Option<Step> {
    Some(Step::In(Grant {
        token: Token::from_number(5),
        value: None,
        since: BootInstant::START,
    }))
}

fn is_queued(answer: Option<Answer>) -> Option<bool> {
    match answer {
        Some(Answer::Taken { is_queued, .. }) => Some(is_queued),
        _ => None,
    }
}

#[test]
fn waiter_keeps_itself_alive_while_nothing_changes() {
    let mut call = Call::new(Mode::Exclusive);
    let behind = call.seen(1, Presence::Entries, CURRENT);
    let (answer, asked) = call.ask(true, [behind]);
    assert_eq!(is_queued(answer), Some(true));
    assert_eq!(asked, ["enter Always", "watch"]);
    let (answer, asked) = call.ask(true, [Some(Step::Same)]);
    assert_eq!(is_queued(answer), Some(true));
    assert_eq!(asked, ["look Quiet"]);
}

#[test]
fn what_happened_before_a_watch_is_looked_for() {
    let mut call = Call::new(Mode::Exclusive);
    let behind = call.seen(1, Presence::Entries, CURRENT - 1);
    let first = call.seen(0, Presence::Entries, CURRENT);
    let (answer, asked) = call.ask(true, [behind, first, let_in()]);
    assert!(matches!(answer, Some(Answer::Granted(_))));
    assert_eq!(asked, ["enter Always", "watch", "look Missed", "admit"]);
}

#[test]
fn whoever_does_not_wait_leaves_nothing_in_line() {
    let mut call = Call::new(Mode::Permits { count: 1, of: 1 });
    // One that would be let in comes, and finds that another was quicker.
    let (free, behind) = (
        call.seen(0, Presence::Nothing, 3),
        call.seen(1, Presence::Entries, 4),
    );
    let (answer, asked) = call.ask(false, [free, behind, Some(Step::Same)]);
    assert_eq!(is_queued(answer), Some(false));
    assert_eq!(
        asked,
        ["enter IfFree", "enter AsSeen(3)", "leave", "retire"]
    );
}

#[test]
fn owner_that_left_without_an_answer_gets_nothing_any_more() {
    let mut call = Call::new(Mode::Exclusive);
    let behind = call.seen(1, Presence::Entries, CURRENT);
    let (answer, asked) = call.ask(false, [behind, None]);
    assert_eq!(answer, None);
    assert_eq!(asked, ["enter IfFree", "leave"]);
    let (answer, asked) = call.ask(true, [None]);
    assert_eq!((answer, &*asked), (None, &["leave".to_owned()][..]));
    let (answer, asked) = call.ask(true, [Some(Step::Same)]);
    assert_eq!(answer, Some(Answer::Broken));
    assert_eq!(asked, ["leave", "retire"]);
}

#[test]
fn remains_are_given_up_before_the_owner_enters_anew() {
    let mut call = Call::new(Mode::Exclusive);
    let (answer, _) = call.ask(true, [None]);
    assert_eq!(answer, None);
    let remains = call.seen(1, Presence::Remains, CURRENT);
    let (answer, asked) = call.ask(true, [remains, Some(Step::Same), let_in()]);
    assert!(matches!(answer, Some(Answer::Granted(_))));
    assert_eq!(asked, ["look Unclear", "leave", "retire", "enter Always"]);
}

#[test]
fn owner_whose_entries_are_gone_enters_anew_under_another_lease() {
    let mut call = Call::new(Mode::Exclusive);
    let behind = call.seen(1, Presence::Entries, CURRENT);
    call.ask(true, [behind]);
    let gone = call.seen(1, Presence::Nothing, CURRENT);
    let (answer, asked) = call.ask(true, [gone, let_in()]);
    assert!(matches!(answer, Some(Answer::Granted(_))));
    assert_eq!(asked, ["look Quiet", "discard", "enter Always"]);
}

#[test]
fn broken_owner_leaves_and_another_has_to_ask() {
    let mut call = Call::new(Mode::Shared);
    let mut seen = call.seen(1, Presence::Nothing, CURRENT);
    if let Some(Step::Seen(seen)) = &mut seen {
        seen.is_broken = true;
    }
    let (answer, asked) = call.ask(true, [seen, Some(Step::Same)]);
    assert_eq!(answer, Some(Answer::Broken));
    assert_eq!(asked, ["enter Always", "leave", "retire"]);
}

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
