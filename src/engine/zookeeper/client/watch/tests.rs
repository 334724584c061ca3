//! Watches that are set, told, and lost.

use super::*;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

fn in_time() -> Deadline {
    Deadline::after(Duration::from_secs(20))
}

fn over() -> Deadline {
    Deadline::after(Duration::ZERO)
}

#[test]
fn caller_waits_for_all_answers() {
    let slot = AnswerSlot::new(2);
    let answers = thread::scope(|scope| {
        let waits = scope.spawn(|| slot.wait(&in_time()));
        slot.answer(1);
        slot.answer(2);
        waits.join().unwrap()
    });
    assert_eq!(answers.unwrap(), [1, 2]);
}

#[test]
fn answers_that_are_there_at_the_deadline_count() {
    let slot = AnswerSlot::new(1);
    slot.answer(1);
    slot.fail(Failure::Ended);
    assert!(slot.wait(&over()).is_ok());
}

#[test]
fn late_answers_are_nobodys() {
    let slot = AnswerSlot::new(2);
    slot.answer(1);
    assert!(matches!(slot.wait(&over()), Err(Failure::TimedOut)));
    slot.answer(1);
}

#[test]
fn failure_is_told_when_an_answer_is_missing() {
    let slot = AnswerSlot::new(2);
    slot.answer(1);
    slot.fail(Failure::Ended);
    slot.fail(Failure::TimedOut);
    assert!(matches!(slot.wait(&in_time()), Err(Failure::Ended)));
}

#[test]
fn first_event_counts() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    let watcher = Watcher::calling(move |_| _ = counted.fetch_add(1, Ordering::SeqCst));
    assert_eq!(watcher.wait(&over()), None);
    watcher.listening().tell(WatchEvent::Changed);
    watcher.listening().tell(WatchEvent::ConnectionLost);
    assert_eq!(watcher.wait(&in_time()), Some(WatchEvent::Changed));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[test]
fn watcher_stands_from_the_answer_to_the_first_event() {
    let watcher = Watcher::new();
    let listening = watcher.listening();
    assert!(!watcher.stands());
    listening.set();
    assert!(watcher.stands());
    listening.tell(WatchEvent::ConnectionLost);
    listening.set();
    assert!(!watcher.stands());
}

#[test]
fn nobody_is_told_when_all_clones_are_gone() {
    let watcher = Watcher::new();
    let listening = watcher.listening();
    let clone = watcher.clone();
    drop(watcher);
    assert!(listening.is_alive());
    drop(clone);
    assert!(!listening.is_alive());
    listening.tell(WatchEvent::Changed);
}

#[test]
fn event_is_for_those_that_watch_just_that() {
    for (event, data, children) in [
        (Event::Changed(Watched::Data), true, false),
        (Event::Changed(Watched::Children), false, true),
        (Event::Deleted, true, true),
    ] {
        let mut watches = Watches::default();
        let watchers = [Watched::Data, Watched::Children].map(|watched| {
            let watcher = Watcher::new();
            watches.add("/a".to_owned(), watched, watcher.listening());
            watcher
        });
        let other = Watcher::new();
        watches.add("/b".to_owned(), Watched::Data, other.listening());
        let tell = |told: Vec<Listening>| told.iter().for_each(|one| one.tell(WatchEvent::Changed));
        tell(watches.take(event, "/a"));
        let told = watchers.map(|watcher| watcher.told().is_some());
        assert_eq!(told, [data, children], "{event:?}");
        assert_eq!(other.told(), None);
        assert!(watches.take(event, "/a").is_empty());
    }
}

#[test]
fn those_that_left_are_forgotten() {
    let mut watches = Watches::default();
    let stays = Watcher::new();
    watches.add("/stays".to_owned(), Watched::Data, stays.listening());
    for number in 0..10_000 {
        let leaves = Watcher::new();
        watches.add(format!("/{number}"), Watched::Data, leaves.listening());
        watches.add("/a".to_owned(), Watched::Data, leaves.listening());
    }
    assert!(watches.nodes.len() <= 2 * FEW);
    assert_eq!(watches.nodes["/a"].len(), 1);
    let all = watches.take_all();
    all.iter()
        .for_each(|one| one.tell(WatchEvent::ConnectionLost));
    assert_eq!(stays.told(), Some(WatchEvent::ConnectionLost));
}
