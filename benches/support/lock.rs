//! Locks of any kind behind one trait, and what their cycles take.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

use crosslock::{LockGuard, Locker, Prefer};

use super::table::{Round, Subject};
use super::worker::TIMED;

/// One lock, as one thread uses it.
pub(crate) trait Lock {
    /// Gives the fencing token, or 0 where there is none; nothing if it waited for a limited time, and that is over.
    fn lock(&mut self) -> Option<u64>;

    /// Says what the holder is told.
    fn unlock(&mut self) -> Cow<'static, str>;
}

/// The locks of a place, by their names.
pub(crate) type Opened = Box<dyn Fn(&str) -> Box<dyn Lock> + Sync>;

/// Opens a place of crosslock. `kind`: how locks are taken there, or `Flock`, by flock(2) of the file that is named.
pub(super) fn open(kind: &str, prefer: Prefer, url: &str) -> Opened {
    if kind == "Flock" {
        return Box::new(|path| Box::new(Flock::new(path.into())));
    }
    let take: fn(&Locker, &str) -> crosslock::Result<Option<LockGuard>> = match kind {
        "Lock" => |locker, name| locker.lock(name).map(Some),
        "Read" => |locker, name| locker.read(name).map(Some),
        "Write" => |locker, name| locker.write(name).map(Some),
        "Timed" => |locker, name| locker.try_lock_for(name, TIMED.1),
        _ => panic!("nothing is locked by {kind}"),
    };
    let locker = Locker::builder(url).prefer(prefer).build();
    let locker = locker.expect("a place of locks");
    Box::new(move |name| {
        let (locker, name) = (locker.clone(), name.to_owned());
        let take = move || {
            let guard = take(&locker, &name).expect("the lock")?;
            Some((guard.fencing_token(), guard))
        };
        Box::new(Held::new(take, LockGuard::unlock))
    })
}

/// A lock of that name, taken by `lock`.
pub(crate) fn ours(url: &str, name: &str) -> Box<dyn Lock> {
    open("Lock", Prefer::Fair, url)(name)
}

/// Times so many cycles in each round: `lock us`, `unlock us`, and both, `cycle us`.
pub(crate) fn timed<'a>(name: &str, count: usize, lock: impl Lock + 'a) -> Subject<'a> {
    Subject::new(name, cycles(count, lock))
}

/// What such a subject does in a round.
pub(crate) fn cycles(count: usize, mut lock: impl Lock) -> impl FnMut() -> Round {
    move || {
        let mut round = Round::default();
        for _ in 0..count {
            let start = Instant::now();
            lock.lock();
            let locked = start.elapsed();
            let told = lock.unlock();
            let whole = start.elapsed();
            round.micros("lock us", locked);
            round.micros("unlock us", whole - locked);
            round.micros("cycle us", whole);
            say(told);
        }
        round
    }
}

/// On a machine that is busy with other work, no answer may come in time.
pub(super) fn say(told: Cow<'static, str>) {
    if let Cow::Owned(trouble) = told {
        eprintln!("{trouble}");
    }
}

impl<L: Lock + ?Sized> Lock for Box<L> {
    fn lock(&mut self) -> Option<u64> {
        (**self).lock()
    }

    fn unlock(&mut self) -> Cow<'static, str> {
        (**self).unlock()
    }
}

/// One of crosslock, by a call that gives a guard.
pub(crate) struct Held<T, G> {
    take: T,
    release: fn(G) -> crosslock::Result<()>,
    guard: Option<G>,
}

impl<G, T: FnMut() -> Option<(u64, G)>> Held<T, G> {
    /// `take` gives the token and the guard.
    pub(crate) fn new(take: T, release: fn(G) -> crosslock::Result<()>) -> Self {
        Held {
            take,
            release,
            guard: None,
        }
    }
}

impl<G, T: FnMut() -> Option<(u64, G)>> Lock for Held<T, G> {
    fn lock(&mut self) -> Option<u64> {
        let (token, guard) = (self.take)()?;
        self.guard = Some(black_box(guard));
        Some(token)
    }

    fn unlock(&mut self) -> Cow<'static, str> {
        let guard = self.guard.take().expect("a guard");
        match (self.release)(guard) {
            Ok(()) => "done".into(),
            Err(e) => e.to_string().into(),
        }
    }
}

/// What flock(1) does: it opens the file, locks, unlocks and closes.
struct Flock {
    path: PathBuf,
    held: Option<File>,
}

impl Flock {
    fn new(path: PathBuf) -> Self {
        Flock { path, held: None }
    }
}

impl Lock for Flock {
    fn lock(&mut self) -> Option<u64> {
        let file = open_file(&self.path);
        file.lock().expect("the lock");
        self.held = Some(file);
        Some(0)
    }

    fn unlock(&mut self) -> Cow<'static, str> {
        let file = self.held.take().expect("a file");
        file.unlock().expect("our lock");
        "done".into()
    }
}

pub(super) fn open_file(path: &std::path::Path) -> File {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false);
    file.open(path).expect("a file")
}
