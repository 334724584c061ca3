//! HTTP/1.1 without I/O: what a request looks like, and what the bytes of an answer mean, however they are cut.
//!
//! It uses nothing of this crate. What always holds here: what a peer sends has a bound.

use httparse::{EMPTY_HEADER, Header, Response, Status};

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
    /// So many bytes.
    Length(u64),
    /// All that comes.
    UntilClosed,
    ChunkSize,
    /// So many bytes of a chunk.
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
        Ok(Status::Partial) => Err("the head of its answer has no end".into()),
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
                Body::Length(length.map_err(|_| "the length of its answer is no number")?)
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

    /// Appends what `input` has of it, and says how many bytes of the input it has used. It leaves what isn't of it, and what it
    /// needs more for.
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
mod tests {
    use super::*;
    use crate::base::random::{Random, for_any};

    const CHUNKED: &str =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\ntransfer-encoding: Chunked\r\n\r\n";

    fn head(text: &str) -> Head {
        let (head, length) = head_in(text.as_bytes()).unwrap().unwrap();
        assert_eq!(length, text.len());
        head
    }

    #[test]
    fn head_has_an_end() {
        for cut in 0..CHUNKED.len() {
            assert!(
                head_in(&CHUNKED.as_bytes()[..cut]).unwrap().is_none(),
                "{cut}"
            );
        }
        let with_body = format!("{CHUNKED}2\r\n{{}}");
        assert_eq!(
            head_in(with_body.as_bytes()).unwrap().unwrap().1,
            CHUNKED.len()
        );
        let endless = format!("HTTP/1.1 200 OK\r\nA: {}", "b".repeat(LONGEST_HEAD));
        assert!(head_in(endless.as_bytes()).is_err());
    }

    #[test]
    fn body_ends_as_the_head_says() {
        assert!(matches!(head(CHUNKED).body, Body::ChunkSize));
        let sized = head("HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\n\r\n");
        assert!(matches!(
            (sized.status, sized.body),
            (404, Body::Length(10))
        ));
        assert!(sized.stays_open);
        let closing = head("HTTP/1.0 400 Bad Request\r\n\r\n");
        assert!(matches!(
            (closing.stays_open, closing.body),
            (false, Body::UntilClosed)
        ));
        let empty = head("HTTP/1.1 204 No Content\r\nConnection: Keep-Alive, Close\r\n\r\n");
        assert!(matches!(
            (empty.stays_open, empty.body),
            (false, Body::Length(0))
        ));
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for text in [
            "-ERR unknown command\r\n",
            "\x15\x03\x01",
            "HTTP/2 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        ] {
            assert!(head_in(text.as_bytes()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn any_head_is_understood_or_refused() {
        for_any(|random| {
            let bytes = random.list(0..=200, |random| random.one_of(CHUNKED.as_bytes()));
            let _ = head_in(&bytes);
        });
    }

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
                let (output, left, is_over) = taken(Body::ChunkSize, &encoded, &[cut]).unwrap();
                assert!(output == bytes && is_over && left == encoded[length..]);
            }
            let every: Vec<_> = (0..encoded.len()).collect();
            let (output, left, _) = taken(Body::ChunkSize, &encoded, &every).unwrap();
            assert!(output == bytes && left == encoded[length..]);
            let (_, _, is_over) = taken(Body::ChunkSize, &encoded[..length - 1], &[]).unwrap();
            assert!(!is_over);
        });
    }

    #[test]
    fn length_ends_a_body() {
        for cut in 0..=7 {
            let (output, left, is_over) = taken(Body::Length(5), b"12345HT", &[cut]).unwrap();
            assert_eq!(
                (&*output, &*left, is_over),
                (&b"12345"[..], &b"HT"[..], true)
            );
        }
        assert!(!taken(Body::Length(5), b"1234", &[]).unwrap().2);
        assert!(Body::Length(0).is_over());
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
            assert!(taken(Body::ChunkSize, bytes, &[]).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn any_body_is_taken_or_refused() {
        for_any(|random| {
            let bytes = random.list(0..=100, |random| random.one_of(b"01af\r\n; x"));
            let _ = taken(Body::ChunkSize, &bytes, &[]);
        });
    }

    #[test]
    fn request_is_as_long_as_it_says() {
        let bytes = request("/v3/x", "[::1]:1", &[("A", "b")], "{é}".as_bytes());
        let expected =
            "POST /v3/x HTTP/1.1\r\nHost: [::1]:1\r\nA: b\r\nContent-Length: 4\r\n\r\n{é}";
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }
}
