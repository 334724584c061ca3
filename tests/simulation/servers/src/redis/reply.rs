//! What a server answers, and what it is sent: the second version of Redis's protocol.

use std::borrow::Cow;

use super::numbers::{general, strict};

/// Words of a command, the first of which is its name.
pub(super) type Words = Vec<Vec<u8>>;

/// The longest word that a client may send.
const LONGEST: usize = 512 << 20;
const MOST_WORDS: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reply {
    Int(i64),
    Text(Vec<u8>),
    /// No text.
    Nil,
    /// No list.
    NoList,
    Status(Cow<'static, str>),
    Error(Cow<'static, str>),
    List(Vec<Reply>),
    /// Several answers to one command, or none.
    Several(Vec<Reply>),
}

pub(super) const OK: Reply = Reply::Status(Cow::Borrowed("OK"));

/// A command that fails answers with an error, too.
pub(super) type Outcome = Result<Reply, Reply>;

impl Reply {
    pub(super) fn text(text: impl Into<Vec<u8>>) -> Self {
        Reply::Text(text.into())
    }

    pub(super) fn maybe(text: Option<impl Into<Vec<u8>>>) -> Self {
        text.map_or(Reply::Nil, |text| Reply::Text(text.into()))
    }

    pub(super) fn error(text: impl Into<Cow<'static, str>>) -> Self {
        Reply::Error(text.into())
    }

    pub(super) fn count(number: usize) -> Self {
        Reply::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }

    pub(super) fn double(number: f64) -> Self {
        Reply::text(general(number))
    }

    pub(super) fn texts<T: Into<Vec<u8>>>(texts: impl IntoIterator<Item = T>) -> Self {
        Reply::List(texts.into_iter().map(Reply::text).collect())
    }

    pub(super) fn is_error(&self) -> bool {
        matches!(self, Reply::Error(_))
    }

    /// Appends it as it is sent.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        let mut line = |mark: char, text: &str| {
            bytes.extend_from_slice(format!("{mark}{text}\r\n").as_bytes());
        };
        match self {
            Reply::Int(number) => line(':', &number.to_string()),
            Reply::Text(text) => {
                line('$', &text.len().to_string());
                bytes.extend_from_slice(text);
                bytes.extend_from_slice(b"\r\n");
            }
            Reply::Nil => line('$', "-1"),
            Reply::NoList => line('*', "-1"),
            Reply::Status(text) => line('+', &one_line(text)),
            Reply::Error(text) => line('-', &one_line(text)),
            Reply::List(parts) => {
                line('*', &parts.len().to_string());
                parts.iter().for_each(|part| part.write(bytes));
            }
            Reply::Several(parts) => parts.iter().for_each(|part| part.write(bytes)),
        }
    }
}

fn one_line(text: &str) -> Cow<'_, str> {
    if text.contains(['\r', '\n']) {
        return text.replace(['\r', '\n'], " ").into();
    }
    text.into()
}

/// What has come from a client and isn't carried out yet.
#[derive(Debug, Default)]
pub(super) struct Input {
    bytes: Vec<u8>,
    /// Where what is left begins.
    start: usize,
}

impl Input {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole command. An error ends the connection.
    pub(super) fn next(&mut self) -> Result<Option<Words>, &'static str> {
        loop {
            let mut unread = &self.bytes[self.start..];
            let Some(words) = command(&mut unread)? else {
                return Ok(None);
            };
            self.start = self.bytes.len() - unread.len();
            if !words.is_empty() {
                return Ok(Some(words));
            }
        }
    }
}

/// Takes the next command, if all of it is there.
fn command(unread: &mut &[u8]) -> Result<Option<Words>, &'static str> {
    let Some(head) = line(unread) else {
        return Ok(None);
    };
    if head.first() != Some(&b'*') {
        let words = head.split(u8::is_ascii_whitespace);
        let words = words.filter(|word| !word.is_empty());
        return Ok(Some(words.map(<[u8]>::to_vec).collect()));
    }
    let count = strict(&head[1..]).filter(|count| *count <= MOST_WORDS as i64);
    let count = count.ok_or("invalid multibulk length")?;
    let mut words = Vec::new();
    for _ in 0..count {
        let Some(head) = line(unread) else {
            return Ok(None);
        };
        if head.first() != Some(&b'$') {
            return Err("expected '$'");
        }
        let length = strict(&head[1..]).and_then(|length| usize::try_from(length).ok());
        let length = length.filter(|length| *length <= LONGEST);
        let length = length.ok_or("invalid bulk length")?;
        if unread.len() < length + 2 {
            return Ok(None);
        }
        words.push(unread[..length].to_vec());
        *unread = &unread[length + 2..];
    }
    Ok(Some(words))
}

/// Takes a line, if its end is there.
fn line<'a>(unread: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = unread.iter().position(|byte| *byte == b'\n')?;
    let line = &unread[..end];
    *unread = &unread[end + 1..];
    Some(line.strip_suffix(b"\r").unwrap_or(line))
}
