//! A program that cargo has built beside the tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

#[track_caller]
pub fn built_program(name: &str, sources: &[PathBuf], how: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its file");
    let folder = test.ancestors().nth(2).expect("it is in deps");
    let program = folder.join(name);
    let built = fs::metadata(&program).and_then(|found| found.modified());
    assert!(
        built.is_ok_and(|built| sources.iter().all(|source| newest(source) <= built)),
        "{} isn't there, or older than its sources: {how}",
        program.display()
    );
    program
}

fn newest(folder: &Path) -> SystemTime {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let times = entries.map(|entry| {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            return newest(&path);
        }
        let found = fs::metadata(&path).and_then(|found| found.modified());
        found.expect("a file has a time")
    });
    times.max().unwrap_or(SystemTime::UNIX_EPOCH)
}
