//! What a thread asks the register.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::socket;
use crate::history::Event;

/// A thread's connection to what the locks protect.
pub(super) struct Register(BufReader<UnixStream>);

impl Register {
    pub(super) fn connect(dir: &Path, index: u32, pid: u32, thread: u32) -> io::Result<Self> {
        let stream = UnixStream::connect(socket(dir))?;
        writeln!(&stream, "{index} {pid} {thread}")?;
        Ok(Register(BufReader::new(stream)))
    }

    /// Gives the value, unless the token is stale.
    pub(super) fn call(&mut self, request: &str) -> io::Result<Option<u64>> {
        let mut answer = String::new();
        writeln!(self.0.get_ref(), "{request}")?;
        self.0.read_line(&mut answer)?;
        Ok(answer.trim().parse().ok())
    }

    /// Leaves a ticket there, as many times as it may be taken.
    pub(super) fn post(&mut self, passed: &Event) -> io::Result<()> {
        self.call(&format!("post {}", passed.to_json())).map(drop)
    }

    /// Gives a ticket that was left by any process, or by another than this.
    pub(super) fn take(&mut self, whose: &str) -> io::Result<Option<Event>> {
        let mut answer = String::new();
        writeln!(self.0.get_ref(), "take {whose}")?;
        self.0.read_line(&mut answer)?;
        Ok(Event::from_json(answer.trim()))
    }
}
