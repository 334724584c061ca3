//! A session of a test's own: what ZooKeeper's clients say, as far as tests need it.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::wait_until;

pub(super) const PATIENCE: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_secs(10);
/// What a session is closed by.
const CLOSE: i32 = -11;
/// What an operation was answered that found no such node.
pub(super) const NO_NODE: i32 = -101;
/// What ZooKeeper's clients say when the connection was closed before the answer came.
pub(super) const CONNECTION_LOSS: i32 = -4;

/// A session without pings, for a few calls at a time: it ends when it is silent for long.
#[derive(Debug)]
pub struct RawSession {
    stream: TcpStream,
    calls: i32,
}

impl RawSession {
    #[track_caller]
    pub fn open(addr: SocketAddr, timeout: Duration) -> Self {
        let mut session = None;
        // A server closes all connections while it looks for its leader.
        wait_until("the server to take a session", PATIENCE, || {
            session = Self::connect(addr, timeout).ok();
            session.is_some()
        });
        session.expect("it was waited for")
    }

    fn connect(addr: SocketAddr, timeout: Duration) -> io::Result<Self> {
        let mut stream = TcpStream::connect_timeout(&addr, TIMEOUT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let mut hello = Packet::default();
        let (version, seen, id) = (0, 0, 0);
        let timeout = i32::try_from(timeout.as_millis()).expect("not as long");
        hello.int(version).long(seen).int(timeout).long(id);
        hello.bytes(&[0; 16]).flag(false);
        hello.send(&mut stream)?;
        Answer::read(&mut stream)?;
        Ok(Self { stream, calls: 0 })
    }

    /// Makes a node that everyone may read and change: one that stays, or with 1 for `flags` an ephemeral one, with 2
    /// one with a number behind its name, with 3 both, with 4 a container. Returns its path, or the server's error.
    pub fn create(&mut self, path: &str, data: &str, flags: i32) -> Result<String, i32> {
        const ALL: i32 = 31;
        // Otherwise servers make a node that stays.
        let is_container = flags == 4;
        let mut call = self.begin(if is_container { 19 } else { 1 });
        call.text(path).text(data).int(1);
        call.int(ALL).text("world").text("anyone").int(flags);
        self.finish(&call).map(|mut answer| answer.text())
    }

    pub fn delete(&mut self, path: &str) -> Result<(), i32> {
        let mut call = self.begin(2);
        call.text(path).int(-1);
        self.finish(&call).map(drop)
    }

    pub fn get(&mut self, path: &str) -> Result<String, i32> {
        let mut call = self.begin(4);
        call.text(path).flag(false);
        self.finish(&call).map(|mut answer| answer.text())
    }

    pub fn set(&mut self, path: &str, data: &str) -> Result<(), i32> {
        let mut call = self.begin(5);
        call.text(path).text(data).int(-1);
        self.finish(&call).map(drop)
    }

    pub fn children(&mut self, path: &str) -> Result<Vec<String>, i32> {
        let mut call = self.begin(8);
        call.text(path).flag(false);
        let mut answer = self.finish(&call)?;
        Ok((0..answer.int()).map(|_| answer.text()).collect())
    }

    pub fn exists(&mut self, path: &str) -> bool {
        let mut call = self.begin(3);
        call.text(path).flag(false);
        let found = self.finish(&call).map(drop);
        assert!(matches!(found, Ok(()) | Err(NO_NODE)), "{found:?}");
        found.is_ok()
    }

    pub fn close(self) {
        self.try_close().expect("it hasn't ended");
    }

    pub(super) fn try_close(mut self) -> Result<(), i32> {
        let call = self.begin(CLOSE);
        self.finish(&call).map(drop)
    }

    fn begin(&mut self, kind: i32) -> Packet {
        self.calls += 1;
        let mut packet = Packet::default();
        packet.int(self.calls).int(kind);
        packet
    }

    fn finish(&mut self, call: &Packet) -> Result<Answer, i32> {
        let sent = call.send(&mut self.stream);
        let answer = sent.and_then(|()| Answer::read(&mut self.stream));
        let mut answer = answer.map_err(|_| CONNECTION_LOSS)?;
        let (call, _seen, error) = (answer.int(), answer.long(), answer.int());
        assert_eq!(call, self.calls, "answers come in the order of calls");
        if error == 0 { Ok(answer) } else { Err(error) }
    }
}

#[derive(Debug, Default)]
struct Packet(Vec<u8>);

impl Packet {
    fn int(&mut self, number: i32) -> &mut Self {
        self.0.extend(number.to_be_bytes());
        self
    }

    fn long(&mut self, number: i64) -> &mut Self {
        self.0.extend(number.to_be_bytes());
        self
    }

    fn flag(&mut self, set: bool) -> &mut Self {
        self.0.push(set.into());
        self
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.int(i32::try_from(bytes.len()).expect("short"));
        self.0.extend(bytes);
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    fn send(&self, stream: &mut TcpStream) -> io::Result<()> {
        let mut whole = Self::default();
        whole.bytes(&self.0);
        stream.write_all(&whole.0)
    }
}

struct Answer(std::vec::IntoIter<u8>);

impl Answer {
    fn read(stream: &mut TcpStream) -> io::Result<Self> {
        let mut len = [0; 4];
        stream.read_exact(&mut len)?;
        let mut bytes = vec![0; u32::from_be_bytes(len) as usize];
        stream.read_exact(&mut bytes)?;
        Ok(Self(bytes.into_iter()))
    }

    fn int(&mut self) -> i32 {
        i32::from_be_bytes(self.array())
    }

    fn long(&mut self) -> i64 {
        i64::from_be_bytes(self.array())
    }

    fn text(&mut self) -> String {
        // Without data it is -1.
        let len = usize::try_from(self.int()).unwrap_or(0);
        String::from_utf8(self.0.by_ref().take(len).collect()).expect("text")
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.0.next().expect("it isn't shorter"))
    }
}
