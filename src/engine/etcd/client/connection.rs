//! A connection to one host, which speaks HTTP/1.1: what a request looks like, and what the bytes of an answer mean,
//! however they are cut.
//!
//! What always holds here: what a peer sends has a bound.

use std::io::{self, ErrorKind, Read, Write};
use std::{fmt, sync::Arc};

use httparse::{EMPTY_HEADER, Header, Response, Status};
use serde_json::Value;

use super::failure::{Effect, Failure, HostFailure};
use super::proof::MemberTerm;
use crate::{base::Deadline, engine::net::stream::Stream};

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
    seen: Option<MemberTerm>,
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
    pub(super) fn new(stream: Stream, host: Arc<str>, seen: Option<MemberTerm>) -> Self {
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

    pub(super) fn seen(&self) -> Option<MemberTerm> {
        self.seen
    }

    pub(super) fn see(&mut self, seen: MemberTerm) {
        self.seen = Some(seen);
    }

    /// Asks, with the token of a login, and reads by `deadline` that there will be an answer.
    pub(super) fn begin(
        &mut self,
        (path, body): (&str, &[u8]),
        token: Option<&str>,
        deadline: &Deadline,
    ) -> Result<Incoming, HostFailure> {
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
        Err(HostFailure::answered(status, &self.rest(incoming)?))
    }

    /// The rest of an answer, by the same deadline.
    pub(super) fn value(&mut self, incoming: Incoming) -> Result<Value, HostFailure> {
        let answer = self.rest(incoming)?;
        serde_json::from_slice(&answer).map_err(|_| HostFailure::surprised())
    }

    fn rest(&mut self, mut incoming: Incoming) -> Result<Vec<u8>, HostFailure> {
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
        request(path, &self.host, &headers, body)
    }

    fn head(&mut self) -> Result<Head, HostFailure> {
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

    /// Blocks until there is more of an answer, by the deadline that was set last, and appends it to `output`.
    /// Nothing comes behind its end.
    pub(super) fn receive(
        &mut self,
        incoming: &mut Incoming,
        output: &mut Vec<u8>,
    ) -> Result<(), HostFailure> {
        let before = output.len();
        while !incoming.body.is_over() && output.len() == before {
            let used = incoming.body.take(&self.input, output).map_err(strange)?;
            self.input.drain(..used);
            if output.len() > LONGEST_ANSWER {
                return Err(strange("the answer is longer than 16 MiB".into()));
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

    /// The same, for news that may take long. After a cancel the connection is of no use.
    pub(super) fn sleep_until(&mut self, deadline: &Deadline) {
        self.stream.socket_mut().sleep_until(deadline);
    }

    /// Whether anything came before the end of the connection.
    fn read(&mut self) -> Result<bool, HostFailure> {
        let mut buffer = [0; 8 << 10];
        let read = self.stream.read(&mut buffer).map_err(|e| self.unclear(e))?;
        self.has_answered |= read > 0;
        self.input.extend_from_slice(&buffer[..read]);
        Ok(read > 0)
    }

    /// A server that expects TLS hangs up on plain text.
    fn unclear(&self, error: io::Error) -> HostFailure {
        let mut text = match error.kind() {
            ErrorKind::UnexpectedEof => "it closed the connection without an answer".to_owned(),
            ErrorKind::ConnectionReset => error.to_string(),
            _ => return Effect::Unclear.by(error.into()),
        };
        if !self.has_answered && !self.stream.is_encrypted() {
            text += ": if the port has TLS, use etcds://";
        }
        Effect::Unclear.by(io::Error::new(error.kind(), text).into())
    }

    /// Closes it, and what was sent last isn't delivered any more, as far as that can be helped: the server would
    /// carry out a late request after the one that follows on another connection.
    pub(super) fn give_up(self) {
        self.stream.socket().forget_unsent();
    }
}

fn strange(cause: String) -> HostFailure {
    Effect::Unclear.by(Failure::Other(cause.into()))
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

/// What an answer says before its body.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) body: Body,
    /// Whether the connection may be used for another request after the body.
    pub(super) stays_open: bool,
}

/// What is left of a body, or what comes next in one that is sent in chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// This many bytes.
    Length(u64),
    /// All that comes.
    UntilClosed,
    ChunkSize,
    /// This many bytes of a chunk.
    Chunk(u64),
    /// The line's end behind a chunk.
    ChunkEnd,
    /// The lines behind the last chunk, an empty one being the end.
    Trailer,
}

const MOST_HEADERS: usize = 64;
const LONGEST_HEAD: usize = 64 << 10;
const LONGEST_LINE: usize = 8 << 10;

/// The whole request, so that it goes out in one write. The values of headers have no line's end.
pub(super) fn request(path: &str, host: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("POST {path} HTTP/1.1\r\nHost: {host}\r\n");
    for (name, value) in headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    head += &format!("Content-Length: {}\r\n\r\n", body.len());
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// The head that `bytes` begin with, and its length; `None` if there isn't all of it.
pub(super) fn head_in(bytes: &[u8]) -> Result<Option<(Head, usize)>, String> {
    let mut headers = [EMPTY_HEADER; MOST_HEADERS];
    let mut response = Response::new(&mut headers);
    match response.parse(bytes) {
        Ok(Status::Complete(length)) => Ok(Some((understood(&response)?, length))),
        Ok(Status::Partial) if bytes.len() < LONGEST_HEAD => Ok(None),
        Ok(Status::Partial) => Err("the head of its answer is incomplete".into()),
        Err(e) => Err(format!("it doesn't speak HTTP/1.1: {e}")),
    }
}

fn understood(response: &Response<'_, '_>) -> Result<Head, String> {
    let status = response.code.unwrap_or_default();
    let is_old = response.version == Some(0);
    let body = if matches!(status, 100..=199 | 204 | 304) {
        Body::Length(0)
    } else if says(response.headers, "Transfer-Encoding", "chunked") {
        Body::ChunkSize
    } else {
        match value(response.headers, "Content-Length") {
            Some(length) => {
                let length = length.parse();
                Body::Length(length.map_err(|_| "the length of its answer isn't a number")?)
            }
            None => Body::UntilClosed,
        }
    };
    Ok(Head {
        status,
        stays_open: !is_old && !says(response.headers, "Connection", "close"),
        body,
    })
}

fn value<'a>(headers: &[Header<'a>], name: &str) -> Option<&'a str> {
    let mut headers = headers.iter();
    let found = headers.find(|header| header.name.eq_ignore_ascii_case(name))?;
    str::from_utf8(found.value).ok().map(str::trim)
}

/// Whether the header, a list, has that word in it.
fn says(headers: &[Header<'_>], name: &str, word: &str) -> bool {
    let words = value(headers, name).unwrap_or_default();
    words
        .split(',')
        .any(|found| found.trim().eq_ignore_ascii_case(word))
}

impl Body {
    /// Whether all of it was taken.
    pub(super) fn is_over(self) -> bool {
        self == Body::Length(0)
    }

    /// Appends what `input` has of it, and says how many bytes of the input it has used. It leaves what isn't of it,
    /// and what it needs more for.
    pub(super) fn take(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<usize, String> {
        let mut used = 0;
        while let Some(more) = self.step(&input[used..], output)? {
            used += more;
        }
        Ok(used)
    }

    /// Takes one thing, and says how long it was; `None` when there isn't all of it, or when it is over.
    fn step(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<Option<usize>, String> {
        if self.is_over() || input.is_empty() {
            return Ok(None);
        }
        let (next, used) = match *self {
            Body::UntilClosed => (Body::UntilClosed, copy(input, u64::MAX, output).0),
            Body::Length(left) => {
                let (used, left) = copy(input, left, output);
                (Body::Length(left), used)
            }
            Body::Chunk(left) => match copy(input, left, output) {
                (used, 0) => (Body::ChunkEnd, used),
                (used, left) => (Body::Chunk(left), used),
            },
            Body::ChunkSize => match httparse::parse_chunk_size(input) {
                Ok(Status::Complete((used, 0))) => (Body::Trailer, used),
                Ok(Status::Complete((used, size))) => (Body::Chunk(size), used),
                Ok(Status::Partial) => return more_for_line(input),
                Err(_) => return Err("a chunk of its answer has no size".into()),
            },
            Body::ChunkEnd => match input {
                [b'\r', b'\n', ..] => (Body::ChunkSize, 2),
                [b'\r'] => return Ok(None),
                _ => return Err("a chunk of its answer is longer than its size".into()),
            },
            Body::Trailer => {
                match httparse::parse_headers(input, &mut [EMPTY_HEADER; MOST_HEADERS]) {
                    Ok(Status::Complete((used, _))) => (Body::Length(0), used),
                    Ok(Status::Partial) => return more_for_line(input),
                    Err(_) => return Err("its answer has no end behind its chunks".into()),
                }
            }
        };
        *self = next;
        Ok(Some(used))
    }
}

/// Copies up to `left` bytes, and says how many, and how many are left.
fn copy(input: &[u8], left: u64, output: &mut Vec<u8>) -> (usize, u64) {
    let most = usize::try_from(left).unwrap_or(usize::MAX);
    let taken = &input[..input.len().min(most)];
    output.extend_from_slice(taken);
    (taken.len(), left - taken.len() as u64)
}

/// There isn't all of what stands between chunks, if it has an end.
fn more_for_line(input: &[u8]) -> Result<Option<usize>, String> {
    if input.len() < LONGEST_LINE {
        return Ok(None);
    }
    Err("a line between the chunks of its answer has no end".into())
}

#[cfg(test)]
mod tests;
