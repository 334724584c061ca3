//! Requests that come to their server after the calls that sent them have ended.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::proxy::{Hold, PATIENCE, Proxy};
use super::wait_until;

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
}
