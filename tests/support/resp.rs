//! Where requests and replies end in a stream of Redis's protocol.

/// A whole request or reply.
#[derive(Debug)]
pub(super) struct Frame {
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

    /// Returns whether the server sent it unasked.
    pub(super) fn is_push(&self) -> bool {
        self.bytes.starts_with(b">")
    }

    /// Whether it is what somebody has published, in either version of the protocol.
    pub(super) fn is_message(&self) -> bool {
        self.bytes[1..].starts_with(b"3\r\n$7\r\nmessage\r\n")
    }
}

/// Splits a stream into frames, chunk by chunk. What isn't RESP, such as TLS, makes one frame a chunk.
#[derive(Debug, Default)]
pub(super) struct Frames {
    partial: Vec<u8>,
    raw: bool,
}

impl Frames {
    /// Makes one frame of each chunk, whatever it is.
    pub(super) fn raw(raw: bool) -> Self {
        let partial = Vec::new();
        Self { partial, raw }
    }

    /// Returns the frames that `chunk` completes.
    pub(super) fn push(&mut self, chunk: &[u8]) -> Vec<Frame> {
        if self.raw {
            let (bytes, end) = (chunk.to_vec(), chunk.len());
            return vec![Frame { bytes, end }];
        }
        let before = self.partial.len();
        self.partial.extend_from_slice(chunk);
        let mut frames = Vec::new();
        let mut start = 0;
        while let Some(len) = frame_len(&self.partial[start..]) {
            let bytes = self.partial[start..start + len].to_vec();
            start += len;
            // Beyond `before`: otherwise an earlier chunk would have completed it.
            let end = start - before;
            frames.push(Frame { bytes, end });
        }
        self.partial.drain(..start);
        frames
    }
}

/// Returns the length of the first frame, or `None` if it isn't there as a whole.
fn frame_len(bytes: &[u8]) -> Option<usize> {
    let kind = *bytes.first()?;
    if !b"+-:_#,($=!*~>%|".contains(&kind) {
        return Some(bytes.len());
    }
    let head = bytes.windows(2).position(|window| window == b"\r\n")?;
    let body = head + 2;
    let number = || str::from_utf8(&bytes[1..head]).ok()?.parse::<usize>().ok();
    match kind {
        // A null has the length -1, and no body.
        b'$' | b'=' | b'!' => match number() {
            Some(len) => (bytes.len() >= body + len + 2).then_some(body + len + 2),
            None => Some(body),
        },
        b'*' | b'~' | b'>' => items_end(bytes, body, number().unwrap_or(0)),
        b'%' => items_end(bytes, body, number().unwrap_or(0) * 2),
        // An attribute belongs to the value after it.
        b'|' => items_end(bytes, body, number().unwrap_or(0) * 2 + 1),
        _ => Some(body),
    }
}

fn items_end(bytes: &[u8], start: usize, count: usize) -> Option<usize> {
    (0..count).try_fold(start, |at, _| Some(at + frame_len(&bytes[at..])?))
}
