//! Replies as they come off a connection: whole values, and never more than fits into a bound.
//!
//! The redis crate's parser takes whatever a peer sends. A peer that isn't what it claims to be may send without end,
//! and four of its bytes may become a value of fifty. So replies are read here, in the second version of the protocol:
//! a server speaks the third only when it is asked to.

use std::io::{ErrorKind, Read};

use ::redis::Value;

use super::failure::Failure;
use crate::base::{Error, Result as Outcome};

/// The longest value that is stored, or read again.
const LARGEST_VALUE: usize = 128 << 20;

/// The longest reply: a value, and the token that comes with it.
const LONGEST: usize = LARGEST_VALUE + LONGEST_LINE;

/// All lines are short but those of errors, which may repeat the command.
const LONGEST_LINE: usize = 64 << 10;

/// Our scripts answer with few values. The answer to CLUSTER SLOTS has about 20 for each range of slots, of which a
/// cluster has one for each master at least, and thousands after many slots were moved one by one.
const MOST_VALUES: usize = 128 << 10;

const DEEPEST: usize = 8;

/// How the alert begins that some servers with TLS send in answer to plain text.
const TLS_ALERT: &[u8] = b"\x15\x03";

/// The size of a buffer, but while a longer reply is read.
const USUAL: usize = 4 << 10;

/// What was read from a connection and isn't a reply yet.
pub(super) struct Replies {
    buffer: Vec<u8>,
    /// Where it begins and ends in the buffer.
    start: usize,
    end: usize,
}

/// Why bytes are no whole value.
#[derive(Debug, PartialEq)]
enum Stop {
    /// More has to come.
    Part,
    TooLong,
    /// They aren't of this protocol.
    Strange,
}

/// Refuses a value that is too long to be read again.
pub(super) fn check_length(name: &str, value: Option<&[u8]>) -> Outcome<()> {
    let length = value.unwrap_or_default().len();
    if length <= LARGEST_VALUE {
        return Ok(());
    }
    let most = LARGEST_VALUE >> 20;
    Err(Error::InvalidValue {
        name: name.to_owned(),
        reason: format!("it has {length} bytes, and the limit on Redis is {most} MiB"),
    })
}

impl Replies {
    pub(super) fn new() -> Self {
        Replies {
            buffer: vec![0; USUAL],
            start: 0,
            end: 0,
        }
    }

    /// The next value. After an error other than a timeout there is none any more; after a timeout it may be read on.
    pub(super) fn next(&mut self, stream: &mut impl Read) -> Result<Value, Failure> {
        loop {
            let mut unread = Unread::of(&self.buffer[self.start..self.end]);
            match unread.value(0) {
                Ok(value) => {
                    self.start = self.end - unread.bytes.len();
                    self.tidy();
                    return Ok(value);
                }
                Err(Stop::Part) if self.end - self.start < LONGEST => self.read(stream)?,
                Err(Stop::Part | Stop::TooLong) => {
                    let most = LARGEST_VALUE >> 20;
                    let cause = format!("the answer is longer than {most} MiB");
                    return Err(Failure::Other(cause.into()));
                }
                Err(Stop::Strange) if self.buffer[self.start..self.end].starts_with(TLS_ALERT) => {
                    let cause = "the port requires TLS: use rediss://";
                    return Err(Failure::Other(cause.into()));
                }
                Err(Stop::Strange) => {
                    let cause = "it doesn't answer like a Redis server: check host and port";
                    return Err(Failure::Other(cause.into()));
                }
            }
        }
    }

    /// The buffer grows with what has come, and not with the length that is announced.
    fn read(&mut self, stream: &mut impl Read) -> Result<(), Failure> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.end == self.buffer.len() {
            let more = (2 * self.end).min(LONGEST);
            self.buffer.resize(more, 0);
        }
        match stream.read(&mut self.buffer[self.end..]) {
            Ok(0) => Err(Failure::Closed("the server closed the connection".into())),
            Ok(read) => {
                self.end += read;
                Ok(())
            }
            Err(e) if e.kind() == ErrorKind::TimedOut => Err(Failure::TimedOut(e.into())),
            Err(e) => Err(Failure::Closed(e.into())),
        }
    }

    /// Gives the memory of a long reply back: the connection may be idle for long.
    fn tidy(&mut self) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.buffer.len() > LONGEST_LINE {
                self.buffer = vec![0; USUAL];
            }
        }
    }
}

/// The bytes that a value is taken from.
struct Unread<'a> {
    bytes: &'a [u8],
    /// How many values it may still have.
    left: usize,
}

impl<'a> Unread<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        Unread {
            bytes,
            left: MOST_VALUES,
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, Stop> {
        let whole = self.bytes;
        self.left = self.left.checked_sub(1).ok_or(Stop::TooLong)?;
        let kind = *self.take(1)?.first().ok_or(Stop::Part)?;
        if !b"+-:$*".contains(&kind) {
            return Err(Stop::Strange);
        }
        let line = self.line()?;
        match kind {
            b'+' if line == b"OK" => Ok(Value::Okay),
            b'+' => Ok(Value::SimpleString(text(line)?.to_owned())),
            b'-' => error(&whole[..line.len() + 3]),
            b':' => Ok(Value::Int(number(line)?)),
            b'$' => match length(line)? {
                Some(length) => self.bulk(length),
                None => Ok(Value::Nil),
            },
            _ => match length(line)? {
                Some(length) => self.array(length, depth),
                None => Ok(Value::Nil),
            },
        }
    }

    fn line(&mut self) -> Result<&'a [u8], Stop> {
        let near = &self.bytes[..self.bytes.len().min(LONGEST_LINE)];
        match near.windows(2).position(|end| end == b"\r\n") {
            Some(length) => {
                let line = self.take(length)?;
                self.take(2)?;
                Ok(line)
            }
            None if near.len() == LONGEST_LINE => Err(Stop::Strange),
            None => Err(Stop::Part),
        }
    }

    fn bulk(&mut self, length: usize) -> Result<Value, Stop> {
        if length > LARGEST_VALUE {
            return Err(Stop::TooLong);
        }
        let bytes = self.take(length)?;
        match self.take(2)? {
            b"\r\n" => Ok(Value::BulkString(bytes.to_vec())),
            _ => Err(Stop::Strange),
        }
    }

    fn array(&mut self, length: usize, depth: usize) -> Result<Value, Stop> {
        if length > self.left || depth == DEEPEST {
            return Err(Stop::TooLong);
        }
        let values: Result<_, _> = (0..length).map(|_| self.value(depth + 1)).collect();
        values.map(Value::Array)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Stop> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or(Stop::Part)?;
        self.bytes = rest;
        Ok(taken)
    }
}

/// Only the redis crate can make its type of an error. It wants UTF-8, and a server's error may have a key in it.
fn error(line: &[u8]) -> Result<Value, Stop> {
    let line = String::from_utf8_lossy(line);
    ::redis::parse_redis_value(line.as_bytes()).map_err(|_| Stop::Strange)
}

fn text(line: &[u8]) -> Result<&str, Stop> {
    str::from_utf8(line).map_err(|_| Stop::Strange)
}

fn number(line: &[u8]) -> Result<i64, Stop> {
    text(line)?.parse().map_err(|_| Stop::Strange)
}

/// `None`: there is no value.
fn length(line: &[u8]) -> Result<Option<usize>, Stop> {
    match number(line)? {
        -1 => Ok(None),
        length => length.try_into().map(Some).map_err(|_| Stop::Strange),
    }
}

/// A text in an answer.
pub(super) fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => str::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
