use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::super::tests::{opened, temp_dir};
use super::*;
use crate::base::cancel::Cancel;
use crate::base::random::{WORD, for_any};
use std::path::Component;
use std::thread;
use std::time::Instant;

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(20);

fn long() -> Deadline {
    Deadline::after(LONG)
}

fn open(directory: &Path) -> NameFile {
    NameFile::open(&opened(directory), "x.lock".as_ref()).unwrap()
}

fn enter<'a>(file: &'a NameFile, deadline: &Deadline) -> Section<'a> {
    let section = file.section(LockMode::Urgent, deadline).unwrap();
    section.expect("it is at its path")
}

fn is_late(file: &NameFile, deadline: &Deadline) -> bool {
    let section = file.section(LockMode::Urgent, deadline);
    section.is_err_and(|e| e.kind() == ErrorKind::TimedOut)
}

/// What a state file of a test holds.
fn text(section: &mut Section<'_>) -> String {
    match section.read().unwrap().expect("it is ours") {
        Found::Fresh | Found::Cut => String::new(),
        Found::Text { text, .. } => text,
    }
}

fn increment(file: &NameFile) {
    let mut section = enter(file, &long());
    let count: u32 = text(&mut section).parse().unwrap_or(0);
    section.write(&(count + 1).to_string()).unwrap();
}

#[test]
fn one_thread_of_all_files_is_in_a_section() {
    const EACH: usize = 200;
    let dir = temp_dir();
    let files = [open(dir.path()), open(dir.path())];
    thread::scope(|scope| {
        for thread in 0..4 {
            let file = &files[thread % 2];
            scope.spawn(move || (0..EACH).for_each(|_| increment(file)));
        }
    });
    let mut section = enter(&files[0], &long());
    let count = text(&mut section);
    assert_eq!(count, (4 * EACH).to_string());
}

#[test]
fn section_is_waited_for_until_the_deadline() {
    let dir = temp_dir();
    let (one, other) = (open(dir.path()), open(dir.path()));
    let section = enter(&one, &long());
    // A thread that has the same file open, and one that doesn't.
    for file in [&one, &other] {
        let began = Instant::now();
        assert!(is_late(file, &Deadline::after(SHORT)));
        assert!(began.elapsed() >= SHORT);
        assert!(is_late(file, &Deadline::after(Duration::ZERO)));
        let cancel = Cancel::default();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| is_late(file, &Deadline::NEVER.or(&cancel)));
            cancel.set();
            assert!(waiter.join().unwrap());
        });
    }
    thread::scope(|scope| {
        let waiters = [&one, &other].map(|file| scope.spawn(|| drop(enter(file, &long()))));
        drop(section);
        for waiter in waiters {
            waiter.join().unwrap();
        }
    });
    drop(enter(&one, &Deadline::after(Duration::ZERO)));
    drop(enter(&other, &Deadline::after(Duration::ZERO)));
}

#[test]
fn section_ends_though_its_descriptor_has_copies() {
    let dir = temp_dir();
    let file = open(dir.path());
    let section = enter(&file, &long());
    let _copy = file.file.try_clone().unwrap();
    drop(section);
    drop(enter(&open(dir.path()), &Deadline::after(Duration::ZERO)));
}

#[test]
fn panic_ends_a_section() {
    let dir = temp_dir();
    let file = open(dir.path());
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _section = enter(&file, &long());
        panic!("in a section");
    }));
    assert!(panicked.is_err());
    drop(enter(&file, &Deadline::after(Duration::ZERO)));
    drop(enter(&open(dir.path()), &Deadline::after(Duration::ZERO)));
}

#[test]
fn file_that_is_not_at_its_path_is_replaced() {
    let dir = temp_dir();
    let file = open(dir.path());
    let moved = dir.path().join("moved");
    let is_replaced = || {
        let section = file.section(LockMode::Urgent, &long()).unwrap();
        section.is_none()
    };
    assert!(!is_replaced());
    fs::rename(&file.path, &moved).unwrap();
    assert!(is_replaced());
    assert!(!file.path.exists());
    let other = open(dir.path());
    assert!(is_replaced());
    // Neither is in a section.
    drop(enter(&other, &Deadline::after(Duration::ZERO)));
    fs::remove_file(&file.path).unwrap();
    std::os::unix::fs::symlink(&moved, &file.path).unwrap();
    assert!(is_replaced());
    assert!(NameFile::open(&opened(dir.path()), "x.lock".as_ref()).is_err());
    fs::rename(&moved, &file.path).unwrap();
    assert!(!is_replaced());
}

#[test]
fn one_in_some_stays_awake_after_it_was_in_vain() {
    let spin_budget = SpinBudget::default();
    let tries = |count: u32| {
        let paid = (0..count).filter(|_| {
            let pays = spin_budget.pays();
            spin_budget.sleeps();
            pays
        });
        paid.count()
    };
    assert_eq!(tries(UNLUCKY), 2);
    assert_eq!(tries(10 * SELDOM), 10);
    spin_budget.served();
    assert!(spin_budget.pays());
}

fn key(namespace: &str, name: &str) -> Key {
    Key::new(&Namespace::new(namespace).unwrap(), name).unwrap()
}

#[test]
fn file_names_are_injective_short_and_inside_the_directory() {
    for_any(|random| {
        let (namespace, name) = (random.text_of(WORD, 0..=64), random.text(1..=128));
        let key = key(&namespace, &name);
        let path = file_name(&key);
        // Which can only be told when it is injective.
        assert_eq!(
            key_of(&Namespace::new(&namespace).unwrap(), &path),
            Some(key)
        );
        for part in path.components() {
            assert!(
                matches!(part, Component::Normal(p) if p.len() <= 255),
                "{:?}",
                part
            );
        }
        let text = path.to_str().unwrap();
        assert_eq!(text.to_lowercase(), text);
    });
}

#[test]
fn longest_name_has_short_parts() {
    let path = file_name(&key("x", &"\u{ff}".repeat(256)));
    assert!(path.iter().count() > 5 && path.iter().all(|part| part.len() <= 255));
}

#[test]
fn other_files_have_no_name() {
    let namespace = Namespace::new("x").unwrap();
    for path in [
        "",
        "a",
        "x+a",
        "x+.lock",
        "x+A.lock",
        "x+%41%.lock",
        "x+%4.lock",
        "x+%zz.lock",
        "y+a.lock",
        "x+a.value",
        "x+%ff.lock",
        "x+%61.lock",
        "x+a.lock/b",
        "x+a~/b.lock",
        ".breaking",
    ] {
        assert_eq!(key_of(&namespace, Path::new(path)), None, "{path}");
    }
    let key = key_of(&namespace, Path::new("x+%41.lock"));
    assert_eq!(key.unwrap().name(), "A");
}
