//! Serves a simulated server on loopback ports, by the real clock: so real clients can talk to it.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crosslock_world::service::{Connection, Done, Fault, Host, Io, Service};

/// A service with a port for each host. Dropping it ends it.
#[derive(Debug)]
pub struct Served {
    addresses: Vec<SocketAddr>,
    events: Sender<Event>,
    has_ended: Arc<AtomicBool>,
}

#[derive(Debug)]
enum Event {
    Connected(Host, Connection, TcpStream),
    Received(Host, Connection, Vec<u8>),
    Closed(Host, Connection),
    Fault(Host, Fault),
    Ended,
}

/// Serves what `make` makes for these addresses: one for each host.
///
/// # Errors
///
/// When there is no port.
pub fn serve<S: Service + 'static>(
    hosts: usize,
    make: impl FnOnce(Vec<(String, u16)>) -> S,
) -> io::Result<Served> {
    let listen = |_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let listeners: Vec<_> = (0..hosts).map(listen).collect::<io::Result<_>>()?;
    let addresses = listeners.iter().map(TcpListener::local_addr);
    let addresses: Vec<_> = addresses.collect::<io::Result<_>>()?;
    let named = addresses.iter().map(|at| (at.ip().to_string(), at.port()));
    let service = make(named.collect());
    let (events, received) = mpsc::channel();
    let (numbers, has_ended) = (
        Arc::new(AtomicU64::new(1)),
        Arc::new(AtomicBool::new(false)),
    );
    for (host, listener) in listeners.into_iter().enumerate() {
        let (events, numbers, has_ended) = (events.clone(), numbers.clone(), has_ended.clone());
        thread::spawn(move || accept(host, &listener, &events, &numbers, &has_ended));
    }
    thread::spawn(move || Desk::new(service, hosts).run(&received));
    Ok(Served {
        addresses,
        events,
        has_ended,
    })
}

impl Served {
    /// Where each host is.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Has something happen to a host.
    pub fn fault(&self, host: Host, fault: Fault) {
        let _ = self.events.send(Event::Fault(host, fault));
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
        let _ = self.events.send(Event::Ended);
        for address in &self.addresses {
            // It wakes the thread that accepts.
            drop(TcpStream::connect(address));
        }
    }
}

fn accept(
    host: Host,
    listener: &TcpListener,
    events: &Sender<Event>,
    numbers: &AtomicU64,
    has_ended: &AtomicBool,
) {
    while let Ok((stream, _)) = listener.accept() {
        if has_ended.load(Ordering::Relaxed) {
            return;
        }
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        let events = events.clone();
        let Ok(reading) = stream.try_clone() else {
            continue;
        };
        // The connection comes before all that it brings.
        if events.send(Event::Connected(host, number, stream)).is_ok() {
            thread::spawn(move || read(host, number, reading, &events));
        }
    }
}

fn read(host: Host, number: Connection, mut stream: TcpStream, events: &Sender<Event>) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        let bytes = buffer[..length].to_vec();
        if events.send(Event::Received(host, number, bytes)).is_err() {
            return;
        }
    }
    let _ = events.send(Event::Closed(host, number));
}

/// Where all events of a service come together.
struct Desk<S> {
    service: S,
    streams: BTreeMap<Connection, (Host, TcpStream)>,
    are_up: Vec<bool>,
    are_paused: Vec<bool>,
    /// What has come for hosts that are paused.
    held: Vec<Event>,
    wake: Option<Duration>,
    began: Instant,
    /// By how many microseconds each host's clock is ahead.
    ahead: Vec<i64>,
    random: fastrand::Rng,
}

impl<S: Service> Desk<S> {
    fn new(service: S, hosts: usize) -> Self {
        Desk {
            service,
            streams: BTreeMap::new(),
            are_up: vec![true; hosts],
            are_paused: vec![false; hosts],
            held: Vec::new(),
            wake: Some(Duration::ZERO),
            began: Instant::now(),
            ahead: vec![0; hosts],
            random: fastrand::Rng::new(),
        }
    }

    fn run(mut self, events: &Receiver<Event>) {
        loop {
            let left = self
                .wake
                .map(|wake| wake.saturating_sub(self.began.elapsed()));
            match events.recv_timeout(left.unwrap_or(Duration::from_secs(3600))) {
                Ok(Event::Ended) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(event) => self.take(event),
                Err(RecvTimeoutError::Timeout) => {
                    self.wake = None;
                    self.tell(|service, io| service.woken(io));
                }
            }
        }
    }

    fn take(&mut self, event: Event) {
        let at = match event {
            Event::Connected(at, ..) | Event::Received(at, ..) | Event::Closed(at, _) => Some(at),
            Event::Fault(..) | Event::Ended => None,
        };
        if at.is_some_and(|at| self.are_paused[at]) {
            self.held.push(event);
            return;
        }
        match event {
            Event::Connected(at, number, stream) if self.are_up[at] => {
                let _ = stream.set_nodelay(true);
                let _ = stream.set_write_timeout(Some(Duration::from_secs(5)));
                self.streams.insert(number, (at, stream));
                self.tell(|service, io| service.connected(io, at, number));
            }
            Event::Received(at, number, bytes) if self.streams.contains_key(&number) => {
                self.tell(|service, io| service.received(io, at, number, &bytes));
            }
            Event::Closed(at, number) if self.streams.remove(&number).is_some() => {
                self.tell(|service, io| service.closed(io, at, number));
            }
            Event::Fault(at, fault) => self.suffer(at, fault),
            _ => {}
        }
    }

    fn suffer(&mut self, at: Host, fault: Fault) {
        match fault {
            Fault::Kill => {
                self.are_up[at] = false;
                let all = self.streams.iter().filter(|(_, (host, _))| *host == at);
                let all: Vec<_> = all.map(|(number, _)| *number).collect();
                all.into_iter().for_each(|number| self.close(number));
            }
            Fault::Start { .. } => self.are_up[at] = true,
            Fault::Pause => self.are_paused[at] = true,
            Fault::Resume => self.are_paused[at] = false,
            Fault::StepClock { micros } => self.ahead[at] += micros,
            Fault::Cut | Fault::Heal | Fault::Own(_) => {}
        }
        self.tell(|service, io| service.fault(io, at, fault));
        for event in std::mem::take(&mut self.held) {
            self.take(event);
        }
    }

    fn close(&mut self, number: Connection) {
        if let Some((_, stream)) = self.streams.remove(&number) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn tell(&mut self, what: impl FnOnce(&mut S, &mut Io<'_>)) {
        let since_1970 = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let wall = |ahead: &i64| {
            let by = Duration::from_micros(ahead.unsigned_abs());
            if *ahead < 0 {
                since_1970.saturating_sub(by)
            } else {
                since_1970 + by
            }
        };
        let walls: Vec<_> = self.ahead.iter().map(wall).collect();
        let mut io = Io {
            now: self.began.elapsed(),
            walls: &walls,
            random: &mut self.random,
            done: Vec::new(),
        };
        what(&mut self.service, &mut io);
        for done in io.done {
            match done {
                Done::Send(number, bytes) => {
                    let stream = self.streams.get_mut(&number);
                    let _ = stream.map(|(_, stream)| stream.write_all(&bytes));
                }
                Done::Close(number) => self.close(number),
                Done::WakeAt(time) => {
                    self.wake = Some(self.wake.map_or(time, |before| before.min(time)));
                }
                Done::Log(line) => eprintln!("{line}"),
            }
        }
    }
}
