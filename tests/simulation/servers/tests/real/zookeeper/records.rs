//! What is sent, and what is answered in a form that can be compared.

use std::fmt::Write as _;

use crosslock_world::service::Connection;

use crate::peers::Peer;

/// A record on its way.
#[derive(Clone, Debug, Default)]
pub struct Record(pub Vec<u8>);

impl Record {
    pub fn int(self, number: i32) -> Self {
        self.raw(&number.to_be_bytes())
    }

    pub fn long(self, number: i64) -> Self {
        self.raw(&number.to_be_bytes())
    }

    pub fn flag(self, set: bool) -> Self {
        self.raw(&[set.into()])
    }

    pub fn buffer(self, bytes: &[u8]) -> Self {
        self.int(i32::try_from(bytes.len()).expect("short"))
            .raw(bytes)
    }

    pub fn text(self, text: &str) -> Self {
        self.buffer(text.as_bytes())
    }

    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    pub fn frame(self) -> Vec<u8> {
        Record::default().buffer(&self.0).0
    }

    /// A node with those flags, on which everybody has all rights.
    pub fn node(self, path: &str, flags: i32) -> Self {
        let record = self.text(path).text("data").int(1);
        record.int(31).text("world").text("anyone").int(flags)
    }
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
        let record = Record::default().int(0).long(seen).int(self.timeout);
        let record = record.long(self.session).buffer(&self.password);
        record.flag(false).frame()
    }

    pub fn of(frame: &[u8]) -> Self {
        let mut record = Reader(frame);
        let _version = record.int();
        Welcome {
            timeout: record.int(),
            session: record.long(),
            password: record.buffer().expect("a password").to_vec(),
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }

    fn int(&mut self) -> i32 {
        i32::from_be_bytes(self.take(4).try_into().expect("four"))
    }

    fn long(&mut self) -> i64 {
        i64::from_be_bytes(self.take(8).try_into().expect("eight"))
    }

    fn buffer(&mut self) -> Option<&'a [u8]> {
        match self.int() {
            -1 => None,
            length => Some(self.take(usize::try_from(length).expect("a length"))),
        }
    }

    fn text(&mut self) -> String {
        let bytes = self.buffer().unwrap_or_default();
        String::from_utf8(bytes.to_vec()).expect("a text")
    }

    /// Without times and numbers of transactions. A session is told by its place.
    fn stat(&mut self, sessions: &[i64]) -> String {
        let _ = [self.long(), self.long(), self.long(), self.long()];
        let versions = [self.int(), self.int(), self.int()];
        let owner = self.long();
        let place = sessions.iter().position(|session| *session == owner);
        let owner = place.map_or(owner, |place| 1_000 + place as i64);
        let (length, children, _) = (self.int(), self.int(), self.long());
        format!(" [{versions:?} {owner}, {length} bytes, {children} children]")
    }
}

/// An answer to a request of that kind, or an event.
pub fn shown(frame: &[u8], kind: impl Fn(i32) -> i32, sessions: &[i64]) -> String {
    let mut record = Reader(frame);
    let (xid, _zxid, error) = (record.int(), record.long(), record.int());
    let mut text = format!("{xid}: {error}");
    if xid == -1 {
        let (event, state, path) = (record.int(), record.int(), record.text());
        let _ = write!(text, ", event {event} {state} {path}");
    } else if !record.0.is_empty() {
        body(&mut text, &mut record, kind(xid), sessions);
    }
    assert!(record.0.is_empty(), "{text}, and {:?}", record.0);
    text
}

fn body(text: &mut String, record: &mut Reader<'_>, kind: i32, sessions: &[i64]) {
    match kind {
        14 => return multi(text, record, sessions),
        1 | 9 | 15 | 19 => *text += &format!(" {}", record.text()),
        4 => *text += &format!(" {:?}", record.buffer()),
        12 => {
            let mut children: Vec<_> = (0..record.int()).map(|_| record.text()).collect();
            children.sort();
            *text += &format!(" {children:?}");
        }
        _ => {}
    }
    if matches!(kind, 3 | 4 | 5 | 12 | 15 | 19) {
        *text += &record.stat(sessions);
    }
}

fn multi(text: &mut String, record: &mut Reader<'_>, sessions: &[i64]) {
    loop {
        let (kind, is_end) = (record.int(), record.take(1) != [0]);
        *text += &format!("; {kind} {is_end} {}", record.int());
        match kind {
            -1 if is_end => return,
            -1 => *text += &format!(" {}", record.int()),
            _ => body(text, record, kind, sessions),
        }
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
