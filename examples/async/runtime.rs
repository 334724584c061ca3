//! A guard that is held across an `.await` freezes a runtime, and what `docs/async.md` advises doesn't.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crosslock::{CancelToken, Error, Event, Locker, Observer};
use crosslock_async::with_lock;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

/// Far more than anything here takes, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

const NAME: &str = "account";

/// What happens to the lock, as far as a test waits for it.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Acquired,
    Waiting,
    GaveUp,
}

struct Watch(Sender<Seen>);

impl Observer for Watch {
    fn event(&self, event: &Event<'_>) {
        let seen = match event {
            Event::Acquired { .. } => Seen::Acquired,
            Event::Waiting { .. } => Seen::Waiting,
            Event::GaveUp { .. } => Seen::GaveUp,
            _ => return,
        };
        let _ = self.0.send(seen);
    }
}

/// A runtime with two threads for tasks, and locks in a memory of its own.
struct Program {
    runtime: Option<Runtime>,
    locker: Locker,
    seen: Receiver<Seen>,
}

impl Program {
    fn new(memory: &str) -> Self {
        let (sender, seen) = channel();
        let builder = Locker::builder(memory).observer(Arc::new(Watch(sender)));
        let runtime = Builder::new_multi_thread().worker_threads(2).build();
        Program {
            runtime: Some(runtime.expect("threads")),
            locker: builder.build().expect("a memory"),
            seen,
        }
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it runs until the end")
    }

    #[track_caller]
    fn expect(&self, expected: &[Seen]) {
        for one in expected {
            assert_eq!(self.seen.recv_timeout(PATIENCE).as_ref(), Ok(one));
        }
    }
}

/// A test that fails ends, too: a runtime that is dropped would wait for its threads.
impl Drop for Program {
    fn drop(&mut self) {
        self.locker.close();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[test]
#[expect(
    clippy::await_holding_invalid_type,
    reason = "this is what the page warns of; `clippy.toml` has clippy find it"
)]
fn guard_held_across_an_await_freezes_the_runtime() {
    let program = Program::new("memory:freezes");
    let token = CancelToken::new();
    let locker = program.locker.with_cancel(&token);
    let (answer, database) = oneshot::channel();
    let (done, ended) = channel();

    let (first, first_done) = (locker.clone(), done.clone());
    program.runtime().spawn(async move {
        let guard = first.lock(NAME).expect("nobody else has it");
        database.await.expect("it answers");
        drop(guard);
        first_done.send("first").expect("the test waits");
    });
    program.expect(&[Seen::Acquired]);
    for _ in 0..2 {
        let (locker, done) = (locker.clone(), done.clone());
        program.runtime().spawn(async move {
            let ended = match locker.lock(NAME) {
                Err(Error::Cancelled { .. }) => "cancelled",
                _ => "served",
            };
            done.send(ended).expect("the test waits");
        });
    }
    // Now each of the two workers blocks, and none is left for the one that could release.
    program.expect(&[Seen::Waiting, Seen::Waiting]);
    answer.send(()).expect("the first request waits");
    let frozen = ended.recv_timeout(Duration::from_millis(300));
    assert_eq!(frozen, Err(RecvTimeoutError::Timeout));

    token.cancel();
    let mut ended = [(); 3].map(|()| ended.recv_timeout(PATIENCE).expect("it ends"));
    ended.sort_unstable();
    assert_eq!(ended, ["cancelled", "cancelled", "first"]);
}

#[test]
fn requests_that_lock_on_threads_for_blocking_calls_are_served() {
    let program = Program::new("memory:served");
    let locker = program.locker.clone();
    let (answer, database) = oneshot::channel();
    let (done, ended) = channel();

    let (first, first_done) = (locker.clone(), done.clone());
    program.runtime().spawn(async move {
        let handle = Handle::current();
        let work = move |_: &_| handle.block_on(database).expect("it answers");
        with_lock(&first, NAME, work).await.expect("it is served");
        first_done.send("first").expect("the test waits");
    });
    program.expect(&[Seen::Acquired]);
    for _ in 0..2 {
        let (locker, done) = (locker.clone(), done.clone());
        program.runtime().spawn(async move {
            let served = with_lock(&locker, NAME, |guard| guard.is_held()).await;
            assert!(served.expect("it is served"));
            done.send("other").expect("the test waits");
        });
    }
    program.expect(&[Seen::Waiting, Seen::Waiting]);
    answer.send(()).expect("the first request waits");
    let mut ended = [(); 3].map(|()| ended.recv_timeout(PATIENCE).expect("it ends"));
    ended.sort_unstable();
    assert_eq!(ended, ["first", "other", "other"]);
}

#[test]
fn request_that_is_dropped_waits_no_longer() {
    let program = Program::new("memory:dropped");
    let locker = program.locker.clone();
    let guard = locker.lock(NAME).expect("nobody else has it");
    let waiting = locker.clone();
    let request = program
        .runtime()
        .spawn(async move { with_lock(&waiting, NAME, |_| ()).await });
    program.expect(&[Seen::Acquired, Seen::Waiting]);
    request.abort();
    program.expect(&[Seen::GaveUp]);
    guard.unlock().expect("it is held");
}

#[test]
fn panic_of_the_work_is_that_of_the_request_and_releases() {
    let program = Program::new("memory:panics");
    let locker = program.locker.clone();
    let panics = locker.clone();
    let request = program.runtime().spawn(async move {
        let _ = with_lock(&panics, NAME, |_| panic!("as it is meant to")).await;
    });
    assert!(
        program
            .runtime()
            .block_on(request)
            .expect_err("it panics")
            .is_panic()
    );
    let guard = locker
        .try_lock(NAME)
        .expect("memory answers")
        .expect("it is free");
    assert!(guard.was_abandoned());
}
