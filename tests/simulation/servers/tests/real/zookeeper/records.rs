//! What is sent, and what is answered in a form that can be compared.

use crosslock_servers::zookeeper::jute::{Reader, Writer};
use crosslock_world::service::Connection;

use crate::peers::Peer;

/// A node with those flags, on which everybody has all rights.
pub fn node<'a>(record: &'a mut Writer, path: &str, flags: i32) -> &'a mut Writer {
    record.text(path).text("data").int(1);
    record.int(31).text("world").text("anyone").int(flags)
}

/// What a handshake was answered, and what asks for a session to go on. 0: none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Welcome {
    pub timeout: i32,
    pub session: i64,
    pub password: Vec<u8>,
}

impl Welcome {
    /// Asks for one with that timeout.
    pub fn new(timeout: i32) -> Self {
        Welcome {
            timeout,
            session: 0,
            password: vec![0; 16],
        }
    }

    /// Asks for it, where so much was seen already.
    pub fn asked(&self, seen: i64) -> Vec<u8> {
        let mut record = Writer::default();
        record.int(0).long(seen).int(self.timeout);
        record.long(self.session).buffer(&self.password);
        record.flag(false).frame()
    }

    pub fn of(frame: &[u8]) -> Option<Self> {
        let mut record = Reader(frame);
        let _version = record.int()?;
        Some(Welcome {
            timeout: record.int()?,
            session: record.long()?,
            password: record.buffer()?.to_vec(),
        })
    }
}

/// Without times and numbers of transactions. A session is told by its place.
fn stat(record: &mut Reader<'_>, sessions: &[i64]) -> Option<String> {
    let _ = [
        record.long()?,
        record.long()?,
        record.long()?,
        record.long()?,
    ];
    let versions = [record.int()?, record.int()?, record.int()?];
    let owner = record.long()?;
    let place = sessions.iter().position(|session| *session == owner);
    let owner = place.map_or(owner, |place| 1_000 + place as i64);
    let (length, children, _) = (record.int()?, record.int()?, record.long()?);
    Some(format!(
        " [{versions:?} {owner}, {length} bytes, {children} children]"
    ))
}

/// An answer to a request of that kind, or an event.
pub fn shown(frame: &[u8], kind: impl Fn(i32) -> i32, sessions: &[i64]) -> String {
    let mut record = Reader(frame);
    let text = told(&mut record, kind, sessions).expect("a whole record");
    assert!(record.0.is_empty(), "{text}, and {:?}", record.0);
    text
}

fn told(record: &mut Reader<'_>, kind: impl Fn(i32) -> i32, sessions: &[i64]) -> Option<String> {
    let (xid, _zxid, error) = (record.int()?, record.long()?, record.int()?);
    let told = match xid {
        -1 => {
            let (event, state, path) = (record.int()?, record.int()?, record.text()?);
            format!(", event {event} {state} {path}")
        }
        _ if record.0.is_empty() => String::new(),
        _ => body(record, kind(xid), sessions)?,
    };
    Some(format!("{xid}: {error}{told}"))
}

fn body(record: &mut Reader<'_>, kind: i32, sessions: &[i64]) -> Option<String> {
    let mut text = match kind {
        14 => return multi(record, sessions),
        1 | 9 | 15 | 19 => format!(" {}", record.text()?),
        4 => format!(" {:?}", record.buffer()?),
        12 => {
            let children = (0..record.int()?).map(|_| record.text());
            let mut children: Vec<_> = children.collect::<Option<_>>()?;
            children.sort();
            format!(" {children:?}")
        }
        _ => String::new(),
    };
    if matches!(kind, 3 | 4 | 5 | 12 | 15 | 19) {
        text += &stat(record, sessions)?;
    }
    Some(text)
}

fn multi(record: &mut Reader<'_>, sessions: &[i64]) -> Option<String> {
    let mut text = String::new();
    loop {
        let (kind, is_end) = (record.int()?, record.flag()?);
        text += &format!("; {kind} {is_end} {}", record.int()?);
        text += &match kind {
            -1 if is_end => return Some(text),
            -1 => format!(" {}", record.int()?),
            _ => body(record, kind, sessions)?,
        };
    }
}

/// What came on a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Come {
    pub frames: Vec<Vec<u8>>,
    pub closed: bool,
}

/// How long to read.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// The answer with that number is there.
    Answer(i32),
    /// So many frames are there.
    Frames(usize),
    Closed,
}

impl Until {
    pub fn has_come(self, come: &Come) -> bool {
        let mut frames = come.frames.iter();
        match self {
            Until::Answer(xid) => frames.any(|frame| frame.starts_with(&xid.to_be_bytes())),
            Until::Frames(count) => come.frames.len() >= count,
            Until::Closed => false,
        }
    }
}

pub trait Asked: Peer {
    fn receive(&mut self, from: Connection, until: Until) -> Come {
        let mut all = Come::default();
        for _ in 0..30_000 {
            let (bytes, closed) = self.come(from);
            while let Some((length, rest)) = bytes.split_first_chunk() {
                let length = usize::try_from(u32::from_be_bytes(*length)).expect("it fits");
                let Some(frame) = rest.get(..length) else {
                    break;
                };
                all.frames.push(frame.to_vec());
                bytes.drain(..4 + length);
            }
            all.closed = closed;
            if all.closed || until.has_come(&all) {
                break;
            }
        }
        all
    }
}

impl<P: Peer + ?Sized> Asked for P {}
