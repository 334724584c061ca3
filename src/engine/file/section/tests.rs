use super::super::tests::{opened, temp_dir};
use super::*;
use crate::base::cancel::Cancel;
use crate::base::random::{WORD, for_any};
use std::path::Component;
use std::thread;

fn open(directory: &Path) -> NameFile {
    NameFile::open(&opened(directory), "x.lock".as_ref()).unwrap()
}

fn is_late(file: &NameFile, deadline: &Deadline) -> bool {
    let section = file.section(LockMode::Urgent, deadline);
    section.is_err_and(|e| e.kind() == ErrorKind::TimedOut)
}

#[test]
fn wait_for_a_section_ends_at_its_deadline_and_by_a_cancel() {
    let dir = temp_dir();
    let (one, other) = (open(dir.path()), open(dir.path()));
    let _section = one.section(LockMode::Urgent, &Deadline::NEVER).unwrap();
    let cancel = Cancel::default();
    // A thread that has the same file open, and one that doesn't.
    for file in [&one, &other] {
        assert!(is_late(file, &Deadline::after(Duration::from_millis(20))));
        thread::scope(|scope| {
            let waiter = scope.spawn(|| is_late(file, &Deadline::NEVER.or(&cancel)));
            cancel.set();
            assert!(waiter.join().unwrap());
        });
    }
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
