//! Locks of files and of commands, which only `benches/record.sh` compares.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::subject::Client;
use crate::worker::Lock;

fn open(path: &Path) -> File {
    let mut options = OpenOptions::new();
    let options = options.create(true).truncate(false).write(true);
    options.open(path).expect("a file")
}

/// flock(2), through `File` of `std`.
pub struct Flock(File);

impl Flock {
    pub fn new(path: &Path) -> Self {
        Flock(open(path))
    }
}

impl Client for Flock {
    fn lock(&mut self) {
        self.0.lock().expect("the lock");
    }

    fn unlock(&mut self) -> String {
        self.0.unlock().expect("unlocked");
        "done".to_owned()
    }
}

pub struct FdLock(fd_lock::RwLock<File>);

impl FdLock {
    pub fn new(path: &Path) -> Self {
        FdLock(fd_lock::RwLock::new(open(path)))
    }
}

impl Lock for FdLock {
    fn with(&mut self, held: &mut dyn FnMut()) {
        let _guard = self.0.write().expect("the lock");
        held();
    }
}

/// A program that runs a command under a lock. The command says that it runs, and ends when its input does.
pub struct Program {
    words: Vec<String>,
    child: Option<Child>,
}

impl Program {
    /// `words`: the program and its arguments in front of the command.
    pub fn new(words: &[&str]) -> Self {
        let words = words.iter().chain(&["sh", "-c", "echo; read _"]);
        Program {
            words: words.map(|word| (*word).to_owned()).collect(),
            child: None,
        }
    }
}

impl Client for Program {
    fn lock(&mut self) {
        let mut child = Command::new(&self.words[0])
            .args(&self.words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a program");
        let output = child.stdout.as_mut().expect("a pipe");
        output
            .read_exact(&mut [0])
            .expect("a command under the lock");
        self.child = Some(child);
    }

    fn unlock(&mut self) -> String {
        // `wait` closes the input first. `read` fails at its end, so the status says nothing.
        self.child.take().expect("held").wait().expect("its end");
        "done".to_owned()
    }
}
