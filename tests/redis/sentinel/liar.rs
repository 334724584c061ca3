//! A peer that answers as no honest sentinel does.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

/// Answers the two questions of a look-up in a wrong way. Its thread ends with the test's process.
#[derive(Debug)]
pub(crate) struct Liar(SocketAddr);

impl Liar {
    /// One that answers SENTINEL MASTER and GET-MASTER-ADDR-BY-NAME with these replies, as they are on the wire.
    pub(crate) fn start(state: &str, address: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
        let addr = listener.local_addr().expect("an address");
        let replies = [state.to_owned(), address.to_owned()];
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let replies = replies.clone();
                thread::spawn(move || lie(&stream, &replies));
            }
        });
        Liar(addr)
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.0
    }
}

fn lie(stream: &TcpStream, [state, address]: &[String; 2]) {
    let mut writer = stream;
    // Its second reply doesn't wait until the first has arrived.
    let _ = stream.set_nodelay(true);
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return };
        let reply = match line.as_str() {
            "MASTER" => state,
            "GET-MASTER-ADDR-BY-NAME" => address,
            _ => continue,
        };
        if writer.write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

/// An array of strings on the wire.
pub(crate) fn strings(all: &[&str]) -> String {
    let each = |text: &&str| format!("${}\r\n{text}\r\n", text.len());
    let texts: String = all.iter().map(each).collect();
    format!("*{}\r\n{texts}", all.len())
}

/// What MASTER answers for `mymaster` with that epoch.
pub(crate) fn state(epoch: &str) -> String {
    strings(&["name", "mymaster", "config-epoch", epoch])
}
