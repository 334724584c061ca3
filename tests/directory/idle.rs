//! Files of idle names are removed while others come to use these names.

use std::collections::HashSet;
use std::env;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::thread;

use crosslock::Locker;

use super::limits::{IDLE, use_last_at};
use super::*;
use support::{Child, is_child, say};

const PLACE: &str = "TEST_PLACE";
const NAMES: u32 = 6;
const USERS: usize = 2;
const OPENERS: usize = 1;
/// Of each.
const CYCLES: u32 = 400;

/// Locks names that were not used for days, as their files say.
#[test]
fn child_uses_idle_names() {
    if !is_child("idle::child_uses_idle_names") {
        return;
    }
    let (url, place) = (env::var(URL).unwrap(), env::var(PLACE).unwrap());
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
        let mut written = fs::File::create(&last).unwrap();
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

/// Has a name that nobody has look idle.
fn grow_old(file: &Path) {
    let Ok(opened) = OpenOptions::new().read(true).write(true).open(file) else {
        return;
    };
    opened.lock().unwrap();
    let is_there = fs::metadata(file).is_ok_and(|it| it.ino() == opened.metadata().unwrap().ino());
    let mut page = [0; 4096];
    let read = opened.read_at(&mut page, 0).unwrap();
    let text = String::from_utf8_lossy(&page[..read]);
    let Some((head, text)) = text.split_once('\n') else {
        return;
    };
    let length = head
        .split("len=")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let length = length.and_then(|length| length.parse().ok()).unwrap_or(0);
    let text = text.get(..length).unwrap_or_default();
    let counter = text
        .strip_prefix("counter ")
        .and_then(|rest| rest.strip_suffix('\n'));
    let counter = counter.and_then(|counter| counter.parse::<u64>().ok());
    if let Some(counter) = counter.filter(|_| is_there) {
        use_last_at(file, counter.saturating_sub(IDLE), "");
    }
}

#[test]
fn child_opens_again_and_again() {
    if !is_child("idle::child_opens_again_and_again") {
        return;
    }
    let url = env::var(URL).unwrap();
    loop {
        drop(Locker::open(&url).unwrap());
        // Others have the processor, too.
        thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn removal_of_idle_files_gives_nobody_a_lock_or_a_token_twice() {
    let (directory, elsewhere) = (temp_dir(), temp_dir());
    let (url, place) = (url(directory.path()), elsewhere.path().to_str().unwrap());
    let start = |entry| Child::spawn(entry, &[(URL, &url), (PLACE, place)]);
    let openers: Vec<_> = (0..OPENERS)
        .map(|_| start("idle::child_opens_again_and_again"))
        .collect();
    let mut users: Vec<_> = (0..USERS)
        .map(|_| start("idle::child_uses_idle_names"))
        .collect();
    for user in &mut users {
        user.wait_for("done", 4 * PATIENCE);
    }
    drop(openers);
}
