//! What is sent, and what is answered in a form that can be compared.

use std::fmt::Write as _;

/// A record on its way.
#[derive(Clone, Debug, Default)]
pub struct Record(pub Vec<u8>);

impl Record {
    pub fn int(mut self, number: i32) -> Self {
        self.0.extend(number.to_be_bytes());
        self
    }

    pub fn long(mut self, number: i64) -> Self {
        self.0.extend(number.to_be_bytes());
        self
    }

    pub fn flag(mut self, set: bool) -> Self {
        self.0.push(set.into());
        self
    }

    pub fn buffer(self, bytes: Option<&[u8]>) -> Self {
        let Some(bytes) = bytes else {
            return self.int(-1);
        };
        self.int(i32::try_from(bytes.len()).expect("short"))
            .raw(bytes)
    }

    pub fn text(self, text: &str) -> Self {
        self.buffer(Some(text.as_bytes()))
    }

    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    pub fn frame(self) -> Vec<u8> {
        Record::default().buffer(Some(&self.0)).0
    }
}

/// Asks for a session, or for a session to go on.
pub fn handshake(seen: i64, timeout: i32, session: i64, password: &[u8]) -> Vec<u8> {
    let record = Record::default().int(0).long(seen).int(timeout);
    record
        .long(session)
        .buffer(Some(password))
        .flag(false)
        .frame()
}

/// What a handshake was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    pub timeout: i32,
    pub session: i64,
    pub password: Vec<u8>,
}

impl Welcome {
    pub fn of(frame: &[u8]) -> Self {
        let mut record = Reader {
            rest: frame,
            with_zxids: true,
            sessions: &[],
        };
        assert_eq!(record.int(), 0, "the version");
        let welcome = Welcome {
            timeout: record.int(),
            session: record.long(),
            password: record.buffer().expect("a password").to_vec(),
        };
        assert_eq!(record.rest, [0], "it doesn't only read");
        welcome
    }
}

struct Reader<'a> {
    rest: &'a [u8],
    with_zxids: bool,
    sessions: &'a [i64],
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    fn int(&mut self) -> i32 {
        i32::from_be_bytes(self.take(4).try_into().expect("four"))
    }

    fn long(&mut self) -> i64 {
        i64::from_be_bytes(self.take(8).try_into().expect("eight"))
    }

    /// 0, if that isn't to be compared.
    fn zxid(&mut self) -> i64 {
        let zxid = self.long();
        if self.with_zxids { zxid } else { 0 }
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

    /// Without times. A session is told by its place.
    fn stat(&mut self) -> String {
        let (czxid, mzxid) = (self.zxid(), self.zxid());
        let _times = (self.long(), self.long());
        let (version, cversion, aversion) = (self.int(), self.int(), self.int());
        let owner = self.long();
        let owner = match self.sessions.iter().position(|session| *session == owner) {
            Some(place) => format!("session {place}"),
            None => owner.to_string(),
        };
        let (length, children, pzxid) = (self.int(), self.int(), self.zxid());
        format!(
            "[{czxid} {mzxid} v{version} c{cversion} a{aversion} {owner}, {length} bytes, {children} children, {pzxid}]"
        )
    }
}

/// An answer to a request of that kind, or an event.
pub fn shown(
    frame: &[u8],
    with_zxids: bool,
    kind: impl Fn(i32) -> i32,
    sessions: &[i64],
) -> String {
    let mut record = Reader {
        rest: frame,
        with_zxids,
        sessions,
    };
    let (xid, zxid, error) = (record.int(), record.zxid(), record.int());
    let mut text = format!("{xid} at {zxid}: {error}");
    if xid == -1 {
        let _ = write!(
            text,
            ", event {} {} {}",
            record.int(),
            record.int(),
            record.text()
        );
    } else if !record.rest.is_empty() {
        body(&mut text, &mut record, kind(xid));
    }
    assert!(record.rest.is_empty(), "{text}, and {:?}", record.rest);
    text
}

fn body(text: &mut String, record: &mut Reader<'_>, kind: i32) {
    let (has_path, has_stat) = match kind {
        14 => return multi(text, record),
        1 | 9 => (true, false),
        15 | 19 => (true, true),
        4 => {
            let _ = write!(text, " {:?}", record.buffer());
            (false, true)
        }
        8 | 12 => {
            let mut children: Vec<_> = (0..record.int()).map(|_| record.text()).collect();
            children.sort();
            let _ = write!(text, " {children:?}");
            (false, kind == 12)
        }
        3 | 5 => (false, true),
        _ => return,
    };
    if has_path {
        let _ = write!(text, " {}", record.text());
    }
    if has_stat {
        let _ = write!(text, " {}", record.stat());
    }
}

fn multi(text: &mut String, record: &mut Reader<'_>) {
    loop {
        let kind = record.int();
        let is_end = record.take(1) != [0];
        let _ = write!(text, "; {kind} {is_end} {}", record.int());
        match kind {
            -1 if is_end => return,
            -1 => _ = write!(text, " {}", record.int()),
            _ => body(text, record, kind),
        }
    }
}
