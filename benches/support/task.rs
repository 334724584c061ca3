//! What the processes of a bench do with a lock, and what they tell of it.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::time::Duration;

use crosslock::{LockGuard, Locker, Prefer};

use super::worker::bytes;

/// What a worker does in a loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) way: Way,
    pub(crate) prefer: Prefer,
    pub(crate) hold: Duration,
    pub(crate) inside: Inside,
    /// How often it comes; zero: again at once.
    pub(crate) every: Duration,
}

/// How it takes the lock.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    Lock,
    Read,
    Write,
    /// For [`TIMED`] at most, and so often only.
    Timed,
    /// By flock(2), of the file that the name says; without a token.
    Flock,
}

/// What it does as long as it holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Inside {
    Sleep,
    /// Keeps its processor.
    Spin,
    /// Adds one to the number in a file of the locks' directory, and sleeps.
    Count,
}

/// How often somebody comes who waits for a limited time, and for how long.
pub(crate) const TIMED: (usize, Duration) = (12, Duration::from_millis(1500));

/// One acquisition. Times are of the clock that all processes of a host share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cycle {
    pub(crate) token: u64,
    pub(crate) asked: Duration,
    /// From before the first to after the last moment at which it was held.
    pub(crate) held: [Duration; 2],
}

impl Task {
    pub(super) fn to_args(self) -> [String; 5] {
        let [way, prefer] = [format!("{:?}", self.way), format!("{:?}", self.prefer)];
        let [hold, every] = [self.hold, self.every].map(|time| time.as_micros().to_string());
        [way, prefer, hold, every, format!("{:?}", self.inside)]
    }

    pub(super) fn from_args(args: &[String]) -> Self {
        let [way, prefer, hold, every, inside] = args else {
            panic!("a worker's five arguments, not {args:?}");
        };
        let [hold, every] =
            [hold, every].map(|time| Duration::from_micros(time.parse().expect("microseconds")));
        let way = match way.as_str() {
            "Read" => Way::Read,
            "Write" => Way::Write,
            "Timed" => Way::Timed,
            "Flock" => Way::Flock,
            _ => Way::Lock,
        };
        let prefer = match prefer.as_str() {
            "Readers" => Prefer::Readers,
            "Writers" => Prefer::Writers,
            _ => Prefer::Fair,
        };
        let inside = match inside.as_str() {
            "Spin" => Inside::Spin,
            "Count" => Inside::Count,
            _ => Inside::Sleep,
        };
        Task {
            way,
            prefer,
            hold,
            inside,
            every,
        }
    }
}

impl Way {
    pub(super) fn take(self, lock: &Locker, name: &str) -> Held {
        let taken = match self {
            Way::Lock => lock.lock(name),
            Way::Read => lock.read(name),
            Way::Write => lock.write(name),
            Way::Timed => {
                let taken = lock.try_lock_for(name, TIMED.1).expect("an answer");
                return taken.map_or(Held::Nothing, Held::Lease);
            }
            Way::Flock => {
                let file = open(Path::new(name));
                file.lock().expect("the lock");
                return Held::File(file);
            }
        };
        Held::Lease(taken.expect("the lock"))
    }
}

/// What it got.
pub(super) enum Held {
    Lease(LockGuard),
    File(File),
    Nothing,
}

impl Held {
    pub(super) fn token(&self) -> u64 {
        match self {
            Held::Lease(guard) => guard.fencing_token(),
            Held::File(_) | Held::Nothing => 0,
        }
    }

    pub(super) fn release(self) {
        match self {
            // On a machine that is busy with other work, no answer may come in time.
            Held::Lease(guard) => guard.unlock().unwrap_or_else(|e| eprintln!("{e}")),
            Held::File(file) => file.unlock().expect("our lock"),
            Held::Nothing => {}
        }
    }
}

impl Cycle {
    pub(crate) fn waited(&self) -> Duration {
        self.held[0] - self.asked
    }

    pub(super) fn write(&self) -> Vec<u8> {
        let times = [self.asked, self.held[0], self.held[1]];
        [self.token.to_le_bytes()]
            .into_iter()
            .chain(times.map(bytes))
            .flatten()
            .collect()
    }

    pub(super) fn read(log: &[u8; 32]) -> Self {
        let mut numbers = log
            .as_chunks::<8>()
            .0
            .iter()
            .copied()
            .map(u64::from_le_bytes);
        let mut next = || numbers.next().expect("four numbers");
        Cycle {
            token: next(),
            asked: Duration::from_nanos(next()),
            held: [next(), next()].map(Duration::from_nanos),
        }
    }
}

impl Default for Cycle {
    fn default() -> Self {
        Cycle {
            token: u64::MAX,
            asked: Duration::MAX,
            held: [Duration::MAX; 2],
        }
    }
}

pub(super) fn open(path: &Path) -> File {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false);
    file.open(path).expect("a file")
}
