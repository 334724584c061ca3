//! Calls that are cancelled, and lockers that are closed.

use super::*;

fn cancel(at: u64, id: u64) -> Event {
    event(at, "cancel", id)
}

fn cancelled(at: u64, id: u64) -> Event {
    with(event(at, "answer", id), "cancelled", "", 0)
}

/// By the process's first locker.
fn asked(at: u64, id: u64) -> Event {
    Event {
        token: 1,
        ..ask(at, id, "lock", 0)
    }
}

/// The first locker of process 1 is closed.
fn close(at: u64, until: u64) -> [Event; 2] {
    let close = Event {
        token: 1,
        name: String::new(),
        ..ask(at, 901, "close", 0)
    };
    let closed = Event {
        name: String::new(),
        ..with(event(until, "answer", 901), "closed", "", 0)
    };
    [close, closed]
}

#[test]
fn cancelled_call_is_over_within_50_ms() {
    passes([asked(10, 1), cancel(100, 1), cancelled(199, 1)]);
    breaks("C7", [asked(10, 1), cancel(100, 1), cancelled(201, 1)]);
    // It counts from when both have begun, and with the lock all the same.
    passes([cancel(10, 1), asked(100, 1), cancelled(199, 1)]);
    breaks("C7", [asked(10, 1), cancel(100, 1), taken(201, 1, 5, 400)]);
    passes([asked(10, 1), cancel(100, 1), taken(150, 1, 5, 400)]);
    // No fault but one that stops its process is an excuse.
    let late = || [asked(10, 1), cancel(100, 1), cancelled(300, 1)].into_iter();
    breaks("C7", late().chain(fault(90, 290, "black hole", 1)));
    passes(late().chain(fault(90, 290, "stop waiter", 1)));
    breaks("C7", late().chain(fault(90, 290, "stop waiter", 2)));
}

#[test]
fn call_is_cancelled_by_a_token_or_by_closing_its_locker_only() {
    breaks("C8", [asked(10, 1), cancelled(20, 1)]);
    breaks("C8", [asked(10, 1), cancelled(20, 1), cancel(21, 1)]);
    breaks("C8", [asked(10, 1), cancelled(20, 1), cancel(15, 2)]);
    let history = || [asked(10, 1), cancelled(20, 1)].into_iter();
    passes(history().chain(close(15, 30)));
    breaks("C8", history().chain(close(25, 30)));
    // Another locker, and another process's.
    let other = Event {
        token: 2,
        ..asked(10, 1)
    };
    breaks(
        "C8",
        [other, cancelled(20, 1)].into_iter().chain(close(15, 30)),
    );
    breaks(
        "C8",
        [asked(10, 2), cancelled(20, 2)]
            .into_iter()
            .chain(close(15, 30)),
    );
}

#[test]
fn locker_is_closed_within_500_ms_and_ends_its_calls() {
    passes(close(10, 550));
    breaks("C7", close(10, 570));
    let waits = |at| [asked(10, 1), cancelled(at, 1)].into_iter();
    passes(waits(190).chain(close(100, 200)));
    breaks("C7", waits(210).chain(close(100, 200)));
}

#[test]
fn closed_guard_is_held_until_it_says_that_it_is_lost() {
    let lost = with(event(130, "lost", 1), "", "closed", 0);
    let history = || {
        [
            asked(9, 1),
            taken(10, 1, 5, 400),
            lost.clone(),
            taken(120, 2, 9, 500),
        ]
    };
    passes(history().into_iter().chain(close(100, 200)));
    let valid = with(event(125, "look", 1), "", "", 500);
    let found = history().into_iter().chain([valid]);
    breaks("C1", found.chain(close(100, 200)));
    // Before it was closed.
    let [asked, held, lost, _] = history();
    let early = [asked, held, lost, taken(99, 2, 9, 500)];
    breaks("C1", early.into_iter().chain(close(100, 200)));
}

#[test]
fn loss_by_a_close_needs_one_of_its_locker() {
    let lost = with(event(130, "lost", 1), "", "closed", 0);
    let history = || [asked(9, 1), taken(10, 1, 5, 400), lost.clone()].into_iter();
    passes(history().chain(close(100, 200)));
    breaks("C4", history());
    breaks("C4", history().chain(fault(90, 95, "black hole", 1)));
    let other = Event {
        token: 0,
        ..asked(9, 1)
    };
    let by_other = history().skip(1).chain([other]);
    breaks("C4", by_other.chain(close(100, 200)));
}

#[test]
fn lock_goes_to_another_when_its_locker_is_closed() {
    let keys = [server::key(15, "x", 5, 410), server::key(130, "y", 9, 530)];
    let history = || {
        [asked(9, 1), taken(10, 1, 5, 400)]
            .into_iter()
            .chain(keys.clone())
    };
    passes(history().chain(close(100, 200)));
    breaks("C6", history());
    breaks("C6", history().chain(close(140, 200)));
}
