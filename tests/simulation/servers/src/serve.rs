//! Serves a simulated server on a loopback port, by the real clock: so real clients can talk to it.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Instant, SystemTime};

use crosslock_world::service::{Connection, Service};

use crate::desk::Desk;

struct Served<S> {
    desk: Desk<S>,
    began: Instant,
    streams: BTreeMap<Connection, TcpStream>,
}

/// Serves a service of one host, as long as the program runs. It does what is due when more bytes come: so it tells
/// nobody by itself that a time is over.
///
/// # Errors
///
/// When there is no port.
pub fn serve<S: Service + 'static>(service: S) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let mut desk = Desk::new(service, fastrand::u64(..));
    desk.began = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let (began, streams) = (Instant::now(), BTreeMap::new());
    let served = Arc::new(Mutex::new(Served {
        desk,
        began,
        streams,
    }));
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let served = served.clone();
            thread::spawn(move || read(stream, &served));
        }
    });
    Ok(address)
}

fn read<S: Service>(mut stream: TcpStream, served: &Mutex<Served<S>>) -> io::Result<()> {
    let locked = || served.lock().unwrap_or_else(PoisonError::into_inner);
    stream.set_nodelay(true)?;
    let writing = stream.try_clone()?;
    let connection = locked().desk.connect(0);
    locked().streams.insert(connection, writing);
    let mut buffer = vec![0; 64 << 10];
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        locked().receive(connection, &buffer[..length]);
    }
    locked().streams.remove(&connection);
    locked().desk.hang_up(connection);
    Ok(())
}

impl<S: Service> Served<S> {
    fn receive(&mut self, from: Connection, bytes: &[u8]) {
        let passed = self.began.elapsed().saturating_sub(self.desk.now);
        self.desk.wait(passed);
        self.desk.send(from, bytes);
        for (connection, stream) in &mut self.streams {
            // A client that is gone needs no answer.
            let _ = stream.write_all(&self.desk.take(*connection));
        }
    }
}
