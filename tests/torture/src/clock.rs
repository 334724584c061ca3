//! The clock of the servers, which can be moved: a small library, loaded into them, says what time it is.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use support::{Builder, RedisServer};

/// By how much it is ahead at first, which shows that the library is at work.
const AHEAD: Duration = Duration::from_secs(10);

/// The clock of the servers that were told of it.
#[derive(Debug)]
pub(crate) struct Clock {
    library: PathBuf,
    path: PathBuf,
    file: File,
    /// In nanoseconds.
    ahead: i64,
}

impl Clock {
    /// Builds the library, with the C compiler that links Rust programs, too.
    pub(crate) fn start(dir: &Path) -> io::Result<Self> {
        let (source, library) = (dir.join("clock.c"), dir.join("clock.so"));
        fs::write(&source, include_str!("clock.c"))?;
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-shared", "-fPIC", "-o"]);
        let output = compiler.args([&library, &source]).output()?;
        if !output.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&output.stderr)));
        }
        let path = dir.join("clock");
        let mut clock = Clock {
            file: File::create(&path)?,
            library,
            path,
            ahead: 0,
        };
        clock.forward(AHEAD)?;
        Ok(clock)
    }

    /// Has a server take its time from here.
    pub(crate) fn rule(&self, server: Builder) -> Builder {
        let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
        server
            .var("LD_PRELOAD", &text(&self.library))
            .var("CROSSLOCK_TORTURE_CLOCK", &text(&self.path))
    }

    /// Whether it does.
    pub(crate) fn rules(&self, server: &RedisServer) -> bool {
        let (seconds, _): (u64, u64) = server.query(&["TIME"]);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.expect("it is later than 1970").as_secs();
        seconds.abs_diff(now + AHEAD.as_secs()) <= 2
    }

    pub(crate) fn forward(&mut self, time: Duration) -> io::Result<()> {
        self.step(nanos(time))
    }

    pub(crate) fn back(&mut self, time: Duration) -> io::Result<()> {
        self.step(-nanos(time))
    }

    fn step(&mut self, nanos: i64) -> io::Result<()> {
        self.ahead += nanos;
        self.file.write_all_at(&self.ahead.to_ne_bytes(), 0)
    }
}

fn nanos(time: Duration) -> i64 {
    time.as_nanos().try_into().expect("no centuries")
}
