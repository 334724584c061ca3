//! Replies as they come off a connection: whole values, and never more than fits into a bound.
//!
//! The redis crate's parser takes whatever a peer sends. A peer that isn't what it claims to be may send without end,
//! and four of its bytes may become a value of fifty. So replies are read here, in the second version of the protocol:
//! a server speaks the third only when it is asked to.

use std::io::{ErrorKind, Read};

use ::redis::Value;

use super::failure::Failure;
use crate::base::error::{Error, Result as Outcome};

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
        reason: format!("it has {length} bytes, and Redis is given {most} MiB at most"),
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
                    let cause = format!("its answer is longer than {most} MiB");
                    return Err(Failure::Other(cause.into()));
                }
                Err(Stop::Strange) if self.buffer[self.start..self.end].starts_with(TLS_ALERT) => {
                    let cause = "it answers in TLS: use rediss://";
                    return Err(Failure::Other(cause.into()));
                }
                Err(Stop::Strange) => {
                    let cause = "what answers there is no Redis server: check host and port";
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
mod tests {
    use super::*;
    use crate::base::random::{Random, for_any};
    use std::collections::VecDeque;
    use std::io;

    /// Gives its chunks one by one, then times out, or gives the last one for ever.
    struct Chunks {
        chunks: VecDeque<Vec<u8>>,
        endless: bool,
        given: usize,
    }

    impl Read for Chunks {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Some(mut chunk) = self.chunks.pop_front() else {
                return Err(io::ErrorKind::TimedOut.into());
            };
            let rest = chunk.split_off(chunk.len().min(buffer.len()));
            buffer[..chunk.len()].copy_from_slice(&chunk);
            self.given += chunk.len();
            if !rest.is_empty() {
                self.chunks.push_front(rest);
            } else if self.endless && self.chunks.is_empty() {
                self.chunks.push_back(chunk.clone());
            }
            Ok(chunk.len())
        }
    }

    fn chunks(bytes: &[u8], length: usize) -> Chunks {
        Chunks {
            chunks: bytes.chunks(length).map(<[u8]>::to_vec).collect(),
            endless: false,
            given: 0,
        }
    }

    fn any_line(random: &mut Random) -> String {
        random.text_without(|any| "\r\n".contains(any), 0..=20)
    }

    fn any_string(random: &mut Random) -> Vec<u8> {
        let mut bytes = random.list(0..=19, |random| random.u8(..));
        let more = random.usize(..9_000);
        bytes.resize(bytes.len() + more, b'\n');
        let head = format!("${}\r\n", bytes.len()).into_bytes();
        [head, bytes, b"\r\n".to_vec()].concat()
    }

    fn any_array(random: &mut Random, depth: u32) -> Vec<u8> {
        let values = random.list(0..=5, |random| any_value(random, depth - 1));
        let head = format!("*{}\r\n", values.len()).into_bytes();
        [head, values.concat()].concat()
    }

    /// A value, of which arrays are nested no deeper.
    fn any_value(random: &mut Random, depth: u32) -> Vec<u8> {
        match random.u32(..if depth > 0 { 8 } else { 6 }) {
            0 => format!(":{}\r\n", random.i64(..)).into(),
            1 => format!("+{}\r\n", any_line(random)).into(),
            2 => format!("-{}\r\n", random.text_of("ABXYZ", 1..=10)).into(),
            3 => format!("-ERR {}\r\n", any_line(random)).into(),
            4 => random.one_of(&["$-1\r\n", "*-1\r\n"]).into(),
            5 => any_string(random),
            _ => any_array(random, depth),
        }
    }

    #[test]
    fn replies_are_what_the_crate_reads() {
        for_any(|random| {
            let replies = random.list(1..=3, |random| any_value(random, 4));
            let length = random.usize(1..10_000);
            let mut stream = chunks(&replies.concat(), length);
            let mut read = Replies::new();
            for reply in &replies {
                let value = read.next(&mut stream).expect("it is whole");
                assert_eq!(value, ::redis::parse_redis_value(reply).expect("it is one"));
            }
            assert!(matches!(read.next(&mut stream), Err(Failure::TimedOut(_))));
        });
    }

    #[test]
    fn nothing_makes_it_panic() {
        for_any(|random| {
            let (bytes, kind) = (
                random.list(0..=100, |random| random.u8(..)),
                random.text_of("-+:$*", 1..=1),
            );
            let text = random.text_of("-0123456789\r\n$:*", 0..=30);
            for bytes in [bytes, format!("{kind}{text}\r\n").into_bytes()] {
                let _ = Replies::new().next(&mut chunks(&bytes, 7));
            }
        });
    }

    #[test]
    fn reply_is_read_on_after_a_timeout() {
        let mut read = Replies::new();
        let first = read.next(&mut chunks(b"*2\r\n:1\r\n$3\r\na", 100));
        assert!(matches!(first, Err(Failure::TimedOut(_))));
        let value = read.next(&mut chunks(b"bc\r\n", 100)).expect("it is whole");
        let expected = [Value::Int(1), Value::BulkString(b"abc".to_vec())];
        assert_eq!(value, Value::Array(expected.into()));
    }

    #[test]
    fn endless_replies_take_bounded_memory() {
        for (start, then) in [
            ("+", "x"),
            ("-ERR ", "x"),
            ("$100000000000\r\n", "x"),
            ("$1000000000000000000000\r\n", "x"),
            ("*1000000000\r\n", ":1\r\n"),
            ("", "*1\r\n"),
            ("*1000\r\n", "*1000\r\n"),
        ] {
            let mut stream = Chunks {
                chunks: [(start.to_owned() + then).into(), then.repeat(10_000).into()].into(),
                endless: true,
                given: 0,
            };
            let mut read = Replies::new();
            let failure = read.next(&mut stream).expect_err("it has no end");
            assert!(matches!(failure, Failure::Other(_)), "{start:?}");
            assert!(stream.given < 3 * LONGEST_LINE, "{start:?}");
            assert!(read.buffer.capacity() < 4 * LONGEST_LINE, "{start:?}");
        }
    }

    #[test]
    fn memory_of_a_long_value_is_given_back() {
        const LONG: usize = 8 << 20;
        let mut reply = format!(":1\r\n${LONG}\r\n").into_bytes();
        reply.resize(reply.len() + LONG, b'x');
        reply.extend_from_slice(b"\r\n");
        let (mut read, mut stream) = (Replies::new(), chunks(&reply, 1 << 20));
        read.next(&mut stream).expect("a number");
        match read.next(&mut stream) {
            Ok(Value::BulkString(bytes)) => assert_eq!(bytes.len(), LONG),
            other => panic!("{other:?}"),
        }
        assert_eq!(read.buffer.len(), USUAL);
    }

    #[test]
    fn what_could_not_be_read_again_is_not_stored() {
        let value = vec![0; LARGEST_VALUE + 1];
        check_length("a", Some(&value[1..])).expect("it can be read");
        check_length("a", None).expect("there is none");
        let error = check_length("a", Some(&value)).expect_err("it is too long");
        assert!(error.to_string().contains("128 MiB"), "{error}");
    }

    #[test]
    fn value_is_refused_by_its_length_as_soon_as_that_is_there() {
        for (length, fits) in [(LARGEST_VALUE, true), (LARGEST_VALUE + 1, false)] {
            let start = format!("*2\r\n:1\r\n${length}\r\nabc");
            let reply = Replies::new().next(&mut chunks(start.as_bytes(), 100));
            let waits = matches!(reply, Err(Failure::TimedOut(_)));
            assert_eq!(waits, fits, "{reply:?}");
        }
    }
}
