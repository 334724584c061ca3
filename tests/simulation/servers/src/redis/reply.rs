//! What a server answers, and what it is sent: the second version of Redis's protocol.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::Write as _;
use std::sync::Arc;

use super::numbers::strict;

/// Words of a command, the first of which is its name.
pub(super) type Words = Vec<Vec<u8>>;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reply {
    Int(i64),
    Text(Vec<u8>),
    /// No text.
    Nil,
    Status(&'static str),
    Error(Cow<'static, str>),
    List(Vec<Reply>),
    /// Several answers to one command, or none.
    Several(Vec<Reply>),
    /// As it is sent: one that is made once, and given often.
    Made(Arc<[u8]>),
}

pub(super) const OK: Reply = Reply::Status("OK");

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

    /// Below 1e17, and with few digits behind the point: then Redis writes it so, too.
    pub(super) fn double(number: f64) -> Self {
        Reply::text(number.to_string())
    }

    pub(super) fn texts<T: Into<Vec<u8>>>(texts: impl IntoIterator<Item = T>) -> Self {
        Reply::List(texts.into_iter().map(Reply::text).collect())
    }

    /// As it is sent.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        bytes
    }

    pub(super) fn made(&self) -> Self {
        Reply::Made(self.bytes().into())
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        let mut line = |mark: char, text: &dyn Display| {
            write!(bytes, "{mark}{text}\r\n").expect("a vector takes all");
        };
        match self {
            Reply::Int(number) => line(':', number),
            Reply::Text(text) => {
                line('$', &text.len());
                bytes.extend_from_slice(text);
                bytes.extend_from_slice(b"\r\n");
            }
            Reply::Nil => line('$', &"-1"),
            Reply::Status(text) => line('+', text),
            Reply::Error(text) => line('-', &text.replace(['\r', '\n'], " ")),
            Reply::List(parts) => {
                line('*', &parts.len());
                parts.iter().for_each(|part| part.write(bytes));
            }
            Reply::Several(parts) => parts.iter().for_each(|part| part.write(bytes)),
            Reply::Made(made) => bytes.extend_from_slice(made),
        }
    }
}

/// The first command of what has come on a connection, and how long it is. `None`: there isn't all of it.
///
/// # Errors
///
/// If it isn't one.
pub(super) fn first(input: &[u8]) -> Result<Option<(Words, usize)>, ()> {
    let mut unread = input;
    let Some(count) = number(&mut unread, b'*')? else {
        return Ok(None);
    };
    let mut words = Vec::new();
    for _ in 0..count {
        let Some(length) = number(&mut unread, b'$')? else {
            return Ok(None);
        };
        let Some((word, rest)) = unread.split_at_checked(length + 2) else {
            return Ok(None);
        };
        words.push(word[..length].to_vec());
        unread = rest;
    }
    match words.is_empty() {
        true => Err(()),
        false => Ok(Some((words, input.len() - unread.len()))),
    }
}

/// The number in a line that begins with that mark, if the line's end is there.
fn number(unread: &mut &[u8], mark: u8) -> Result<Option<usize>, ()> {
    const MOST: usize = 512 << 20;
    let Some(end) = unread.iter().position(|byte| *byte == b'\n') else {
        return Ok(None);
    };
    let line = unread[..end].strip_suffix(b"\r").unwrap_or(&unread[..end]);
    *unread = &unread[end + 1..];
    let digits = line.strip_prefix(&[mark]);
    let number = digits
        .and_then(strict)
        .and_then(|number| number.try_into().ok());
    let number = number.filter(|number| *number <= MOST);
    number.map(Some).ok_or(())
}
