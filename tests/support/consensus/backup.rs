//! An old state that a server comes back to.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::{Kind, Server};

/// What a server had on disk.
#[derive(Debug)]
pub struct Backup(TempDir);

impl<K: Kind> Server<K> {
    /// Copies what it has on disk; it is down for that moment.
    pub fn back_up(&self) -> Backup {
        self.kill();
        let copy = tempfile::tempdir().expect("make a directory");
        copy_all(&self.dir().join("data"), copy.path());
        self.restart();
        Backup(copy)
    }

    /// Comes back to that, as if nothing had been written since.
    pub fn roll_back(&self, backup: &Backup) {
        self.kill();
        let data = self.dir().join("data");
        fs::remove_dir_all(&data).expect("remove what it has");
        copy_all(backup.0.path(), &data);
        self.restart();
    }
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("make a directory");
    for entry in fs::read_dir(from)
        .expect("the directory is there")
        .flatten()
    {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy_all(&source, &target);
        } else {
            fs::copy(&source, &target).expect("copy a file");
        }
    }
}
