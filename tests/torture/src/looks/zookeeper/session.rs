//! A session without ephemeral nodes, by which a member is asked. It is ended by any error.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// One that hangs doesn't keep the others from being looked at for long.
const TIMEOUT: Duration = Duration::from_secs(1);
/// It needs no pings as long as it is used so often.
const ENDS_AFTER_MS: i32 = 2_000;
const NO_NODE: i32 = -101;

/// A session.
#[derive(Debug)]
pub(super) struct Session {
    stream: TcpStream,
    calls: i32,
}

/// What a node holds.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) data: String,
    /// The change that made it.
    pub(super) revision: u64,
    pub(super) is_ephemeral: bool,
}

impl Session {
    pub(super) fn open(addr: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&addr, TIMEOUT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let mut session = Session { stream, calls: 0 };
        let mut hello = Vec::new();
        // The version, and what was seen of the servers' changes.
        hello.extend([0; 12]);
        hello.extend(ENDS_AFTER_MS.to_be_bytes());
        // A new session, without a password, and not one that only reads.
        hello.extend([0; 8]);
        hello.extend(16_i32.to_be_bytes());
        hello.extend([0; 17]);
        session.send(&hello)?;
        session.receive()?;
        Ok(session)
    }

    /// Waits until the member has seen what the leader had done; gives the number of that leader.
    pub(super) fn sync(&mut self) -> io::Result<u64> {
        let (change, _) = self.call(9, &text("/"))?;
        Ok(change >> 32)
    }

    /// The nodes in a node; none, if there is no such node.
    pub(super) fn children(&mut self, path: &str) -> io::Result<Vec<String>> {
        let Some(mut answer) = self.call(8, &path_unwatched(path))?.1 else {
            return Ok(Vec::new());
        };
        (0..answer.int()?).map(|_| answer.text()).collect()
    }

    pub(super) fn get(&mut self, path: &str) -> io::Result<Option<Found>> {
        let Some(mut answer) = self.call(4, &path_unwatched(path))?.1 else {
            return Ok(None);
        };
        let data = answer.text()?;
        let revision = answer.long()?;
        // When it was made and changed, and its versions.
        answer.skip(8 + 8 + 8 + 4 + 4 + 4);
        let is_ephemeral = answer.long()? != 0;
        Ok(Some(Found {
            data,
            revision,
            is_ephemeral,
        }))
    }

    pub(super) fn delete(&mut self, path: &str) -> io::Result<()> {
        let mut request = text(path);
        request.extend((-1_i32).to_be_bytes());
        self.call(2, &request).map(drop)
    }

    /// Gives the last change that the member knows, and the answer; `None` if there is no such node.
    fn call(&mut self, kind: i32, request: &[u8]) -> io::Result<(u64, Option<Answer>)> {
        self.calls += 1;
        let mut packet = Vec::new();
        packet.extend(self.calls.to_be_bytes());
        packet.extend(kind.to_be_bytes());
        packet.extend(request);
        self.send(&packet)?;
        let mut answer = self.receive()?;
        let (number, change, error) = (answer.int()?, answer.long()?, answer.int()?);
        if number != self.calls {
            return Err(io::ErrorKind::InvalidData.into());
        }
        match error {
            0 => Ok((change, Some(answer))),
            NO_NODE => Ok((change, None)),
            error => Err(io::Error::other(format!("error {error}"))),
        }
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let len = i32::try_from(bytes.len()).expect("it is short");
        let mut packet = len.to_be_bytes().to_vec();
        packet.extend(bytes);
        self.stream.write_all(&packet)
    }

    fn receive(&mut self) -> io::Result<Answer> {
        let mut len = [0; 4];
        self.stream.read_exact(&mut len)?;
        let mut bytes = vec![0; u32::from_be_bytes(len) as usize];
        self.stream.read_exact(&mut bytes)?;
        Ok(Answer(bytes.into_iter()))
    }
}

fn text(text: &str) -> Vec<u8> {
    let len = i32::try_from(text.len()).expect("it is short");
    let mut bytes = len.to_be_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes
}

fn path_unwatched(path: &str) -> Vec<u8> {
    let mut request = text(path);
    request.push(0);
    request
}

/// What was received, from where it wasn't read yet.
struct Answer(std::vec::IntoIter<u8>);

impl Answer {
    fn int(&mut self) -> io::Result<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    fn long(&mut self) -> io::Result<u64> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    fn text(&mut self) -> io::Result<String> {
        // Without data it is -1.
        let len = usize::try_from(self.int()?).unwrap_or(0);
        let bytes: Vec<_> = self.0.by_ref().take(len).collect();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn skip(&mut self, bytes: usize) {
        self.0.by_ref().take(bytes).for_each(drop);
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let bytes: Vec<_> = self.0.by_ref().take(N).collect();
        bytes
            .try_into()
            .map_err(|_| io::ErrorKind::UnexpectedEof.into())
    }
}
