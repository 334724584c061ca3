//! Crowds of processes in a directory, which tell in files what they do.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::directory_files::{IDLE, file_of, text_of, use_last_at};
use super::*;
use support::{hear, say};

const PLACE: &str = "TEST_PLACE";

/// Idle names, and how often each process is to use some.
const NAMES: u32 = 6;
const CYCLES: u32 = 400;

/// Locks names that were not used for days, as their files say.
#[allow(clippy::too_many_lines, reason = "one scene, step by step")]
pub(crate) fn use_idle_names() {
    let (url, place) = (arg(URL), arg(PLACE));
    let directory = Path::new(url.strip_prefix("file://").unwrap());
    let lock = Locker::open(&url).unwrap();
    let (mut files, mut trouble) = (HashSet::new(), Vec::new());
    let mut cycles = 0;
    // Some of the names have another file by then.
    while cycles < CYCLES || files.len() <= 2 * NAMES as usize {
        cycles += 1;
        let name = fastrand::u32(..NAMES).to_string();
        let guard = lock.lock(&name).unwrap();
        let (inside, last) = (
            Path::new(&place).join(format!("{name}.inside")),
            Path::new(&place).join(format!("{name}.token")),
        );
        if let Err(e) = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&inside)
        {
            trouble.push(format!("two have {name}: {e}"));
        }
        let before = fs::read_to_string(&last).unwrap_or_default();
        let (before, token) = (before.parse().unwrap_or(0), guard.fencing_token());
        if token <= before {
            trouble.push(format!("{name}: token {token} after {before}"));
        }
        let mut written = File::create(&last).unwrap();
        written.write_all(token.to_string().as_bytes()).unwrap();
        if let Err(e) = guard.verify() {
            trouble.push(format!("{name}: {e}"));
        }
        let file = file_of(directory, &name);
        match fs::metadata(&file) {
            Ok(found) => _ = files.insert((found.ino(), found.created().ok())),
            Err(e) => trouble.push(format!("{name} is held, and has no file: {e}")),
        }
        let _ = fs::remove_file(&inside);
        if let Err(e) = guard.unlock() {
            trouble.push(format!("{name}: {e}"));
        }
        grow_old(&file);
    }
    assert!(trouble.is_empty(), "{trouble:#?}");
    say("done");
}

pub(crate) fn open_again_and_again() {
    let url = arg(URL);
    loop {
        drop(Locker::open(&url).unwrap());
        // Others have the processor, too.
        thread::sleep(Duration::from_micros(200));
    }
}

fn grow_old(file: &Path) {
    let Ok(opened) = File::open(file) else {
        return;
    };
    opened.lock().unwrap();
    let is_there = fs::metadata(file).is_ok_and(|it| it.ino() == opened.metadata().unwrap().ino());
    // One that is made just now says nothing yet.
    if !is_there || !fs::read(file).unwrap().starts_with(b"crosslock") {
        return;
    }
    let text = text_of(file);
    let counter = text.strip_prefix("counter ");
    if let Some(counter) = counter.and_then(|counter| counter.trim_end().parse::<u64>().ok()) {
        use_last_at(file, counter.saturating_sub(IDLE), "");
    }
}

pub(crate) fn exchange_links() {
    let shared = PathBuf::from(arg(URL));
    let lure = shared.join("lure");
    let is_meant: fn(&[u8]) -> bool = match arg("TEST_WHAT").as_str() {
        "drafts" => |name| name.starts_with(b".") && !name.starts_with(b".door-"),
        _ => |name| name.ends_with(b"~"),
    };
    say("ready");
    let end = thread::spawn(|| while hear().is_some() {});
    let mut exchanges = 0;
    while !end.is_finished() {
        for entry in fs::read_dir(&shared).unwrap() {
            let name: OsString = entry.unwrap().file_name();
            if is_meant(name.as_encoded_bytes()) {
                exchanges += exchange(&lure, &shared.join(name));
            }
        }
    }
    say(&format!("exchanged {exchanges}"));
}

/// There, and back again where something is left to be exchanged.
fn exchange(lure: &Path, path: &Path) -> u32 {
    let exchange = || renameat_with(CWD, lure, CWD, path, RenameFlags::EXCHANGE).is_ok();
    if !exchange() {
        return 0;
    }
    thread::yield_now();
    exchange();
    1
}
