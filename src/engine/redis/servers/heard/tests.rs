use super::super::view::Range;
use super::*;
use crate::engine::net::address::HostPort;
use crate::engine::redis::server_of;
use std::time::Instant;

fn at(port: u16) -> HostPort {
    let host = "a".to_owned();
    HostPort { host, port }
}

fn server() -> Arc<Server> {
    server_of("redis+cluster://a:1")
}

/// Of a node that has all slots at that port.
fn view(epoch: u64, is_up: bool, port: u16) -> View {
    let all = Range {
        first: 0,
        last: 16_383,
        master: at(port),
        epoch,
        replicas: Vec::new(),
    };
    View {
        is_up,
        ranges: vec![all],
        ..View::default()
    }
}

fn heard_with(patience: Patience, asked: usize, views: &[(u64, bool, u16)]) -> Heard {
    let deadline = Deadline::after(Duration::from_secs(60));
    let (mut heard, server) = (Heard::nothing(asked, patience, deadline), server());
    for (epoch, is_up, port) in views {
        heard.add(&server, Ok(view(*epoch, *is_up, *port)));
    }
    heard
}

fn heard(asked: usize, views: &[(u64, bool, u16)]) -> Heard {
    heard_with(Patience::WITH_NODES, asked, views)
}

/// Whether it is listened to for so long, counted from before or from now.
fn is_for(heard: &Heard, before: Instant, time: Duration) -> bool {
    let until = heard.until.instant();
    until.is_some_and(|until| (before + time..=Instant::now() + time).contains(&until))
}

#[test]
fn answers_that_have_come_are_heard_by_a_listener_that_was_kept_from_it() {
    let (answered, received) = channel::bounded(3);
    for epoch in [5, 5, 6] {
        let said = (server(), Ok(view(epoch, true, 1)));
        answered.send(Ok(said)).expect("there is room");
    }
    let answers = Answers {
        received,
        deadline: Deadline::after(Duration::from_secs(60)),
        dropped: Cancel::default(),
    };
    // The first ends its patience at once.
    let mut heard = heard_with(Patience::with_sentinels(Duration::ZERO), 3, &[]);
    while let Some((server, said)) = heard.next(&answers) {
        heard.add(&server, said);
    }
    assert_eq!(heard.views.len(), 3);
}

#[test]
fn majority_to_whom_the_cluster_is_down_is_not_enough() {
    // The old master, which is cut off, and three that wait for the end of the failover.
    let behind = [(6, true, 1), (6, false, 1), (6, false, 1), (6, false, 1)];
    let before = Instant::now();
    let mut heard = heard(6, &behind);
    assert!(is_for(&heard, before, OTHERS));
    heard.add(&server(), Ok(view(7, true, 2)));
    assert!(heard.until.is_over());
    assert_eq!(heard.views.len(), 5);
}

#[test]
fn others_have_more_time_where_only_loners_have_answered() {
    let before = Instant::now();
    let failed = || Err(Failure::Closed("it isn't there".into()).into());
    let mut loner = heard(6, &[(6, false, 1)]);
    (0..2).for_each(|_| loner.add(&server(), failed()));
    assert!(is_for(&loner, before, OTHERS_OF_A_LONER));
    loner.add(&server(), failed());
    assert!(is_for(&loner, before, OTHERS));
    assert!(is_for(&heard(6, &[(7, true, 2)]), before, OTHERS));
    let both = heard(3, &[(7, true, 2), (7, true, 2)]);
    assert!(both.until.is_over());
}

#[test]
fn fewer_sentinels_are_waited_for_longer() {
    let ms = Duration::from_millis;
    let of = |asked, views: &[_], first| heard_with(Patience::with_sentinels(first), asked, views);
    let (before, view) = (Instant::now(), (1, true, 1));
    assert!(is_for(
        &of(3, &[], ms(100)),
        before,
        Duration::from_secs(60)
    ));
    let mut one = of(3, &[view], ms(100));
    assert!(is_for(&one, before, ms(100)));
    // Who says nothing is no part of a majority.
    one.add(&server(), Err(NoView::UnknownName));
    assert!(is_for(&one, before, ms(100)));
    assert!(is_for(&of(3, &[view, view], ms(100)), before, ms(10)));
    assert!(is_for(&of(3, &[view, view], ms(5)), before, ms(5)));
    assert!(of(3, &[view], ms(0)).until.is_over());
}
