//! Requests that come to their server after the calls that sent them have ended.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use super::proxy::{Hold, PATIENCE, Proxy};
use super::wait_until;

/// How late a request may come: what follows on its connection waits for it longer.
const LATE: Duration = Duration::from_millis(200);

/// In so long what was sent is carried out.
const SOON: Duration = Duration::from_millis(50);

/// If the machine stood still each time, it's of no use.
const ROUNDS: usize = 20;

impl Proxy {
    /// Holds back the next request that contains `matching`, in any case, and what comes behind it on its connection:
    /// until [`Proxy::pass_held`], whatever becomes of the client meanwhile. Other connections aren't touched.
    pub fn hold_next_request(&self, matching: &str) {
        let matching = matching.as_bytes().to_vec();
        assert!(!matching.is_empty(), "every request would match");
        self.shared.state().hold = Hold::Next(matching);
    }

    #[track_caller]
    pub fn await_held(&self) {
        let is_held = || matches!(self.shared.state().hold, Hold::Held | Hold::Cut(_));
        wait_until("a request to be held back", PATIENCE, is_held);
    }

    pub fn pass_held(&self) {
        self.shared.state().hold = Hold::Nothing;
        self.shared.changed.notify_all();
    }

    /// Keeps the next request that is such from the server, and closes its connection, until [`Proxy::deliver`].
    pub fn cut_off_next(&self, such: fn(&str) -> bool) {
        self.shared.state().hold = Hold::NextSuch(such);
    }

    /// Has the request that was cut off come to the server after all, and returns how it is answered.
    #[track_caller]
    pub fn deliver(&self) -> String {
        let hold = std::mem::take(&mut self.shared.state().hold);
        let Hold::Cut(request) = hold else {
            panic!("no request was cut off");
        };
        let mut stream = TcpStream::connect(self.shared.upstream()).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.write_all(&request).expect("it reads");
        let mut answer = vec![0; 64 << 10];
        let length = stream.read(&mut answer).expect("it answers");
        String::from_utf8_lossy(&answer[..length]).into_owned()
    }

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
