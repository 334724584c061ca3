//! A peer that answers as no honest sentinel does.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

/// Answers the two questions of a look-up as it is told to. Its thread ends with the test's process.
#[derive(Debug)]
pub(crate) struct Liar {
    pub(crate) addr: SocketAddr,
}

/// What it says, on the wire, of `mymaster` with that epoch, at that port.
fn replies(epoch: u32, port: u16) -> [String; 2] {
    [
        strings(&["name", "mymaster", "config-epoch", &epoch.to_string()]),
        strings(&["127.0.0.1", &port.to_string()]),
    ]
}

/// An array of strings on the wire.
fn strings(all: &[&str]) -> String {
    let each = |text: &&str| format!("${}\r\n{text}\r\n", text.len());
    let texts: String = all.iter().map(each).collect();
    format!("*{}\r\n{texts}", all.len())
}

impl Liar {
    pub(crate) fn start(epoch: u32, port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
        let addr = listener.local_addr().expect("an address");
        let replies = Arc::new(replies(epoch, port));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let replies = replies.clone();
                thread::spawn(move || lie(&stream, &replies));
            }
        });
        Liar { addr }
    }

    /// The URL of sentinels of which it is the only one.
    pub(crate) fn url(&self) -> String {
        format!("redis+sentinel://{}/mymaster", self.addr)
    }
}

fn lie(stream: &TcpStream, replies: &[String; 2]) {
    let mut writer = stream;
    // Its second reply doesn't wait until the first has arrived.
    let _ = stream.set_nodelay(true);
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return };
        let which = match line.as_str() {
            "MASTER" => 0,
            "GET-MASTER-ADDR-BY-NAME" => 1,
            _ => continue,
        };
        if writer.write_all(replies[which].as_bytes()).is_err() {
            return;
        }
    }
}
