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

/// Whether it is listened to for so long, counted from before or from now.
fn is_for(heard: &Heard, before: Instant, time: Duration) -> bool {
    let until = heard.until.instant();
    until.is_some_and(|until| (before + time..=Instant::now() + time).contains(&until))
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
