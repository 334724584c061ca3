//! What is no Redis server, although it talks like one: it says what it is told to, whatever it is asked.

use std::io::{BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

/// Answers request after request, over all of its connections, with the next line; the last line again and again.
pub(crate) struct Speaker {
    addr: SocketAddr,
}

impl Speaker {
    /// Its threads end with their connections, and with the process.
    pub(crate) fn start(lines: &[&str]) -> Self {
        let lines: Arc<[String]> = lines.iter().map(ToString::to_string).collect();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("bind a free port");
        let addr = listener.local_addr().expect("ask for the port");
        let counter = Arc::new(AtomicUsize::new(0));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (lines, counter) = (Arc::clone(&lines), Arc::clone(&counter));
                thread::spawn(move || converse(&stream, &lines, &counter));
            }
        });
        Self { addr }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}/", self.addr)
    }
}

fn converse(stream: &TcpStream, lines: &[String], requests: &AtomicUsize) {
    let mut reader = BufReader::new(stream);
    let mut parser = redis::Parser::new();
    while parser.parse_value(&mut reader).is_ok() {
        let index = requests.fetch_add(1, SeqCst).min(lines.len() - 1);
        let mut writer = stream;
        if writer.write_all(lines[index].as_bytes()).is_err() {
            return;
        }
    }
}
