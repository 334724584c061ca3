//! Records as ZooKeeper's clients and servers write them.

use std::mem;

/// What is left of a record. `None` of its methods: it ends too early, or isn't one.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    pub fn int(&mut self) -> Option<i32> {
        let bytes = self.take(4)?.try_into().ok()?;
        Some(i32::from_be_bytes(bytes))
    }

    pub fn long(&mut self) -> Option<i64> {
        let bytes = self.take(8)?.try_into().ok()?;
        Some(i64::from_be_bytes(bytes))
    }

    pub fn flag(&mut self) -> Option<bool> {
        Some(self.take(1)? != [0])
    }

    pub fn buffer(&mut self) -> Option<&'a [u8]> {
        let length = self.int()?;
        self.take(usize::try_from(length).ok()?)
    }

    pub fn text(&mut self) -> Option<String> {
        let bytes = self.buffer()?;
        String::from_utf8(bytes.to_vec()).ok()
    }
}

/// A record on its way.
#[derive(Clone, Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    pub fn int(&mut self, number: i32) -> &mut Self {
        self.raw(&number.to_be_bytes())
    }

    pub fn long(&mut self, number: i64) -> &mut Self {
        self.raw(&number.to_be_bytes())
    }

    pub fn flag(&mut self, set: bool) -> &mut Self {
        self.raw(&[set.into()])
    }

    pub fn length(&mut self, length: usize) -> &mut Self {
        self.int(i32::try_from(length).expect("shorter than 2 GB"))
    }

    pub fn buffer(&mut self, bytes: &[u8]) -> &mut Self {
        self.length(bytes.len()).raw(bytes)
    }

    pub fn text(&mut self, text: &str) -> &mut Self {
        self.buffer(text.as_bytes())
    }

    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend(bytes);
        self
    }

    pub fn take(&mut self) -> Vec<u8> {
        mem::take(&mut self.0)
    }

    /// With its length in front, as it is sent.
    pub fn frame(&mut self) -> Vec<u8> {
        let record = self.take();
        Writer::default().buffer(&record).take()
    }
}

/// An answer, or an event, as it is sent.
pub fn answer(xid: i32, zxid: i64, error: i32, body: &[u8]) -> Vec<u8> {
    let mut record = Writer::default();
    record.int(xid).long(zxid).int(error).raw(body).frame()
}

/// Numbers of requests.
pub mod op {
    pub const ERROR: i32 = -1;
    pub const CREATE: i32 = 1;
    pub const DELETE: i32 = 2;
    pub const EXISTS: i32 = 3;
    pub const GET_DATA: i32 = 4;
    pub const SET_DATA: i32 = 5;
    pub const SYNC: i32 = 9;
    pub const PING: i32 = 11;
    pub const GET_CHILDREN2: i32 = 12;
    pub const CHECK: i32 = 13;
    pub const MULTI: i32 = 14;
    pub const CREATE2: i32 = 15;
    pub const CREATE_CONTAINER: i32 = 19;
    pub const CLOSE_SESSION: i32 = -11;
}

/// Numbers of errors.
pub mod error {
    pub const OK: i32 = 0;
    /// Of what stands in a multi behind the change that was refused.
    pub const NOT_TRIED: i32 = -2;
    pub const MARSHALLING: i32 = -5;
    pub const BAD_ARGUMENTS: i32 = -8;
    pub const NO_NODE: i32 = -101;
    pub const BAD_VERSION: i32 = -103;
    pub const NO_CHILDREN_FOR_EPHEMERALS: i32 = -108;
    pub const NODE_EXISTS: i32 = -110;
    pub const NOT_EMPTY: i32 = -111;
    pub const SESSION_EXPIRED: i32 = -112;
    /// Closes the connection instead of being told.
    pub const SESSION_MOVED: i32 = -118;
}
