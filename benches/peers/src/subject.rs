//! The locks that are compared, behind one trait that blocks.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crosslock::{LockGuard, Locker};
use redis::{Connection, Script};
use redlock::{RedLock, RedLockGuard};
use rslock::LockManager;
use tokio::runtime::Runtime;

/// The pause that a poller makes at most, where it isn't the library's default.
const PAUSE: Duration = Duration::from_millis(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Crosslock,
    Rslock,
    RslockOften,
    Redlock,
    RedlockOften,
    Loop,
    CrosslockFile,
    Fs4,
}

/// A client of one lock.
pub trait Client {
    fn lock(&mut self);
    /// What the call tells the holder.
    fn unlock(&mut self) -> String;
}

impl Subject {
    pub const ALL: [Subject; 8] = [
        Subject::Loop,
        Subject::Crosslock,
        Subject::Rslock,
        Subject::RslockOften,
        Subject::Redlock,
        Subject::RedlockOften,
        Subject::CrosslockFile,
        Subject::Fs4,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Subject::Crosslock => "crosslock",
            Subject::Rslock => "rslock",
            Subject::RslockOften => "rslock, retry 5 ms",
            Subject::Redlock => "redlock",
            Subject::RedlockOften => "redlock, retry 5 ms",
            Subject::Loop => "SET NX PX loop, 5 ms",
            Subject::CrosslockFile => "crosslock, file:",
            Subject::Fs4 => "fs4",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Subject::ALL
            .into_iter()
            .find(|subject| subject.name() == name)
    }

    pub fn is_file(self) -> bool {
        matches!(self, Subject::CrosslockFile | Subject::Fs4)
    }

    /// What it is compared with: the least that does the same.
    pub fn floor(self) -> Self {
        if self.is_file() {
            Subject::Fs4
        } else {
            Subject::Loop
        }
    }

    /// `url`: where the locks are; of a peer, several with commas between them are a quorum.
    pub fn client(self, url: &str, directory: &Path, name: &str, ttl: Duration) -> Box<dyn Client> {
        let open = |url: &str| {
            let locker = Locker::builder(url).ttl(ttl).build();
            (locker.expect("an engine"), name.to_owned())
        };
        let (key, retry) = (
            name.as_bytes().to_vec(),
            u32::try_from(PAUSE.as_millis()).ok(),
        );
        match self {
            Subject::Crosslock => Box::new(Ours::new(open(url))),
            Subject::CrosslockFile => {
                Box::new(Ours::new(open(&format!("file://{}", directory.display()))))
            }
            Subject::Rslock => Box::new(Rslock::new(url, key, ttl, None)),
            Subject::RslockOften => Box::new(Rslock::new(url, key, ttl, Some(PAUSE))),
            Subject::Redlock => Box::new(Redlock::new(url, key, ttl, None)),
            Subject::RedlockOften => Box::new(Redlock::new(url, key, ttl, retry)),
            Subject::Loop => Box::new(Loop::new(url, name, ttl)),
            Subject::Fs4 => Box::new(Fs4::new(directory.join(format!("{name}.fs4")))),
        }
    }
}

struct Ours {
    locker: Locker,
    name: String,
    held: Option<LockGuard>,
}

impl Ours {
    fn new((locker, name): (Locker, String)) -> Self {
        let held = None;
        Ours { locker, name, held }
    }
}

impl Client for Ours {
    fn lock(&mut self) {
        self.held = Some(self.locker.lock(&self.name).expect("the lock"));
    }

    fn unlock(&mut self) -> String {
        match self.held.take().expect("held").unlock() {
            Ok(()) => "done".to_owned(),
            Err(e) => e.to_string(),
        }
    }
}

struct Rslock {
    runtime: Runtime,
    manager: LockManager,
    key: Vec<u8>,
    ttl: Duration,
    held: Option<rslock::LockGuard>,
}

impl Rslock {
    fn new(url: &str, key: Vec<u8>, ttl: Duration, retry: Option<Duration>) -> Self {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let mut manager = LockManager::new(url.split(',').collect());
        if let Some(retry) = retry {
            manager.set_retry(3, retry);
        }
        Rslock {
            runtime: runtime.enable_all().build().expect("a runtime"),
            manager,
            key,
            ttl,
            held: None,
        }
    }
}

impl Client for Rslock {
    fn lock(&mut self) {
        let acquired = self.manager.acquire(&self.key[..], self.ttl);
        self.held = Some(self.runtime.block_on(acquired).expect("the lock"));
    }

    fn unlock(&mut self) -> String {
        self.runtime
            .block_on(self.held.take().expect("held").release());
        "nothing".to_owned()
    }
}

struct Redlock {
    manager: &'static RedLock,
    key: Vec<u8>,
    ttl: usize,
    held: Option<RedLockGuard<'static>>,
}

impl Redlock {
    fn new(url: &str, key: Vec<u8>, ttl: Duration, retry: Option<u32>) -> Self {
        let mut manager = RedLock::new(url.split(',').collect());
        if let Some(retry) = retry {
            manager.set_retry(3, retry);
        }
        Redlock {
            // Its guards borrow it, and it is there to the end.
            manager: Box::leak(Box::new(manager)),
            key,
            ttl: usize::try_from(ttl.as_millis()).expect("a short time"),
            held: None,
        }
    }
}

impl Client for Redlock {
    fn lock(&mut self) {
        self.held = Some(self.manager.acquire(&self.key, self.ttl).expect("the lock"));
    }

    fn unlock(&mut self) -> String {
        drop(self.held.take().expect("held"));
        "nothing".to_owned()
    }
}

/// What many write by hand: SET NX PX, and a sleep when it is taken.
struct Loop {
    connection: Connection,
    release: Script,
    name: String,
    ttl: u64,
    owner: u64,
}

impl Loop {
    fn new(url: &str, name: &str, ttl: Duration) -> Self {
        let release = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
        Loop {
            connection: crate::server::connect(url),
            release: Script::new(release),
            name: name.to_owned(),
            ttl: u64::try_from(ttl.as_millis()).expect("a short time"),
            owner: u64::from(std::process::id()) << 32,
        }
    }
}

impl Client for Loop {
    fn lock(&mut self) {
        self.owner += 1;
        loop {
            let mut set = redis::cmd("SET");
            set.arg(&self.name)
                .arg(self.owner)
                .arg("NX")
                .arg("PX")
                .arg(self.ttl);
            let taken: Option<String> = set.query(&mut self.connection).expect("an answer");
            if taken.is_some() {
                return;
            }
            thread::sleep(PAUSE);
        }
    }

    fn unlock(&mut self) -> String {
        let mut call = self.release.key(&self.name);
        let deleted: u32 = call
            .arg(self.owner)
            .invoke(&mut self.connection)
            .expect("an answer");
        if deleted == 1 {
            "done"
        } else {
            "0 keys deleted"
        }
        .to_owned()
    }
}

/// It keeps its file open, as fd-lock does.
struct Fs4(File);

impl Fs4 {
    fn new(path: PathBuf) -> Self {
        let mut options = OpenOptions::new();
        let options = options.create(true).truncate(false).write(true);
        Fs4(options.open(path).expect("a file"))
    }
}

impl Client for Fs4 {
    fn lock(&mut self) {
        fs4::FileExt::lock(&self.0).expect("the lock");
    }

    fn unlock(&mut self) -> String {
        fs4::FileExt::unlock(&self.0).expect("unlocked");
        "done".to_owned()
    }
}
