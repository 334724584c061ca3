//! What shows that the tests' own tools work.

use std::fs::File;
use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;

use support::{
    Child, Fault, Proxy, RedisServer, Stopwatch, forked, hear, open_files_under, resident_bytes,
    say, sockets, threads_named, wait_until,
};

use super::*;

const fn millis(number: u64) -> Duration {
    Duration::from_millis(number)
}

pub(crate) fn echo() {
    say(&format!("pid {}", std::process::id()));
    say(&format!("greeting {}", std::env::var("GREETING").unwrap()));
    while let Some(line) = hear() {
        say(&format!("heard {line}"));
        say("done");
    }
}

pub(crate) fn have_a_child() {
    let mut child = Child::spawn("sleeps", &[]);
    child.wait_for("asleep", PATIENCE);
    say(&format!("grandchild {}", child.pid()));
    hear();
}

pub(crate) fn sleep() {
    say("asleep");
    loop {
        thread::park();
    }
}

pub(crate) fn fork_while_threads_begin_and_end() {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    let both = [(); 2].map(|()| thread::spawn(|| {}));
                    both.into_iter().for_each(|one| one.join().unwrap());
                }
            });
        }
        for _ in 0..500 {
            let pid = forked(|| thread::spawn(|| {}).join().unwrap());
            let status = fork::waitpid(pid).unwrap();
            assert!(fork::WIFEXITED(status) && fork::WEXITSTATUS(status) == 0);
        }
        stop.store(true, Relaxed);
    });
}

pub(crate) fn have_a_server() {
    let server = RedisServer::start();
    say(&format!("server {}", server.pid()));
    hear();
}

/// Says how late this process is between two words of its parent, and whether a bound of nothing would be broken.
pub(crate) fn measure() {
    let (watch, other) = (Stopwatch::start(), Stopwatch::start());
    say("measures");
    hear();
    other.assert_late(millis(500), millis(1_000), "nobody has stopped us");
    let elapsed = watch.elapsed();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        watch.assert_within(Duration::ZERO);
    }));
    let verdict = if outcome.is_ok() { "excused" } else { "broken" };
    say(&format!("{verdict} {}", elapsed.as_millis()));
}

pub(crate) fn count_resources() {
    let before = sockets();
    let pair = UnixStream::pair().unwrap();
    assert_eq!(sockets(), before + 2);
    drop(pair);
    assert_eq!(sockets(), before);

    let dir = tempfile::tempdir().unwrap();
    let file = File::create(dir.path().join("file")).unwrap();
    assert_eq!(open_files_under(dir.path()), 1);
    drop(file);
    assert_eq!(open_files_under(dir.path()), 0);

    let (sender, receiver) = mpsc::channel::<()>();
    let named = thread::Builder::new().name("crosslock-renewal".into());
    let handle = named.spawn(move || receiver.recv()).unwrap();
    wait_until("the thread's name", PATIENCE, || {
        threads_named("crosslock-renew") == 1
    });
    assert_eq!(threads_named("crosslock-renewal"), 1);
    drop(sender);
    handle.join().unwrap().unwrap_err();
    wait_until("the thread's end", PATIENCE, || {
        threads_named("crosslock") == 0
    });

    let before = resident_bytes();
    let memory = vec![1_u8; 64 << 20];
    assert!(resident_bytes() >= before + (60 << 20), "{}", memory.len());
}

pub(crate) fn have_hanging_proxies() {
    let server = RedisServer::start();
    let before = sockets();
    let hour = Duration::from_secs(3600);
    for fault in [
        Fault::None,
        Fault::Delay(hour),
        Fault::BlackHole,
        Fault::LoseReply { then_close: false },
        Fault::Trickle { every: hour },
    ] {
        let proxy = Proxy::start(server.addr());
        proxy.set(fault);
        let mut wires = [(); 3].map(|()| TcpStream::connect(proxy.addr()).unwrap());
        for wire in &mut wires {
            wire.write_all(b"*1\r\n$4\r\nPING\r\n").unwrap();
        }
        wait_until("the requests", PATIENCE, || proxy.requests() == 3);
        assert_eq!(proxy.connections(), 3);
        drop(proxy);
        // A joined thread stays listed for a moment.
        wait_until("the threads' end", PATIENCE, || threads_named("proxy") == 0);
        drop(wires);
        assert_eq!(sockets(), before, "{fault:?}");
    }
}
