//! Hosts of a URL that don't answer, can't serve, or hang.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use super::*;
use support::{Etcd, Fault};

#[test]
fn port_of_something_else_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    for answer in [
        "HTTP/1.1 404 Not Found\r\nContent-Length: 6\r\n\r\nsecret",
        "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nsecret",
        "-ERR secret\r\n",
    ] {
        let peer = thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                assert!(stream.read(&mut [0; 1 << 12]).unwrap() > 0);
                stream.write_all(answer.as_bytes()).unwrap();
            });
            let url = format!("etcd://{addr}/");
            Locker::open(&url).unwrap_err()
        });
        assert!(matches!(peer, Error::Engine { .. }), "{peer}");
        assert!(!shown(&peer).contains("secret"), "{}", shown(&peer));
    }
}

/// Its keepalives have found that its host hangs, and go to another since then.
#[test]
fn waiter_whose_host_hangs_for_long_hears_by_another() {
    let server = Etcd::setup().proxies().start();
    let ttl = millis(3_000);
    let direct = server.own_addr();
    let holder = open(&format!("etcd://{direct}/"));
    let url = format!("etcd://{},{direct}/", server.addr());
    let builder = Locker::builder(&url).ttl(ttl).io_timeout(millis(300));
    let waiter = server.proxy();
    let waiter = waiter.asked_first_by(|| builder.clone().build().expect("open"));
    assert_served(&holder, &waiter, |guard| {
        server.proxy().set(Fault::BlackHole);
        thread::sleep(ttl);
        guard.unlock().expect("unlock");
    });
}
