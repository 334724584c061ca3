//! What is sent, and what its answers do.

use std::time::Duration;

use super::*;
use crate::base::clock::Deadline;
use crate::engine::zookeeper::client::jute::Encoder;
use crate::engine::zookeeper::client::ops::{Answer, Op};
use crate::engine::zookeeper::client::watch::{AnswerSlot, Event, Watcher};
use crate::engine::zookeeper::client::wire::Acl;

const TICK: Duration = Duration::from_millis(400);

fn at(millis: u64) -> BootInstant {
    BootInstant::START.plus(Duration::from_millis(millis))
}

fn state() -> State {
    let proof = Proof::new(TICK, at(0), at(0));
    let phase = Phase::Disconnected("not yet".into());
    State::new(Handshake::new(2_000), phase, proof, at(0))
}

fn send(state: &mut State, op: &Op, sent: BootInstant) -> Arc<AnswerSlot<Answer>> {
    let slot = Arc::new(AnswerSlot::new(1));
    state.enlist(vec![Item::new(op, Acl::World, &slot)], sent);
    slot
}

fn answer(state: &mut State, xid: i32, error: i32, body: &[u8], now: u64) -> bool {
    let header = Header {
        xid,
        zxid: 5,
        error,
    };
    state
        .answer(header, &mut Decoder::new(body), at(now))
        .is_ok()
}

fn answered(slot: &Arc<AnswerSlot<Answer>>) -> Option<Answer> {
    let over = Deadline::after(Duration::ZERO);
    slot.wait(&over).ok()?.pop()
}

fn get(watcher: &Watcher) -> Op {
    Op::watch("/a", watcher.clone())
}

fn delete() -> Op {
    Op::delete("/a".into())
}

#[test]
fn answers_are_in_the_order_of_requests() {
    let mut state = state();
    let slots = [(); 2].map(|()| send(&mut state, &delete(), at(1)));
    assert!(!answer(&mut state, 2, 0, &[], 2));
    assert!(answer(&mut state, 1, 0, &[], 2));
    assert!(answer(&mut state, 2, -101, &[], 2));
    assert!(!answer(&mut state, 3, 0, &[], 2));
    let [first, second] = slots.map(|slot| answered(&slot));
    assert_eq!(first, Some(Ok(Reply::Done)));
    assert_eq!(second, Some(Err(Code::NO_NODE)));
    assert_eq!(state.handshake.last_zxid, 5);
}

#[test]
fn what_is_not_there_is_not_watched() {
    let data = Encoder::default().buffer(b"").finish();
    let stat = [0; 68];
    for (error, body, is_told) in [
        (-101, Vec::new(), false),
        (0, [&data[..], &stat].concat(), true),
    ] {
        let (mut state, watcher) = (state(), Watcher::new());
        send(&mut state, &get(&watcher), at(1));
        assert!(answer(&mut state, 1, error, &body, 2));
        let told = state.watches.take(Event::Deleted, "/a");
        assert_eq!(told.len(), usize::from(is_told));
    }
}

#[test]
fn watcher_without_an_answer_hears_of_a_lost_connection() {
    let (mut state, watcher) = (state(), Watcher::new());
    send(&mut state, &get(&watcher), at(1));
    state
        .pending
        .iter()
        .for_each(|one| one.fail(Failure::Ended));
    assert_eq!(watcher.told(), Some(WatchEvent::ConnectionLost));
}

#[test]
fn only_syncs_prove_and_numbers_begin_anew_behind_the_last() {
    let (mut state, mut xid) = (state(), 0);
    for beat in 1..=4 {
        let sent = at(beat * 300);
        state.enlist(vec![Item::beat()], sent);
        assert!(state.is_beating);
        send(&mut state, &delete(), sent);
        assert!(answer(&mut state, xid + 1, 0, &[], beat * 300));
        assert!(!state.is_beating);
        assert!(answer(&mut state, xid + 2, 0, &[], beat * 300));
        xid += 2;
    }
    assert_eq!(state.proof.since(), at(600));
    state.last_xid = i32::MAX;
    send(&mut state, &delete(), at(1_500));
    assert!(answer(&mut state, 1, 0, &[], 1_500));
    assert_eq!(state.proof.since(), at(600));
}

/// What a multi of one part is answered: that part's kind and error.
fn multi_answer(kind: i32, error: Option<i32>) -> Vec<u8> {
    let mut record = Encoder::default();
    record.int(kind).bool(false).int(error.unwrap_or(0));
    if let Some(error) = error {
        record.int(error);
    }
    record.int(-1).bool(true).int(-1).finish()
}

#[test]
fn what_a_confirmation_is_answered_says_whether_it_was_a_transaction() {
    let (check, refused, expired) = (13, -1, -112);
    for (body, counts) in [
        (multi_answer(check, None), true),
        (multi_answer(refused, Some(-101)), true),
        (multi_answer(refused, Some(-102)), true),
        (multi_answer(refused, Some(expired)), false),
    ] {
        let mut state = state();
        state.proof.taken_up(at(100), at(100));
        state.enlist(vec![Item::confirmation("/".to_owned())], at(110));
        assert!(answer(&mut state, 1, 0, &body, 120));
        assert_eq!(state.proof.since(), at(if counts { 100 } else { 0 }));
    }
}
