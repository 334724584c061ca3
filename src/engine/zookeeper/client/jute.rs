//! Jute, the encoding of what ZooKeeper's clients and servers say: big-endian numbers, and lengths in front of texts,
//! buffers and lists; and the frames in which they come: a length and as many bytes.
//!
//! What is read is believed only as far as there are bytes for it.

use std::fmt;
use std::io::{self, Error, ErrorKind};

/// Bytes that are no record of the expected type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it doesn't answer like a ZooKeeper server: {}", self.0)
    }
}

impl std::error::Error for Malformed {}

/// Writes a record.
#[derive(Debug, Default)]
pub(super) struct Encoder(Vec<u8>);

impl Encoder {
    pub(super) fn bool(&mut self, value: bool) -> &mut Self {
        self.0.push(value.into());
        self
    }

    pub(super) fn int(&mut self, value: i32) -> &mut Self {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub(super) fn long(&mut self, value: i64) -> &mut Self {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub(super) fn buffer(&mut self, bytes: &[u8]) -> &mut Self {
        self.length(bytes.len());
        self.0.extend_from_slice(bytes);
        self
    }

    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.buffer(text.as_bytes())
    }

    /// The length of a buffer or a list. A record that is too long for it is never sent: see `wire`.
    pub(super) fn length(&mut self, length: usize) -> &mut Self {
        self.int(length.try_into().unwrap_or(i32::MAX))
    }

    pub(super) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}

/// Reads a record.
#[derive(Clone, Debug)]
pub(super) struct Decoder<'a>(&'a [u8]);

type Read<T> = Result<T, Malformed>;

impl<'a> Decoder<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Decoder(bytes)
    }

    pub(super) fn bool(&mut self) -> Read<bool> {
        let [byte] = self.array()?;
        Ok(byte != 0)
    }

    pub(super) fn int(&mut self) -> Read<i32> {
        self.array().map(i32::from_be_bytes)
    }

    pub(super) fn long(&mut self) -> Read<i64> {
        self.array().map(i64::from_be_bytes)
    }

    /// A buffer that is absent is empty.
    pub(super) fn buffer(&mut self) -> Read<&'a [u8]> {
        let length = self.length()?;
        let (buffer, rest) = self.0.split_at_checked(length).ok_or(CUT)?;
        self.0 = rest;
        Ok(buffer)
    }

    pub(super) fn text(&mut self) -> Read<String> {
        let text = std::str::from_utf8(self.buffer()?);
        Ok(text
            .map_err(|_| Malformed("a text isn't UTF-8"))?
            .to_owned())
    }

    pub(super) fn texts(&mut self) -> Read<Vec<String>> {
        let length = self.length()?;
        // Each has a length of its own: a list that there are no bytes for ends the loop, and takes no memory before.
        (0..length).map(|_| self.text()).collect()
    }

    fn length(&mut self) -> Read<usize> {
        match self.int()? {
            -1 => Ok(0),
            length => usize::try_from(length).map_err(|_| Malformed("a length is negative")),
        }
    }

    fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk().ok_or(CUT)?;
        self.0 = rest;
        Ok(*array)
    }
}

const CUT: Malformed = Malformed("a record is cut off");

/// A longer frame isn't believed. An answer is as long as what was asked for: a list of 100,000 nodes has some 8 MB.
const LONGEST: usize = 32 * 1024 * 1024;

/// With what a server with TLS answers plain text: no frame is as long.
const TLS_ALERT: [u8; 2] = [0x15, 0x03];

/// How much is asked for at once.
const CHUNK: usize = 16 * 1024;

/// What was read, and isn't a whole frame yet.
#[derive(Debug, Default)]
pub(super) struct Frames {
    read: Vec<u8>,
    /// What of it has been given out already.
    used: usize,
}

impl Frames {
    /// The next frame. Without a whole one it reads, as long as the source waits; when that times out there is none
    /// yet, and what came of it stays.
    pub(super) fn next(&mut self, source: &mut impl io::Read) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(frame) = self.take()? {
                return Ok(Some(frame));
            }
            match self.read_more(source) {
                Ok(0) => return Err(hung_up(self.read.is_empty())),
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::TimedOut => return Ok(None),
                Err(e) => return Err(e),
            }
        }
    }

    /// The next of the frames that have been read.
    pub(super) fn take(&mut self) -> io::Result<Option<Vec<u8>>> {
        let unused = self.read.get(self.used..).unwrap_or_default();
        let Some((length, rest)) = unused.split_first_chunk() else {
            return Ok(None);
        };
        if length[..2] == TLS_ALERT {
            let text = "the port requires TLS: use zks://";
            return Err(Error::new(ErrorKind::InvalidData, text));
        }
        let length = usize::try_from(i32::from_be_bytes(*length)).ok();
        let Some(length) = length.filter(|length| *length <= LONGEST) else {
            let text =
                "it doesn't answer like a ZooKeeper server: the length of a frame is invalid";
            return Err(Error::new(ErrorKind::InvalidData, text));
        };
        let Some(frame) = rest.get(..length) else {
            return Ok(None);
        };
        let frame = frame.to_vec();
        self.used += 4 + length;
        if self.used == self.read.len() {
            self.read.clear();
            self.used = 0;
        }
        Ok(Some(frame))
    }

    fn read_more(&mut self, source: &mut impl io::Read) -> io::Result<usize> {
        self.read.drain(..self.used);
        self.used = 0;
        let before = self.read.len();
        self.read.resize(before + CHUNK, 0);
        let read = source.read(&mut self.read[before..]);
        self.read
            .truncate(before + read.as_ref().map_or(0, |read| *read));
        read
    }
}

fn hung_up(between_frames: bool) -> Error {
    let text = if between_frames {
        "the server closed the connection: it may have no leader now, or this port may require TLS (zks://)"
    } else {
        "the server closed the connection in the middle of an answer"
    };
    Error::new(ErrorKind::UnexpectedEof, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::{Random, for_any};
    use std::collections::VecDeque;

    #[test]
    fn absent_buffers_are_empty_and_other_negative_lengths_are_refused() {
        let bytes = |length: i32| length.to_be_bytes();
        assert_eq!(Decoder::new(&bytes(-1)).buffer(), Ok(&[][..]));
        assert_eq!(Decoder::new(&bytes(-1)).texts(), Ok(vec![]));
        for length in [-2, i32::MIN] {
            assert!(Decoder::new(&bytes(length)).buffer().is_err());
            assert!(Decoder::new(&bytes(length)).texts().is_err());
        }
    }

    #[test]
    fn lengths_without_bytes_take_no_memory() {
        let bytes = i32::MAX.to_be_bytes();
        assert!(Decoder::new(&bytes[..3]).int().is_err());
        assert!(Decoder::new(&[0; 7]).long().is_err());
        assert!(Decoder::new(&bytes).buffer().is_err());
        assert!(Decoder::new(&bytes).texts().is_err());
    }

    /// Gives its pieces one after the other. An empty piece is a timeout, and behind the last is the end.
    struct Pieces(VecDeque<Vec<u8>>);

    impl io::Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.pop_front() {
                None => Ok(0),
                Some(piece) if piece.is_empty() => Err(ErrorKind::TimedOut.into()),
                Some(piece) => {
                    buffer[..piece.len()].copy_from_slice(&piece);
                    Ok(piece.len())
                }
            }
        }
    }

    fn pieces(random: &mut Random, mut bytes: &[u8]) -> Pieces {
        let mut pieces = VecDeque::new();
        while !bytes.is_empty() {
            let (piece, rest) = bytes.split_at(random.usize(0..=bytes.len().min(9)));
            pieces.push_back(piece.to_vec());
            bytes = rest;
        }
        Pieces(pieces)
    }

    fn framed(frames: &[Vec<u8>]) -> Vec<u8> {
        let length = |frame: &Vec<u8>| u32::try_from(frame.len()).unwrap().to_be_bytes();
        let framed = frames
            .iter()
            .flat_map(|frame| [&length(frame), &frame[..]].concat());
        framed.collect()
    }

    #[test]
    fn frames_come_whole_however_they_are_cut() {
        for_any(|random| {
            let sent = random.list(1..=5, |random| random.list(0..=20, |random| random.u8(..)));
            let bytes = framed(&sent);
            let whole = random.usize(..=bytes.len());
            let mut source = pieces(random, &bytes[..whole]);
            let (mut frames, mut received) = (Frames::default(), Vec::new());
            let end = loop {
                match frames.next(&mut source) {
                    Ok(frame) => received.extend(frame),
                    Err(e) => break e,
                }
            };
            assert_eq!(end.kind(), ErrorKind::UnexpectedEof);
            assert!(sent.starts_with(&received));
            assert_eq!(received == sent, whole == bytes.len());
        });
    }

    #[test]
    fn length_that_can_not_be_right_is_not_believed() {
        for start in [*b"HTTP/1.1", [0xff; 8], [0x10; 8]] {
            let mut source = Pieces([start.to_vec()].into());
            let error = Frames::default().next(&mut source).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidData);
        }
    }
}
