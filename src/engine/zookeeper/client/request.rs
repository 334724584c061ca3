//! Requests, as they are sent.

use super::jute::Encoder;
use super::ops::{Change, Kind, Op};
use crate::engine::zookeeper::address::Auth;

/// Servers hang up on a longer request: it is their `jute.maxbuffer`, as they come.
pub(super) const LONGEST_REQUEST: usize = 0xf_ffff;

/// The number in front of a login's answer.
pub(super) const AUTH_XID: i32 = -4;

/// Who may do what with the nodes that are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acl {
    /// Whoever reaches the servers.
    World,
    /// Whoever has the login that made them.
    Creator,
}

/// The requests' numbers in ZooKeeper's `ZooDefs.OpCode`.
mod code {
    pub(super) const DELETE: i32 = 2;
    pub(super) const EXISTS: i32 = 3;
    pub(super) const GET_DATA: i32 = 4;
    pub(super) const SET_DATA: i32 = 5;
    pub(super) const SYNC: i32 = 9;
    pub(super) const GET_CHILDREN2: i32 = 12;
    pub(super) const CHECK: i32 = 13;
    pub(super) const MULTI: i32 = 14;
    pub(super) const CREATE2: i32 = 15;
    pub(super) const CREATE_CONTAINER: i32 = 19;
    pub(super) const AUTH: i32 = 100;
    pub(super) const CLOSE_SESSION: i32 = -11;
}

/// What a connection begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    /// The last transaction that was seen: a server that is behind it refuses.
    pub(super) last_zxid: i64,
    /// In milliseconds.
    pub(super) timeout: i32,
    /// 0 asks for a new session.
    pub(super) session: i64,
    pub(super) password: [u8; PASSWORD],
}

/// The length of a session's password.
pub(super) const PASSWORD: usize = 16;

impl Hello {
    /// Asks for a new session.
    pub(super) fn new(timeout: i32) -> Self {
        Hello {
            last_zxid: 0,
            timeout,
            session: 0,
            password: [0; PASSWORD],
        }
    }

    pub(super) fn frame(&self) -> Vec<u8> {
        let mut record = Encoder::default();
        record.int(0).long(self.last_zxid).int(self.timeout);
        record.long(self.session).buffer(&self.password);
        // Not a server that has lost its leader and serves what it has.
        framed(record.bool(false))
    }
}

/// Logs a connection in.
pub(super) fn login(auth: &Auth) -> Vec<u8> {
    let mut record = Encoder::default();
    record.int(AUTH_XID).int(code::AUTH).int(0);
    record.text(&auth.scheme);
    framed(record.text(auth.credentials.as_str()))
}

/// Ends a session.
pub(super) fn close(xid: i32) -> Vec<u8> {
    framed(Encoder::default().int(xid).int(code::CLOSE_SESSION))
}

/// What is asked with no number yet: see [`number`].
pub(super) fn frame(op: &Op, acl: Acl) -> Vec<u8> {
    let mut record = Encoder::default();
    record.int(0);
    match op {
        Op::Create { path, data, kind } => {
            record.int(create_code(*kind));
            create(&mut record, path, data, *kind, acl);
        }
        Op::Delete { path, version } => {
            let record = record.int(code::DELETE);
            record.text(path).int(expected(*version));
        }
        Op::Exists { path, watch } => {
            let record = record.int(code::EXISTS);
            record.text(path).bool(watch.is_some());
        }
        Op::Get { path, watch } => {
            let record = record.int(code::GET_DATA);
            record.text(path).bool(watch.is_some());
        }
        Op::Set {
            path,
            data,
            version,
        } => {
            let record = record.int(code::SET_DATA);
            record.text(path).buffer(data).int(expected(*version));
        }
        Op::Children { path, watch } => {
            let record = record.int(code::GET_CHILDREN2);
            record.text(path).bool(watch.is_some());
        }
        Op::Sync { path } => {
            record.int(code::SYNC).text(path);
        }
        Op::Multi(changes) => {
            record.int(code::MULTI);
            changes.iter().for_each(|one| change(&mut record, one, acl));
            record.int(-1).bool(true).int(-1);
        }
    }
    framed(&mut record)
}

/// Numbers a frame that [`frame`] has made.
pub(super) fn number(frame: &mut [u8], xid: i32) {
    if let Some(field) = frame.get_mut(4..8) {
        field.copy_from_slice(&xid.to_be_bytes());
    }
}

fn change(record: &mut Encoder, change: &Change, acl: Acl) {
    let code = match change {
        Change::Create { kind, .. } => create_code(*kind),
        Change::Delete { .. } => code::DELETE,
        Change::Set { .. } => code::SET_DATA,
        Change::Check { .. } => code::CHECK,
    };
    record.int(code).bool(false).int(-1);
    match change {
        Change::Create { path, data, kind } => create(record, path, data, *kind, acl),
        Change::Delete { path, version } | Change::Check { path, version } => {
            record.text(path).int(expected(*version));
        }
        Change::Set {
            path,
            data,
            version,
        } => {
            record.text(path).buffer(data).int(expected(*version));
        }
    }
}

fn create_code(kind: Kind) -> i32 {
    match kind {
        Kind::Container => code::CREATE_CONTAINER,
        Kind::Persistent | Kind::Ephemeral | Kind::EphemeralSequential => code::CREATE2,
    }
}

fn create(record: &mut Encoder, path: &str, data: &[u8], kind: Kind, acl: Acl) {
    const ALL_RIGHTS: i32 = 31;
    let (scheme, id) = match acl {
        Acl::World => ("world", "anyone"),
        Acl::Creator => ("auth", ""),
    };
    record.text(path).buffer(data);
    record.length(1).int(ALL_RIGHTS).text(scheme).text(id);
    record.int(match kind {
        Kind::Persistent => 0,
        Kind::Ephemeral => 1,
        Kind::EphemeralSequential => 3,
        Kind::Container => 4,
    });
}

fn expected(version: Option<i32>) -> i32 {
    version.unwrap_or(-1)
}

fn framed(record: &mut Encoder) -> Vec<u8> {
    let record = record.finish();
    Encoder::default().buffer(&record).finish()
}

#[cfg(test)]
mod tests {
    use super::super::jute::Decoder;
    use super::*;

    #[test]
    fn frame_is_numbered_later() {
        let op = Op::Sync {
            path: "/a".to_owned(),
        };
        let mut bytes = frame(&op, Acl::World);
        number(&mut bytes, 7);
        let expected = [0, 0, 0, 14, 0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 2, b'/', b'a'];
        assert_eq!(bytes, expected);
    }

    #[test]
    fn nodes_belong_to_the_login_that_makes_them() {
        let op = Op::Create {
            path: "/a".to_owned(),
            data: b"x".to_vec(),
            kind: Kind::EphemeralSequential,
        };
        for (acl, scheme, id) in [(Acl::World, "world", "anyone"), (Acl::Creator, "auth", "")] {
            let bytes = frame(&op, acl);
            let mut record = Decoder::new(&bytes[4..]);
            assert_eq!((record.int(), record.int()), (Ok(0), Ok(15)));
            assert_eq!(record.text().as_deref(), Ok("/a"));
            assert_eq!(record.buffer(), Ok(&b"x"[..]));
            assert_eq!((record.int(), record.int()), (Ok(1), Ok(31)));
            assert_eq!(record.text().as_deref(), Ok(scheme));
            assert_eq!(record.text().as_deref(), Ok(id));
            assert_eq!(record.int(), Ok(3));
            assert!(record.is_empty());
        }
    }

    #[test]
    fn parts_of_a_multi_have_headers_and_an_end() {
        let check = Change::Check {
            path: "/a".to_owned(),
            version: None,
        };
        let bytes = frame(&Op::Multi(vec![check]), Acl::World);
        let mut record = Decoder::new(&bytes[8..]);
        assert_eq!(record.int(), Ok(14));
        let header = |record: &mut Decoder<'_>| (record.int(), record.bool(), record.int());
        assert_eq!(header(&mut record), (Ok(13), Ok(false), Ok(-1)));
        assert_eq!(record.text().as_deref(), Ok("/a"));
        assert_eq!(record.int(), Ok(-1));
        assert_eq!(header(&mut record), (Ok(-1), Ok(true), Ok(-1)));
        assert!(record.is_empty());
    }
}
