use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixListener;
use std::time::SystemTime;

use super::super::tests::{opened, temp_dir};
use super::*;
use crate::engine::file::create::{draft_name, is_draft};
use crate::engine::file::upkeep::{DRAFT_AGE, sweep};
use std::fs;
use std::path::Path;

fn make_fifo(dir: &Dir, name: &str) -> io::Result<()> {
    platform::make_fifo(dir, dir.path(), name)
}

const NOW: Option<Duration> = Some(Duration::ZERO);
const NONE: Woken = Woken {
    notified: false,
    ended: false,
};

/// What is in a directory.
fn count(directory: &Dir) -> usize {
    fs::read_dir(directory.path()).unwrap().count()
}

/// As a process leaves it that was killed.
fn door_without_a_process(dir: &Dir) -> PresenceId {
    let id = PresenceId::new();
    make_fifo(dir, &id.name()).unwrap();
    id
}

#[test]
fn what_is_no_fifo_is_gone_and_left_alone() {
    let dir = temp_dir();
    let dir = &opened(dir.path());
    let presence = Presence::make(dir).unwrap();
    let text = dir.path().join("text");
    fs::write(&text, "").unwrap();
    let plant: [fn(&Path, &Path); 5] = [
        |_, path| fs::write(path, "").unwrap(),
        |_, path| fs::create_dir(path).unwrap(),
        |_, path| drop(UnixListener::bind(path).unwrap()),
        |presence, path| symlink(presence, path).unwrap(),
        |presence, path| symlink(presence.with_file_name("text"), path).unwrap(),
    ];
    for plant in plant {
        let id = PresenceId::new();
        let path = dir.path().join(id.name());
        plant(&presence.path, &path);
        let before = fs::symlink_metadata(&path).unwrap();
        assert!(is_gone(dir, id).unwrap());
        notify(dir, id).unwrap();
        let left = count(dir);
        sweep(dir).unwrap();
        assert_eq!(count(dir), left);
        let after = fs::symlink_metadata(&path).unwrap();
        assert_eq!(after.ino(), before.ino());
        assert_eq!(after.len(), before.len());
    }
    assert_eq!(fs::read(text).unwrap(), b"");
    assert_eq!(sleep(&presence, &[], NOW).unwrap(), NONE);
}

#[test]
fn sweep_removes_what_crashes_have_left() {
    let dir = temp_dir();
    let dir = &opened(dir.path());
    let stays = Presence::make(dir).unwrap();
    door_without_a_process(dir);
    let draft = |is_old: bool| {
        let name = draft_name();
        make_fifo(dir, &name).unwrap();
        let open = dir.open_file(&name, OFlags::RDWR, 0).unwrap();
        let age = if is_old { 2 * DRAFT_AGE } else { DRAFT_AGE / 2 };
        open.set_modified(SystemTime::now() - age).unwrap();
        (dir.path().join(name), open)
    };
    let (young, old, in_use) = (draft(false), draft(true), draft(true));
    let file = dir.path().join(draft_name());
    fs::write(&file, "").unwrap();
    let (full, empty) = (draft_name(), draft_name());
    for name in [&full, &empty] {
        fs::create_dir(dir.path().join(name)).unwrap();
    }
    make_fifo(&dir.dir(full.as_ref()).unwrap().unwrap(), &full).unwrap();
    for left in [&file, &dir.path().join(&full), &dir.path().join(&empty)] {
        let left = fs::File::open(left).unwrap();
        left.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    }
    drop((young.1, old.1));
    sweep(dir).unwrap();
    assert!(stays.is_at_its_path().unwrap());
    assert!(young.0.exists() && in_use.0.exists() && !file.exists() && !old.0.exists());
    assert_eq!(count(dir), 3);
}

#[test]
fn ids_are_parsed_as_they_are_written() {
    let id = PresenceId::new();
    assert_eq!(PresenceId::parse(&id.to_string()), Some(id));
    let text = PresenceId(0xabc).to_string();
    for other in [
        &text[1..],
        &text.to_uppercase(),
        &format!("+{}", &text[1..]),
        &format!("0{text}"),
        "",
        "é",
    ] {
        assert_eq!(PresenceId::parse(other), None, "{other:?}");
    }
    assert!(is_draft(&draft_name()));
    assert!(!is_draft(&format!(".{text}")) && !is_draft(".breaking") && !is_draft("x"));
}
