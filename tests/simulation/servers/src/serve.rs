//! Serves a simulated server on a loopback port, by the real clock: so real clients can talk to it.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crosslock_world::service::{Connection, Service};

use crate::desk::Desk;

/// A service with a port. Dropping it ends it.
#[derive(Debug)]
pub struct Served {
    address: SocketAddr,
    events: Sender<Event>,
}

#[derive(Debug)]
enum Event {
    Connected(usize, TcpStream),
    Received(usize, Vec<u8>),
    Closed(usize),
    Ended,
}

/// Serves a service of one host.
///
/// # Errors
///
/// When there is no port.
pub fn serve<S: Service + 'static>(service: S) -> io::Result<Served> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let (events, received) = mpsc::channel();
    let ours = events.clone();
    thread::spawn(move || accept(&listener, &ours));
    thread::spawn(move || run(Desk::new(service, fastrand::u64(..)), &received));
    Ok(Served { address, events })
}

impl Served {
    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.events.send(Event::Ended);
        // It wakes the thread that accepts, which finds that nobody listens to it.
        drop(TcpStream::connect(self.address));
    }
}

fn accept(listener: &TcpListener, events: &Sender<Event>) {
    for number in 0.. {
        let Ok((stream, _)) = listener.accept() else {
            return;
        };
        let (events, reading) = (events.clone(), stream.try_clone());
        // The connection comes before all that it brings.
        if events.send(Event::Connected(number, stream)).is_err() {
            return;
        }
        if let Ok(reading) = reading {
            thread::spawn(move || read(number, reading, &events));
        }
    }
}

fn read(number: usize, mut stream: TcpStream, events: &Sender<Event>) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        let bytes = buffer[..length].to_vec();
        if events.send(Event::Received(number, bytes)).is_err() {
            return;
        }
    }
    let _ = events.send(Event::Closed(number));
}

fn run<S: Service>(mut desk: Desk<S>, events: &Receiver<Event>) {
    let began = Instant::now();
    desk.began = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let mut streams: BTreeMap<usize, (Connection, TcpStream)> = BTreeMap::new();
    loop {
        let wake = desk.wakes_at().map(|at| at.saturating_sub(began.elapsed()));
        let event = events.recv_timeout(wake.unwrap_or(Duration::from_secs(3600)));
        desk.wait(began.elapsed().saturating_sub(desk.now));
        match event {
            Ok(Event::Ended) | Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {}
            Ok(Event::Connected(number, stream)) => {
                let _ = stream.set_nodelay(true);
                streams.insert(number, (desk.connect(0), stream));
            }
            Ok(Event::Received(number, bytes)) => {
                let to = streams.get(&number);
                to.into_iter().for_each(|(to, _)| desk.send(*to, &bytes));
            }
            Ok(Event::Closed(number)) => {
                let from = streams.get(&number);
                from.into_iter().for_each(|(from, _)| desk.hang_up(*from));
            }
        }
        streams.retain(|_, (connection, stream)| {
            let _ = stream.write_all(&desk.take(*connection));
            let is_open = !desk.closed.contains(connection);
            if !is_open {
                let _ = stream.shutdown(Shutdown::Both);
            }
            is_open
        });
    }
}
