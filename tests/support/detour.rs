//! A way to a server on which a request can be held up, until long after its client has given it up.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::wait_until;

/// Far more than anything here takes, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Passes all bytes, but for a request that is to be late. Its connections end with their clients.
#[derive(Debug)]
pub struct Detour {
    addr: SocketAddr,
    server: SocketAddr,
    late: Arc<Mutex<Late>>,
}

#[derive(Debug, Default)]
enum Late {
    #[default]
    Nothing,
    /// The next request that is such.
    Wanted(fn(&str) -> bool),
    Held(Vec<u8>),
}

impl Detour {
    /// Starts a way to the server at `server`.
    pub fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let detour = Detour {
            addr: listener.local_addr().expect("its port"),
            server,
            late: Arc::default(),
        };
        let (server, late) = (detour.server, Arc::downgrade(&detour.late));
        thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Some(late)) = (client, late.upgrade()) else {
                    return;
                };
                thread::spawn(move || pass(client, server, &late));
            }
        });
        detour
    }

    /// Returns the address for clients.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Holds up the next request that is such, and closes its connection.
    pub fn hold(&self, such: fn(&str) -> bool) {
        *self.late.lock().expect("nobody panics") = Late::Wanted(such);
    }

    /// Waits until a request is held up.
    #[track_caller]
    pub fn await_held(&self) {
        wait_until("a request to be held up", PATIENCE, || {
            matches!(*self.late.lock().expect("nobody panics"), Late::Held(_))
        });
    }

    /// Has the request come to the server after all, and waits until it was answered.
    ///
    /// # Panics
    ///
    /// If none is held up.
    #[track_caller]
    pub fn deliver(&self) -> String {
        let late = std::mem::take(&mut *self.late.lock().expect("nobody panics"));
        let Late::Held(request) = late else {
            panic!("nothing is held up");
        };
        let mut stream = TcpStream::connect(self.server).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.write_all(&request).expect("it reads");
        let mut answer = vec![0; 64 << 10];
        let length = stream.read(&mut answer).expect("it answers");
        String::from_utf8_lossy(&answer[..length]).into_owned()
    }
}

impl Drop for Detour {
    fn drop(&mut self) {
        self.late = Arc::default();
        // Wakes the thread that accepts.
        let _ = TcpStream::connect_timeout(&self.addr, Duration::from_secs(1));
    }
}

/// Serves one client until it goes.
fn pass(mut client: TcpStream, server: SocketAddr, late: &Mutex<Late>) -> Option<()> {
    let mut server = TcpStream::connect(server).ok()?;
    let (mut from, mut to) = (server.try_clone().ok()?, client.try_clone().ok()?);
    thread::spawn(move || io::copy(&mut from, &mut to));
    let mut request = vec![0; 64 << 10];
    loop {
        // Clients write a request at once.
        let length = client.read(&mut request).unwrap_or(0);
        let request = &request[..length];
        if length == 0 || is_held(request, late) {
            let _ = client.shutdown(std::net::Shutdown::Both);
            return server.shutdown(std::net::Shutdown::Both).ok();
        }
        server.write_all(request).ok()?;
    }
}

fn is_held(request: &[u8], late: &Mutex<Late>) -> bool {
    let mut late = late.lock().expect("nobody panics");
    let Late::Wanted(such) = *late else {
        return false;
    };
    let is_wanted = such(&String::from_utf8_lossy(request));
    if is_wanted {
        *late = Late::Held(request.to_vec());
    }
    is_wanted
}
