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
