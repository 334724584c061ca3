//! A connection to one host, which speaks HTTP/1.1.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

use serde_json::Value;

use super::failure::{Effect, Failed, Failure};
use super::http::{self, Body, Head, head_in};
use super::proof::Seen;
use crate::base::clock::Deadline;
use crate::engine::net::stream::Stream;

/// A connection to one host. After a failure that isn't the host's answer it must be closed.
pub(super) struct Connection {
    stream: Stream,
    /// What requests name the host by.
    host: Arc<str>,
    /// What was received, and not understood yet.
    input: Vec<u8>,
    /// Whether the last answer was read to its end, and others may follow.
    is_in_step: bool,
    /// Whether anything has come.
    has_answered: bool,
    /// What the last linearizable answer of its host said.
    seen: Option<Seen>,
}

/// The body of an answer, as it comes.
#[derive(Debug)]
pub(super) struct Incoming {
    body: Body,
    stays_open: bool,
}

/// What a host says of itself. It is asked also whether there is a leader.
pub(super) const STATUS: &str = "/v3/maintenance/status";

const LONGEST_ANSWER: usize = 16 << 20;

impl Connection {
    /// By what its host is known to have said before, if anything.
    pub(super) fn new(stream: Stream, host: Arc<str>, seen: Option<Seen>) -> Self {
        Connection {
            stream,
            host,
            input: Vec::new(),
            is_in_step: true,
            has_answered: false,
            seen,
        }
    }

    /// Whether there is nothing to read: between questions that would be its end.
    pub(super) fn is_quiet(&self) -> bool {
        self.stream.is_quiet()
    }

    /// Whether it may be used again.
    pub(super) fn is_in_step(&self) -> bool {
        self.is_in_step
    }

    pub(super) fn seen(&self) -> Option<Seen> {
        self.seen
    }

    pub(super) fn see(&mut self, seen: Seen) {
        self.seen = Some(seen);
    }

    /// Asks, with the token of a login, and reads by `deadline` that there will be an answer.
    pub(super) fn begin(
        &mut self,
        (path, body): (&str, &[u8]),
        token: Option<&str>,
        deadline: &Deadline,
    ) -> Result<Incoming, Failed> {
        self.wait_until(deadline);
        if deadline.is_over() {
            let cause = io::Error::new(ErrorKind::TimedOut, "no time was left to ask it");
            return Err(Effect::Undone.by(cause.into()));
        }
        self.is_in_step = false;
        let bytes = self.packed(path, body, token);
        let sent = self.stream.write_all(&bytes);
        sent.and_then(|()| self.stream.flush())
            .map_err(|e| self.unclear(e))?;
        let Head {
            status,
            body,
            stays_open,
        } = self.head()?;
        let incoming = Incoming { body, stays_open };
        if status == 200 {
            return Ok(incoming);
        }
        Err(Failed::answered(status, &self.rest(incoming)?))
    }

    /// The rest of an answer, by the same deadline.
    pub(super) fn value(&mut self, incoming: Incoming) -> Result<Value, Failed> {
        let answer = self.rest(incoming)?;
        serde_json::from_slice(&answer).map_err(|_| Failed::surprised())
    }

    fn rest(&mut self, mut incoming: Incoming) -> Result<Vec<u8>, Failed> {
        let mut answer = Vec::new();
        while !incoming.body.is_over() {
            self.receive(&mut incoming, &mut answer)?;
        }
        self.is_in_step = incoming.stays_open && self.input.is_empty();
        Ok(answer)
    }

    fn packed(&self, path: &str, body: &[u8], token: Option<&str>) -> Vec<u8> {
        let mut headers = vec![("Content-Type", "application/json")];
        if path != STATUS {
            // A host without a leader refuses it, where it would wait for one otherwise.
            headers.push(("Grpc-Metadata-Hasleader", "true"));
        }
        headers.extend(token.map(|token| ("Authorization", token)));
        http::request(path, &self.host, &headers, body)
    }

    fn head(&mut self) -> Result<Head, Failed> {
        loop {
            if let Some((head, length)) = head_in(&self.input).map_err(strange)? {
                self.input.drain(..length);
                // A proxy may say first that it works on it.
                if matches!(head.status, 100..=199) {
                    continue;
                }
                return Ok(head);
            }
            if !self.read()? {
                return Err(self.unclear(ErrorKind::UnexpectedEof.into()));
            }
        }
    }

    /// Blocks until there is more of an answer, by the deadline that was set last, and appends it to `output`. Nothing comes
    /// behind its end.
    pub(super) fn receive(
        &mut self,
        incoming: &mut Incoming,
        output: &mut Vec<u8>,
    ) -> Result<(), Failed> {
        let before = output.len();
        while !incoming.body.is_over() && output.len() == before {
            let used = incoming.body.take(&self.input, output).map_err(strange)?;
            self.input.drain(..used);
            if output.len() > LONGEST_ANSWER {
                return Err(strange("its answer is longer than 16 MiB".into()));
            }
            if !incoming.body.is_over() && output.len() == before && !self.read()? {
                if incoming.body != Body::UntilClosed {
                    return Err(self.unclear(ErrorKind::UnexpectedEof.into()));
                }
                incoming.body = Body::Length(0);
            }
        }
        Ok(())
    }

    /// What follows is waited for until then.
    pub(super) fn wait_until(&mut self, deadline: &Deadline) {
        self.stream.socket_mut().set_deadline(deadline);
    }

    /// Whether anything came before the end of the connection.
    fn read(&mut self) -> Result<bool, Failed> {
        let mut buffer = [0; 8 << 10];
        let read = self.stream.read(&mut buffer).map_err(|e| self.unclear(e))?;
        self.has_answered |= read > 0;
        self.input.extend_from_slice(&buffer[..read]);
        Ok(read > 0)
    }

    /// A server that expects TLS hangs up on plain text.
    fn unclear(&self, error: io::Error) -> Failed {
        let mut text = match error.kind() {
            ErrorKind::UnexpectedEof => "it has closed the connection without an answer".to_owned(),
            ErrorKind::ConnectionReset => error.to_string(),
            _ => return Effect::Unclear.by(error.into()),
        };
        if !self.has_answered && !self.stream.is_encrypted() {
            text += ": if the port has TLS, use etcds://";
        }
        Effect::Unclear.by(io::Error::new(error.kind(), text).into())
    }

    /// Closes it, and what was sent last isn't delivered any more, as far as that can be helped: the server would carry out a
    /// late request after the one that follows on another connection.
    pub(super) fn give_up(self) {
        self.stream.socket().forget_unsent();
    }
}

fn strange(cause: String) -> Failed {
    Effect::Unclear.by(Failure::Other(cause.into()))
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}
