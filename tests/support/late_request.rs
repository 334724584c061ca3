//! Requests that come to their server after the calls that sent them have ended.

use std::thread;
use std::time::{Duration, Instant};

use super::proxy::Proxy;

/// How late a request may come: what follows on its connection waits for it longer.
const LATE: Duration = Duration::from_millis(200);

/// In so long what was sent is carried out.
const SOON: Duration = Duration::from_millis(50);

/// If the machine stood still each time, it's of no use.
const ROUNDS: usize = 20;

impl Proxy {
    /// Has the next request that contains `matching` come after its call has ended, but not too late. `call` makes one
    /// that ends meanwhile, about something else in each round, and returns when it was to end. Returns the round that
    /// counts.
    #[track_caller]
    pub fn pass_late(&self, matching: &str, mut call: impl FnMut(usize) -> Instant) -> usize {
        let in_time = (0..ROUNDS).find(|round| {
            self.hold_next_request(matching);
            let ended = call(*round);
            // What the call sent at its end is on its way by then.
            thread::sleep(SOON);
            self.pass_held();
            ended.elapsed() < LATE
        });
        thread::sleep(SOON);
        in_time.expect("the machine is too slow")
    }

    /// Makes a call in a thread, and ends it when its request is held back. Returns what it gave, and when it was
    /// ended.
    #[track_caller]
    pub fn end_held<T: Send>(
        &self,
        call: impl FnOnce() -> T + Send,
        end: impl FnOnce(),
    ) -> (T, Instant) {
        thread::scope(|scope| {
            let caller = scope.spawn(call);
            self.await_held();
            let ended = Instant::now();
            end();
            (caller.join().expect("no panic"), ended)
        })
    }
}
