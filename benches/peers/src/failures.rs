//! What happens when a holder dies, works for too long, or loses its key.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crosslock::Locker;
use rslock::LockManager;

use crate::median;
use crate::server::Server;
use crate::subject::Subject;

const ROLE: &str = "holder";
const TTL: Duration = Duration::from_secs(1);
const REPEATS: usize = 5;

pub fn run(server: &Server) {
    println!("\nKilled, and overtime: ttl {TTL:?}\n");
    println!(
        "| lock | waiter has it after the lease's end by | another gets in after 3 ttl | the holder's unlock says |"
    );
    println!("|---|---|---|---|");
    for subject in Subject::ALL {
        let late = median((0..REPEATS).map(|_| killed(server, subject)));
        let (got_in, told) = overtime(server, subject);
        let got_in = if got_in { "yes" } else { "no" };
        println!("| {} | {late:.0} ms | {got_in} | {told} |", subject.name());
    }
    println!("\nDeleted: ttl {TTL:?}\n");
    let (ours, theirs) = (told_by_crosslock(server), told_by_rslock(server));
    println!("crosslock, `lost()`: told after {ours:?}");
    println!("rslock, `using`: told after {theirs:?}");
}

/// For how many milliseconds after the end of the lease of a killed holder a waiter has to wait.
fn killed(server: &Server, subject: Subject) -> f64 {
    let name = format!("killed-{subject:?}");
    let mut holder = Command::new(std::env::current_exe().expect("this program"))
        .args([ROLE, subject.name(), &server.url])
        .arg(&server.directory)
        .arg(&name)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    holder
        .stdout
        .as_mut()
        .expect("a pipe")
        .read_exact(&mut [0])
        .expect("a holder");
    let (url, directory, waits_for) = (server.url.clone(), server.directory.clone(), name.clone());
    let waiter = thread::spawn(move || {
        let mut client = subject.client(&url, &directory, &waits_for, TTL);
        client.lock();
        let had = Instant::now();
        client.unlock();
        had
    });
    thread::sleep(TTL / 4);
    holder.kill().expect("a process");
    let ends = Instant::now() + lease_of(server, subject, &name);
    holder.wait().expect("its end");
    let had = waiter.join().expect("no panic");
    had.saturating_duration_since(ends).as_secs_f64() * 1e3
}

/// How long the server keeps the lock if nobody renews it.
fn lease_of(server: &Server, subject: Subject, name: &str) -> Duration {
    if subject.is_file() {
        return Duration::ZERO;
    }
    let key = match subject {
        Subject::Crosslock => format!("{{crosslock:{name}}}"),
        _ => name.to_owned(),
    };
    let left: i64 = redis::cmd("PTTL")
        .arg(key)
        .query(&mut server.connect())
        .expect("an answer");
    Duration::from_millis(left.max(0).unsigned_abs())
}

/// Whether another gets the lock from a holder that works for three times the ttl, and what that is told by its unlock.
fn overtime(server: &Server, subject: Subject) -> (bool, String) {
    let client = || {
        subject.client(
            &server.url,
            &server.directory,
            &format!("overtime-{subject:?}"),
            TTL,
        )
    };
    let mut holder = client();
    holder.lock();
    let (url, directory) = (server.url.clone(), server.directory.clone());
    let other = thread::spawn(move || {
        let mut other = subject.client(&url, &directory, &format!("overtime-{subject:?}"), TTL);
        other.lock();
        let had = Instant::now();
        thread::sleep(TTL / 2);
        other.unlock();
        had
    });
    thread::sleep(TTL * 3);
    let end = Instant::now();
    let told = holder.unlock();
    let had = other.join().expect("no panic");
    (had < end, told)
}

fn delete(server: &Server, key: &str) -> Instant {
    let deleted: u32 = redis::cmd("DEL")
        .arg(key)
        .query(&mut server.connect())
        .expect("an answer");
    assert_eq!(deleted, 1, "{key} was there");
    Instant::now()
}

fn told_by_crosslock(server: &Server) -> Duration {
    let locker = Locker::builder(&server.url)
        .ttl(TTL)
        .build()
        .expect("a server");
    let guard = locker.lock("deleted").expect("the lock");
    let deleted = delete(server, "{crosslock:deleted}");
    guard.lost().recv().expect("a message");
    deleted.elapsed()
}

/// Its other calls leave renewal to the caller, and tell nobody.
fn told_by_rslock(server: &Server) -> Duration {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let manager = LockManager::new(vec![server.url.as_str()]);
    let mut deleted = Instant::now();
    let result = runtime.block_on(manager.using(b"deleted", TTL, async || {
        deleted = delete(server, "deleted");
        tokio::time::sleep(TTL * 10).await;
    }));
    assert!(result.is_err(), "it was told");
    deleted.elapsed()
}

/// Takes a lock, says so, and holds it until it is killed, if this process is such a holder.
pub fn serve(arguments: &[String]) -> bool {
    let [role, subject, url, directory, name] = arguments else {
        return false;
    };
    if role != ROLE {
        return false;
    }
    let subject = Subject::parse(subject).expect("a subject");
    let mut client = subject.client(url, Path::new(directory), name, TTL);
    client.lock();
    let mut output = std::io::stdout().lock();
    output
        .write_all(&[1])
        .and_then(|()| output.flush())
        .expect("a parent");
    loop {
        thread::park();
    }
}
