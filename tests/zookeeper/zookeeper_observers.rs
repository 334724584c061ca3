//! Observers and loggers that block: the session's thread doesn't wait for them.

use super::*;
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use crosslock::{Event, Observer};
use log::{LevelFilter, Log, Metadata, Record};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Once};
use support::Fault;

/// Blocks when it is called for the first time, until the test has dropped the other end.
struct Blocks {
    was_called: AtomicBool,
    called: Sender<()>,
    goes_on: Receiver<()>,
}

/// The test's end of a [`Blocks`].
struct Blocked {
    called: Receiver<()>,
    _goes_on: Sender<()>,
}

fn blocks() -> (Arc<Blocks>, Blocked) {
    let ((call, called), (go_on, goes_on)) = (unbounded(), bounded(0));
    let blocks = Blocks {
        was_called: AtomicBool::new(false),
        called: call,
        goes_on,
    };
    let blocked = Blocked {
        called,
        _goes_on: go_on,
    };
    (Arc::new(blocks), blocked)
}

impl Blocks {
    fn block(&self) {
        if !self.was_called.swap(true, Relaxed) {
            let _ = self.called.send(());
            let _ = self.goes_on.recv();
        }
    }
}

impl Blocked {
    #[track_caller]
    fn wait(&self) {
        self.called.recv_timeout(PATIENCE).expect("it is called");
    }
}

impl Observer for Blocks {
    fn event(&self, event: &Event<'_>) {
        if matches!(event, Event::Lost { .. }) {
            self.block();
        }
    }
}

#[test]
fn observer_that_blocks_costs_no_other_lock() {
    let server = setup().start();
    let (observer, blocked) = blocks();
    let locker = builder(&server.url()).observer(observer).build();
    let locker = locker.expect("open");
    let guards = ["a", "b"].map(|name| held_in(&locker, name));
    // It goes on before the guards are dropped.
    let observing = blocked;
    let broken = open(&server.url()).break_lock("a").expect("break_lock");
    assert_eq!(broken.len(), 1);
    observing.wait();
    assert_eq!(loss(&guards[0]), LostReason::Broken);
    assert_outlasts_ttl(&guards[1]);
}

/// Blocks on lines about a server that a test has named.
struct BlockingLogger;

static BLOCKING: Mutex<Vec<(SocketAddr, Arc<Blocks>)>> = Mutex::new(Vec::new());

impl Log for BlockingLogger {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let text = record.args().to_string();
        let blocking = BLOCKING.lock().expect("no panic").clone();
        let of_server = |(addr, _): &&(SocketAddr, _)| text.contains(&addr.to_string());
        if let Some((_, blocks)) = blocking.iter().find(of_server) {
            blocks.block();
        }
    }

    fn flush(&self) {}
}

#[test]
fn logger_that_blocks_costs_no_lock() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        log::set_logger(&BlockingLogger).expect("there is no other");
        log::set_max_level(LevelFilter::Debug);
    });
    let server = setup().proxies().start();
    let (blocks, blocked) = blocks();
    let locker = open(&server.url());
    let guard = held(&locker);
    let logging = blocked;
    let named = (server.addr(), blocks);
    BLOCKING.lock().expect("no panic").push(named);
    server.proxy().set(Fault::Refuse);
    logging.wait();
    server.proxy().set(Fault::None);
    assert_outlasts_ttl(&guard);
}
