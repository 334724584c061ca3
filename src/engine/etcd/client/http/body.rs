//! The body of an answer, taken out of its frame as it comes.

use httparse::Status;

/// What is left of a body.
#[derive(Debug)]
pub(in super::super) enum Body {
    /// So many bytes.
    Length(u64),
    Chunks(Chunks),
    /// All that comes.
    UntilClosed,
}

/// What comes next in a body that is sent in chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Chunks {
    Size,
    /// So many bytes of a chunk.
    Bytes(u64),
    /// The line's end behind a chunk.
    End,
    /// A line behind the last chunk, an empty one being the end.
    Trailer,
    Over,
}

const TOO_LONG: &str = "a line between the chunks of its answer has no end";
const LONGEST_LINE: usize = 8 << 10;

impl Body {
    pub(in super::super) fn of_length(length: u64) -> Self {
        Body::Length(length)
    }

    pub(super) fn in_chunks() -> Self {
        Body::Chunks(Chunks::Size)
    }

    pub(super) fn until_closed() -> Self {
        Body::UntilClosed
    }

    /// Whether all of it was taken.
    pub(in super::super) fn is_over(&self) -> bool {
        matches!(self, Body::Length(0) | Body::Chunks(Chunks::Over))
    }

    /// Whether its end is that of the connection.
    pub(in super::super) fn ends_when_closed(&self) -> bool {
        matches!(self, Body::UntilClosed)
    }

    /// Appends what `input` has of it, and says how many bytes of the input it has used. It leaves what isn't of it, and what it
    /// needs more for.
    pub(in super::super) fn take(
        &mut self,
        input: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<usize, String> {
        match self {
            Body::UntilClosed => {
                output.extend_from_slice(input);
                Ok(input.len())
            }
            Body::Length(left) => Ok(copy(input, left, output)),
            Body::Chunks(chunks) => {
                let mut used = 0;
                while let Some(more) = chunks.step(&input[used..], output)? {
                    used += more;
                }
                Ok(used)
            }
        }
    }
}

impl Chunks {
    /// Takes one thing, and says how long it was; `None` when there isn't all of it, or when it is over.
    fn step(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<Option<usize>, String> {
        let (next, used) = match *self {
            Chunks::Over => return Ok(None),
            Chunks::Size => match httparse::parse_chunk_size(input) {
                Ok(Status::Complete((used, 0))) => (Chunks::Trailer, used),
                Ok(Status::Complete((used, size))) => (Chunks::Bytes(size), used),
                Ok(Status::Partial) if input.len() < LONGEST_LINE => return Ok(None),
                Ok(Status::Partial) => return Err(TOO_LONG.into()),
                Err(_) => return Err("a chunk of its answer has no size".into()),
            },
            Chunks::Bytes(_) if input.is_empty() => return Ok(None),
            Chunks::Bytes(mut left) => {
                let used = copy(input, &mut left, output);
                let is_whole = left == 0;
                (
                    if is_whole {
                        Chunks::End
                    } else {
                        Chunks::Bytes(left)
                    },
                    used,
                )
            }
            Chunks::End => match input {
                [b'\r', b'\n', ..] => (Chunks::Size, 2),
                [] | [b'\r'] => return Ok(None),
                _ => return Err("a chunk of its answer is longer than its size".into()),
            },
            Chunks::Trailer => match line(input)? {
                Some(0) => (Chunks::Over, 2),
                Some(length) => (Chunks::Trailer, length + 2),
                None => return Ok(None),
            },
        };
        *self = next;
        Ok(Some(used))
    }
}

/// Copies up to `left` bytes, and says how many.
fn copy(input: &[u8], left: &mut u64, output: &mut Vec<u8>) -> usize {
    let most = usize::try_from(*left).unwrap_or(usize::MAX);
    let taken = &input[..input.len().min(most)];
    output.extend_from_slice(taken);
    *left -= taken.len() as u64;
    taken.len()
}

/// The length of the line that `input` begins with, without its end.
fn line(input: &[u8]) -> Result<Option<usize>, String> {
    let found = input.windows(2).position(|two| two == b"\r\n");
    if found.unwrap_or(input.len()) > LONGEST_LINE {
        return Err(TOO_LONG.into());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::{Random, for_any};

    /// Feeds the bytes in pieces that end at `cuts`, and gives the body and what was left behind it.
    fn taken(
        mut body: Body,
        bytes: &[u8],
        cuts: &[usize],
    ) -> Result<(Vec<u8>, Vec<u8>, bool), String> {
        let (mut input, mut output, mut from) = (Vec::new(), Vec::new(), 0);
        for cut in cuts.iter().copied().chain([bytes.len()]) {
            input.extend_from_slice(&bytes[from..cut]);
            from = cut;
            let used = body.take(&input, &mut output)?;
            input.drain(..used);
        }
        Ok((output, input, body.is_over()))
    }

    fn chunked(random: &mut Random, bytes: &[u8]) -> Vec<u8> {
        let (mut encoded, mut rest) = (Vec::new(), bytes);
        while !rest.is_empty() {
            let (chunk, behind) = rest.split_at(random.usize(1..=rest.len()));
            let extension = if random.bool() { ";a=b" } else { "" };
            encoded.extend(format!("{:x}{extension}\r\n", chunk.len()).bytes());
            encoded.extend_from_slice(chunk);
            encoded.extend_from_slice(b"\r\n");
            rest = behind;
        }
        let trailer = if random.bool() {
            "Grpc-Trailer-X: y\r\n"
        } else {
            ""
        };
        encoded.extend(format!("0\r\n{trailer}\r\n").bytes());
        encoded
    }

    #[test]
    fn chunks_cut_at_any_byte_are_put_together() {
        for_any(|random| {
            let bytes = random.list(0..=60, |random| random.u8(..));
            let mut encoded = chunked(random, &bytes);
            let length = encoded.len();
            encoded.extend_from_slice(b"HTTP/1.1");
            for cut in 0..=encoded.len() {
                let (output, left, is_over) = taken(Body::in_chunks(), &encoded, &[cut]).unwrap();
                assert!(output == bytes && is_over && left == encoded[length..]);
            }
            let every: Vec<_> = (0..encoded.len()).collect();
            let (output, left, _) = taken(Body::in_chunks(), &encoded, &every).unwrap();
            assert!(output == bytes && left == encoded[length..]);
            let (_, _, is_over) = taken(Body::in_chunks(), &encoded[..length - 1], &[]).unwrap();
            assert!(!is_over);
        });
    }

    #[test]
    fn length_ends_a_body() {
        for cut in 0..=7 {
            let (output, left, is_over) = taken(Body::of_length(5), b"12345HT", &[cut]).unwrap();
            assert_eq!(
                (&*output, &*left, is_over),
                (&b"12345"[..], &b"HT"[..], true)
            );
        }
        assert!(!taken(Body::of_length(5), b"1234", &[]).unwrap().2);
        assert!(Body::of_length(0).is_over());
    }

    #[test]
    fn frames_that_are_wrong_are_refused() {
        let endless = [b"0\r\n".to_vec(), vec![b'a'; LONGEST_LINE + 2]].concat();
        for bytes in [
            &b"x\r\n"[..],
            b"-1\r\n",
            b"1\r\nab\r\n",
            b"1\r\na\n",
            b"fffffffffffffffffffff\r\n",
            &endless,
        ] {
            assert!(taken(Body::in_chunks(), bytes, &[]).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn any_bytes_are_taken_or_refused() {
        for_any(|random| {
            let bytes = random.list(0..=100, |random| random.one_of(b"01af\r\n; x"));
            let _ = taken(Body::in_chunks(), &bytes, &[]);
        });
    }
}
