//! Where requests and replies end in a stream.

use super::resp;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// What isn't that, such as TLS, makes one request or reply a chunk.
    #[default]
    Redis,
    /// As etcd's gateway speaks it. An answer that never ends, such as that to a watch, is never counted.
    Http,
    /// ZooKeeper's. Its events aren't replies.
    ZooKeeper,
    /// One request or reply a chunk, whatever it is.
    Raw,
}

#[derive(Debug)]
pub(super) struct Frame {
    protocol: Protocol,
    pub(super) bytes: Vec<u8>,
    /// Where it ends in the chunk that completed it.
    pub(super) end: usize,
}

impl Frame {
    /// Returns whether `word` occurs in it, in any case.
    pub(super) fn contains(&self, word: &[u8]) -> bool {
        self.bytes
            .windows(word.len())
            .any(|window| window.eq_ignore_ascii_case(word))
    }

    pub(super) fn is_push(&self) -> bool {
        match self.protocol {
            Protocol::Redis => self.bytes.starts_with(b">"),
            // Events have the number -1.
            Protocol::ZooKeeper => self.bytes[4..].starts_with(&[0xff; 4]),
            Protocol::Http | Protocol::Raw => false,
        }
    }
}

#[derive(Debug)]
pub(super) struct Frames {
    protocol: Protocol,
    partial: Vec<u8>,
}

impl Frames {
    pub(super) fn of(protocol: Protocol) -> Self {
        let partial = Vec::new();
        Self { protocol, partial }
    }

    pub(super) fn push(&mut self, chunk: &[u8]) -> Vec<Frame> {
        let protocol = self.protocol;
        let before = self.partial.len();
        self.partial.extend_from_slice(chunk);
        let mut frames = Vec::new();
        let mut start = 0;
        while let Some(len) = self.frame_len(start) {
            let bytes = self.partial[start..start + len].to_vec();
            start += len;
            // Beyond `before`: otherwise an earlier chunk would have completed it.
            let end = start - before;
            frames.push(Frame {
                protocol,
                bytes,
                end,
            });
        }
        self.partial.drain(..start);
        frames
    }

    /// Returns the length of the frame that begins there, or `None` if it isn't there as a whole.
    fn frame_len(&self, start: usize) -> Option<usize> {
        let bytes = &self.partial[start..];
        match self.protocol {
            Protocol::Redis => resp::frame_len(bytes),
            Protocol::Http => message_len(bytes),
            Protocol::ZooKeeper => packet_len(bytes),
            Protocol::Raw => (!bytes.is_empty()).then_some(bytes.len()),
        }
    }
}

fn message_len(bytes: &[u8]) -> Option<usize> {
    let body = position(bytes, b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..body]).to_ascii_lowercase();
    let field = |name: &str| {
        let line = head.lines().find(|line| line.starts_with(name))?;
        Some(line[name.len()..].trim().to_owned())
    };
    if field("transfer-encoding:").is_some_and(|coding| coding == "chunked") {
        return chunks_end(bytes, body);
    }
    let len: usize = field("content-length:").map_or(Some(0), |len| len.parse().ok())?;
    (bytes.len() >= body + len).then_some(body + len)
}

/// Returns where chunks end that begin at `at`: behind one without bytes, the lines of a trailer, and an empty line.
fn chunks_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    let line = |at: usize| position(bytes.get(at..)?, b"\r\n");
    loop {
        let end = at + line(at)?;
        let len = str::from_utf8(&bytes[at..end]).ok()?;
        let len = usize::from_str_radix(len, 16).ok()?;
        at = end + 2;
        if len == 0 {
            break;
        }
        at += len + 2;
    }
    loop {
        let len = line(at)?;
        at += len + 2;
        if len == 0 {
            return Some(at);
        }
    }
}

fn packet_len(bytes: &[u8]) -> Option<usize> {
    let len = u32::from_be_bytes(*bytes.first_chunk()?) as usize;
    // An event can be told from a reply only if it has a number.
    (len >= 4 && bytes.len() - 4 >= len).then_some(4 + len)
}

fn position(bytes: &[u8], word: &[u8]) -> Option<usize> {
    bytes.windows(word.len()).position(|window| window == word)
}
