//! Leases, breaks, passing on and waits, as the seam asks for them.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use super::content::{Content, Record, read_content, write_content};
use super::*;
use crate::base::backoff::Backoff;
use crate::base::cancel::Cancel;
use crate::base::claim::Claim;
use crate::base::clock::BootClock;
use crate::base::error::{Error, LostReason};
use crate::base::inspection::LockState;
use crate::base::sync::Mutex;
use crate::base::token::Token;
use crate::engine::{Answer, Pace};

const NEVER: Deadline = Deadline::NEVER;

fn open(directory: &TempDir) -> FileEngine {
    let url = format!("file://{}", directory.path().display());
    let rest = url.strip_prefix("file:").unwrap();
    FileEngine::open(&url, rest, Arc::new(BootClock)).unwrap()
}

fn place() -> (TempDir, FileEngine) {
    let directory = tempfile::tempdir().unwrap();
    let engine = open(&directory);
    (directory, engine)
}

/// An owner and what it asks for.
struct Client(Claim, Owner);

impl Client {
    fn new() -> Self {
        Client(Claim::exclusive("x", "y"), Owner::new())
    }

    fn request(&self) -> Request<'_> {
        Request {
            claim: &self.0,
            owner: &self.1,
            ttl: Duration::from_secs(1),
        }
    }

    fn asks(&self, engine: &FileEngine) -> Option<Token> {
        match engine.new_wait().ask(self.request(), None, &NEVER).unwrap() {
            Answer::Granted(grant) => Some(grant.token),
            Answer::Taken { .. } | Answer::Broken => None,
        }
    }

    fn takes(&self, engine: &FileEngine) -> Token {
        self.asks(engine).expect("nobody has it")
    }

    fn breaks(&self, engine: &FileEngine) -> Vec<Holder> {
        engine.break_lock(self.request().key(), &NEVER).unwrap()
    }

    fn renews(&self, engine: &FileEngine) -> Renewed {
        engine.renew(self.request(), &NEVER).unwrap()
    }

    fn releases(&self, engine: &FileEngine) -> Released {
        let release = Release::UNKNOWN;
        engine.release(self.request(), release, &NEVER).unwrap()
    }

    fn path(&self, engine: &FileEngine) -> PathBuf {
        engine.files.path(self.request().key())
    }
}

#[test]
fn file_removed_while_held_is_lost() {
    let (_directory, engine) = place();
    let client = Client::new();
    client.takes(&engine);
    assert_eq!(client.renews(&engine), Renewed::Done);
    fs::remove_file(client.path(&engine)).unwrap();
    assert_eq!(client.renews(&engine), Renewed::NotOwner);
    assert_eq!(client.releases(&engine), Released::NotOwner);
}

#[test]
fn broken_holder_is_told_at_once_in_its_process_and_when_it_renews_or_releases() {
    #[derive(Default)]
    struct Told(Mutex<Vec<(String, LostReason)>>);
    impl Revocations for Told {
        fn revoked(&self, owner: &str, _: u64, reason: LostReason) {
            self.0.lock().push((owner.to_owned(), reason));
        }
    }

    let (directory, engine) = place();
    let told = Arc::new(Told::default());
    let listener: Arc<dyn Revocations> = told.clone();
    engine.tell_revocations(Arc::downgrade(&listener));
    let (client, next) = (Client::new(), Client::new());
    let token = client.takes(&engine);
    let other = open(&directory);
    let broken = client.breaks(&other);
    assert_eq!(broken.len(), 1);
    assert_eq!(broken[0].token, Some(token.number));
    let owner = client.1.as_str().to_owned();
    assert_eq!(*told.0.lock(), [(owner, LostReason::Broken)]);
    let after = next.takes(&other);
    assert!(after.abandoned && after.number > token.number + 2 * HAND_OVERS);
    assert_eq!(client.renews(&engine), Renewed::Broken);
    assert_eq!(client.releases(&engine), Released::Broken);
    assert_eq!(next.renews(&other), Renewed::Done);
    assert_eq!(told.0.lock().len(), 1);
}

#[test]
fn broken_holder_stores_nothing() {
    let (_directory, engine) = place();
    let (client, next) = (Client::new(), Client::new());
    client.takes(&engine);
    let store = |client: &Client, value| engine.store(client.request(), value, &NEVER).unwrap();
    assert_eq!(store(&client, b"1"), StoreAnswer::Done);
    client.breaks(&engine);
    assert_eq!(store(&client, b"2"), StoreAnswer::NotOwner);
    let released = engine.release(
        client.request(),
        Release {
            value: Some(b"3"),
            ..Release::UNKNOWN
        },
        &NEVER,
    );
    assert_eq!(released.unwrap(), Released::Broken);
    next.takes(&engine);
    assert_eq!(store(&next, b"4"), StoreAnswer::Done);
    let value = engine.load(next.request().key(), &NEVER).unwrap();
    assert_eq!(value, Some(b"4".to_vec().into()));
}

/// The file of a lock that was broken by a process that died before it had written the counter, and the one that it had
/// set aside.
fn crashed_break(engine: &FileEngine, client: &Client, last: u64) {
    let path = client.path(engine);
    client.takes(engine);
    let old = fs::File::options().write(true).open(&path).unwrap();
    write_content(&old, last, &Record::None).unwrap();
    fs::rename(&path, path.with_extension("broken")).unwrap();
    let new = fs::File::create(&path).unwrap();
    write_content(&new, 1, &Record::Unfinished).unwrap();
}

#[test]
fn crash_of_a_break_loses_no_token() {
    // What a holder, and one that released in order, have left.
    for (last, is_abandoned) in [((1 << 52) + 1, true), (1 << 52, false)] {
        let (_directory, engine) = place();
        let (client, next) = (Client::new(), Client::new());
        crashed_break(&engine, &client, last);
        let seen = engine.inspect(client.request().key(), &NEVER).unwrap();
        assert_eq!(seen.state, LockState::Free);
        assert!(client.breaks(&engine).is_empty());
        let token = next.takes(&engine);
        assert!(token.number > last && token.abandoned == is_abandoned);
        assert_eq!(next.breaks(&engine).len(), 1);
        assert!(!client.path(&engine).with_extension("broken").exists());
        assert!(Client::new().takes(&engine).number > token.number);
    }
}

#[test]
fn break_of_a_file_that_a_crash_left_unfinished_keeps_its_counter() {
    const LAST: u64 = (1 << 52) + 1;
    let (_directory, engine) = place();
    let client = Client::new();
    crashed_break(&engine, &client, LAST);
    let foreign = fs::File::open(client.path(&engine)).unwrap();
    foreign.lock().unwrap();
    assert_eq!(client.breaks(&engine).len(), 1);
    let new = fs::File::open(client.path(&engine)).unwrap();
    let record = Record::None;
    let counter = LAST;
    let found = read_content(&new).unwrap();
    assert_eq!(found, Some(Content { counter, record }));
}

#[test]
fn adopted_lease_is_the_other_owners_with_a_token_above() {
    let (directory, engine) = place();
    let (first, second) = (Client::new(), Client::new());
    let token = first.takes(&engine);
    let last_used = token.number + 6;
    // By another locker of the same process.
    let other = open(&directory);
    let adopt = || other.adopt(second.request(), &first.1, last_used, &NEVER);
    let adopted = adopt().unwrap().expect("it was the first's").token;
    assert!(adopted.number > last_used && !adopted.abandoned);
    assert_eq!(adopt().unwrap().map(|grant| grant.token), Some(adopted));
    assert_eq!(first.renews(&engine), Renewed::NotOwner);
    assert_eq!(first.releases(&engine), Released::NotOwner);
    let seen = engine.inspect(second.request().key(), &NEVER).unwrap();
    assert_eq!(seen.holders[0].token, Some(adopted.number));
    assert_eq!(second.renews(&other), Renewed::Done);
    let ending = crate::base::token::Ending::Clean {
        last_used: adopted.number,
    };
    let release = Release {
        ending,
        ..Release::UNKNOWN
    };
    let released = other.release(second.request(), release, &NEVER).unwrap();
    assert_eq!(released, Released::Done);
    assert!(adopt().unwrap().is_none(), "nobody has it");
    assert!(!first.takes(&engine).abandoned);
}

#[test]
fn broken_lease_and_that_of_another_process_are_not_adopted() {
    let (_directory, engine) = place();
    let (first, second) = (Client::new(), Client::new());
    let token = first.takes(&engine).number;
    first.breaks(&engine);
    let adopt = |from: &Owner| engine.adopt(second.request(), from, token, &NEVER);
    assert!(adopt(&first.1).unwrap().is_none());
    let other = Owner::from_text("00000000-0000-4000-8000-000000000000/host/1/1");
    match adopt(&other) {
        Err(Error::Unsupported { what }) => assert!(what.contains("another process"), "{what}"),
        other => panic!("{other:?}"),
    }
}

/// Asks and waits as a call does, until the lock is there or `until` is over.
fn wait_for(engine: &FileEngine, client: &Client, until: &Deadline, counted: bool) -> bool {
    let mut wait = engine.new_wait();
    let pauses = Backoff {
        base: Duration::from_secs(60),
        cap: Duration::from_secs(60),
        jitter: 0.0,
    };
    let mut backoff = pauses.waits();
    let mut pace = Pace {
        backoff: &mut backoff,
        counted,
        until,
    };
    while !until.is_over() {
        let answer = wait.ask(client.request(), Some(&mut pace), until);
        if matches!(answer.unwrap(), Answer::Granted(_)) {
            return true;
        }
        wait.wait(client.request(), &mut pace);
    }
    false
}

#[test]
fn cancel_ends_every_wait() {
    let (_directory, engine) = place();
    let holder = Client::new();
    holder.takes(&engine);
    for counted in [false, true] {
        let cancel = Cancel::default();
        let until = Deadline::NEVER.or(&cancel);
        thread::scope(|scope| {
            let waiter = scope.spawn(|| wait_for(&engine, &Client::new(), &until, counted));
            thread::sleep(Duration::from_millis(50));
            assert!(!waiter.is_finished());
            cancel.set();
            assert!(!waiter.join().unwrap());
        });
    }
}

#[test]
fn release_and_break_end_a_wait() {
    let (_directory, engine) = place();
    let clients = [(); 3].map(|()| Client::new());
    clients[0].takes(&engine);
    thread::scope(|scope| {
        let first = scope.spawn(|| wait_for(&engine, &clients[1], &NEVER, false));
        thread::sleep(Duration::from_millis(50));
        clients[0].breaks(&engine);
        assert!(first.join().unwrap());
        let second = scope.spawn(|| wait_for(&engine, &clients[2], &NEVER, false));
        thread::sleep(Duration::from_millis(50));
        assert_eq!(clients[1].releases(&engine), Released::Done);
        assert!(second.join().unwrap());
    });
}
