//! The tests' own tools do what no other test would show: where a fault did nothing, or a count were always zero, tests
//! of the library would pass all the same.

mod by_hand;
mod ends;
mod installs;
mod proxies;
mod stopwatch;

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use redis::cmd;
use support::{Proxy, RedisServer};

/// Far more than anything here takes, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// Long enough to notice an answer that shouldn't come.
const SILENCE: Duration = Duration::from_millis(150);

/// A client that shows every byte.
struct Wire(TcpStream);

impl Wire {
    fn to(proxy: &Proxy) -> Self {
        let stream = TcpStream::connect(proxy.addr()).expect("the proxy accepts");
        stream.set_nodelay(true).expect("set nodelay");
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("set a timeout");
        Self(stream)
    }

    /// One that has asked something already.
    fn open(proxy: &Proxy) -> Self {
        let mut wire = Self::to(proxy);
        assert_eq!(wire.ask(&["PING"]), "+PONG");
        wire
    }

    fn is_silent(&mut self) -> bool {
        self.0
            .set_read_timeout(Some(SILENCE))
            .expect("set a timeout");
        let read = self.0.read(&mut [0]);
        self.0
            .set_read_timeout(Some(PATIENCE))
            .expect("set a timeout");
        read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }

    fn ask(&mut self, request: &[&str]) -> String {
        self.send(request);
        self.line()
    }

    fn send(&mut self, request: &[&str]) {
        let packed = cmd(request[0]).arg(&request[1..]).get_packed_command();
        self.0.write_all(&packed).expect("the connection is open");
    }

    /// Returns the next line without its end, or what came before the connection ended.
    fn line(&mut self) -> String {
        let mut line = Vec::new();
        let mut byte = [0];
        while !line.ends_with(b"\r\n") && self.0.read(&mut byte).expect("a reply or an end") == 1 {
            line.push(byte[0]);
        }
        String::from_utf8(line).expect("text").trim_end().to_owned()
    }

    /// An error is as good as an end: the peer may have closed with requests unread.
    fn is_ended(&mut self) -> bool {
        match self.0.read(&mut [0]) {
            Ok(len) => len == 0,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }
}

fn server_with_proxy() -> (RedisServer, Proxy) {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.addr());
    (server, proxy)
}

fn is_running(pid: u32) -> bool {
    // A dead process stays in the table until whoever inherited it reaps it.
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}
