//! Another user who may write in the directory exchanges what a lock is about to use for what that user may not touch.

use std::os::unix::fs::{chown, symlink};
use std::process::Command;
use std::time::Instant;

use super::*;
use support::Child;

const ROLE: &str = "exchanges links";
/// What it exchanges: all drafts, or the parts of long names.
const WHAT: &str = "TEST_WHAT";
const LURE: &str = "lure";
const ATTACKER: u32 = 61_238;
/// So long an attacker tries. Without the cure some milliseconds were enough.
const ATTACK: Duration = Duration::from_secs(3);

/// A directory of a group, and one of root in which nobody else may do anything.
struct Scene {
    shared: TempDir,
    secret: TempDir,
}

impl Scene {
    /// `None`: only root can become another user.
    fn new() -> Option<Self> {
        if !may("become another user") {
            return None;
        }
        let (shared, secret) = (temp_dir(), temp_dir());
        chown(&shared, None, Some(ATTACKER)).unwrap();
        set_mode(shared.path(), 0o2770);
        fs::write(secret.path().join("file"), "secret").unwrap();
        set_mode(&secret.path().join("file"), 0o600);
        fs::create_dir(secret.path().join("directory")).unwrap();
        set_mode(&secret.path().join("directory"), 0o700);
        Some(Scene { shared, secret })
    }

    /// What the attacker puts into the place of others: a link, or what is root's alone, and stays open here.
    fn lure(&self, target: &str) -> fs::File {
        let lure = self.shared.path().join(LURE);
        let target = self.secret.path().join(target);
        match target.file_name().unwrap().to_str() {
            Some("fifo") => {
                let made = Command::new("mkfifo")
                    .args(["-m", "600"])
                    .arg(&lure)
                    .status();
                assert!(made.unwrap().success());
                let mut both = fs::OpenOptions::new();
                return both.read(true).write(true).open(&lure).unwrap();
            }
            Some("own directory") => {
                fs::create_dir(&lure).unwrap();
                set_mode(&lure, 0o700);
                fs::write(lure.join("file"), "secret").unwrap();
            }
            _ => symlink(target, &lure).unwrap(),
        }
        fs::File::open(lure).unwrap()
    }

    fn attack(&self, what: &str) -> Child {
        let args = [(URL, self.shared.path().to_str().unwrap()), (WHAT, what)];
        let mut attacker = Child::spawn_as(Some(ATTACKER), ROLE, &args);
        attacker.wait_for("ready", PATIENCE);
        attacker
    }

    /// What an attacker could have changed: rights and group of each, and what is there.
    fn secrets(&self, lure: &fs::File) -> Vec<String> {
        let found = ["", "file", "directory"].map(|name| self.secret.path().join(name));
        let found = found.map(|path| fs::symlink_metadata(&path).unwrap());
        let rights = |found: &fs::Metadata| format!("{:o} {}", found.mode(), found.gid());
        let mut all: Vec<_> = found.iter().map(rights).collect();
        // Whoever may write in a directory may remove what is there.
        all.push(rights(&lure.metadata().unwrap()));
        all.extend(names_in(self.secret.path()));
        all.extend(names_in(&self.secret.path().join("directory")));
        all
    }
}

/// Takes names, each of them new, for as long as the attacker tries.
fn attacked(what: &str, target: &str, name: impl Fn(u32) -> String) {
    let Some(scene) = Scene::new() else { return };
    let lure = scene.lure(target);
    let before = scene.secrets(&lure);
    let mut attacker = scene.attack(what);
    let lock = open(scene.shared.path());
    let (begun, mut taken, mut refused) = (Instant::now(), 0, 0);
    while begun.elapsed() < ATTACK {
        match lock.try_lock(&name(taken + refused)) {
            Ok(Some(guard)) => {
                // The next one makes a door of its own.
                drop(guard.lock_files());
                taken += 1;
            }
            Ok(None) => panic!("nobody else takes a lock"),
            Err(_) => refused += 1,
        }
        if scene.secrets(&lure) != before {
            break;
        }
    }
    attacker.hang_up();
    let exchanges = attacker.wait_for("exchanged", PATIENCE);
    println!("{what}: {taken} taken, {refused} refused, {exchanges} exchanged");
    assert_eq!(scene.secrets(&lure), before, "after {:?}", begun.elapsed());
    assert_ne!(exchanges, "0");
}

#[test]
fn draft_of_a_part_that_is_exchanged_gives_nobody_rights() {
    for target in ["file", "directory", "own directory"] {
        attacked("drafts", target, |n| format!("{n}-{}", "x".repeat(250)));
    }
}

#[test]
fn draft_of_a_door_that_is_exchanged_gives_nobody_rights() {
    attacked("drafts", "fifo", |n| n.to_string());
}

#[test]
fn part_of_a_name_that_is_exchanged_for_a_link_leads_nowhere_else() {
    attacked("parts", "", |n| format!("{}{n}", "x".repeat(250)));
}
