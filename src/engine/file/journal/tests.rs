use super::super::page::BootId;
use super::*;
use crate::base::{Due, IfExists, NewTask, Policy, TaskAnswer, TaskCall, TaskCounts};

const SECOND: Duration = Duration::from_secs(1);

fn file() -> File {
    tempfile::tempfile().unwrap()
}

fn text(file: &File) -> String {
    let mut text = vec![0; file.metadata().unwrap().len().try_into().unwrap()];
    file.read_exact_at(&mut text, 0).unwrap();
    String::from_utf8(text).unwrap()
}

/// One that has read the file.
fn read(file: &File) -> io::Result<Journal> {
    let mut journal = Journal::default();
    journal.read(file).map(|()| journal)
}

fn insert(id: &str, due: Due) -> Step {
    let task = NewTask {
        id,
        payload: b"{\"to\":\"ada\"}",
        due,
        policy: Policy {
            tries: 3,
            base: SECOND,
            cap: 60 * SECOND,
            remember: SECOND,
        },
        if_exists: IfExists::Replace,
    };
    let tasks = &[task];
    let call = TaskCall::Insert {
        tasks,
        nonce: Some("n"),
    };
    Step::of(call, 0).unwrap().unwrap()
}

fn ask(owner: &str) -> Step {
    Step::Ask {
        owner: owner.into(),
        waits: true,
    }
}

#[test]
fn new_file_in_place_of_a_long_one_has_the_same_queue() {
    let (old, mut journal) = (file(), Journal::default());
    journal
        .change(&old, insert("a", Due::After(SECOND)))
        .unwrap();
    assert_eq!(journal.shortened().unwrap(), None);
    while journal.shortened().unwrap().is_none() {
        journal.change(&old, ask("1 x")).unwrap();
    }
    let new = file();
    new.write_all_at(&journal.shortened().unwrap().unwrap(), 0)
        .unwrap();
    journal.tasks.take_called();
    let mut again = read(&new).unwrap();
    assert_eq!((&again.tasks, again.last), (&journal.tasks, journal.last));
    assert!(again.read < journal.read / 10);
    // And it goes on.
    again.change(&new, Step::Remove("a".to_owned())).unwrap();
    assert_eq!(read(&new).unwrap().tasks, again.tasks);
}

#[test]
fn line_that_was_cut_short_was_never_done_and_is_written_over() {
    let (file, mut journal) = (file(), Journal::default());
    for id in ["a", "b"] {
        journal
            .change(&file, insert(id, Due::After(SECOND)))
            .unwrap();
    }
    let whole = text(&file);
    let last = whole.trim_end().rfind('\n').unwrap() + 1;
    for length in last..whole.len() {
        file.set_len(length as u64).unwrap();
        let mut other = read(&file).unwrap();
        assert_eq!(counts(&mut other).delayed, 1, "{length} bytes");
        other
            .change(&file, insert("c", Due::After(SECOND)))
            .unwrap();
        assert_eq!(counts(&mut read(&file).unwrap()).delayed, 2);
        file.set_len(0).unwrap();
        file.write_all_at(whole.as_bytes(), 0).unwrap();
    }
}

fn counts(journal: &mut Journal) -> TaskCounts {
    match journal.tasks.call(TaskCall::Counts, 0, 0) {
        TaskAnswer::Counts(counts) => counts,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_others_have_written_is_refused() {
    let (file, mut journal) = (file(), Journal::default());
    journal
        .change(&file, insert("a", Due::After(SECOND)))
        .unwrap();
    let good = text(&file);
    let head = good.lines().next().unwrap();
    for bad in [
        "something else\n".to_owned(),
        "{}\n".to_owned(),
        head.replace("tasks 1", "tasks 2") + "\n",
        format!("{good}something else\n"),
        format!("{good}{{\"at\":1,\"change\":{{\"remove\":\"a\"}}}}\n"),
        format!(
            "{good}{{\"at\":{},\"change\":{{\"remove\":\"a\"}}}}\n",
            u64::MAX
        ),
    ] {
        file.set_len(0).unwrap();
        file.write_all_at(bad.as_bytes(), 0).unwrap();
        assert_eq!(
            read(&file).unwrap_err().kind(),
            ErrorKind::InvalidData,
            "{bad}"
        );
    }
    file.set_len(LONGEST + 1).unwrap();
    assert_eq!(read(&file).unwrap_err().kind(), ErrorKind::InvalidData);
}

#[test]
fn what_a_power_cut_has_left_is_dropped() {
    let (file, mut journal) = (file(), Journal::default());
    journal
        .change(&file, insert("a", Due::After(SECOND)))
        .unwrap();
    let boot = String::from_utf8_lossy(&BootId::current().0).into_owned();
    let of_another_boot = text(&file).replace(&boot, "another1");
    file.write_all_at(of_another_boot.as_bytes(), 0).unwrap();
    let end = of_another_boot.len() as u64;
    file.write_all_at(b"\0\0\0\0\n\0\0\n", end).unwrap();
    let mut journal = read(&file).unwrap();
    assert_eq!(counts(&mut journal).delayed, 1);
    let before = journal.now();
    journal.change(&file, ask("1 x")).unwrap();
    let mut again = read(&file).unwrap();
    assert!(again.clock.is_of_this_boot() && again.now() >= before);
    assert_eq!(counts(&mut again).delayed, 1);
}

/// A journal as it was written once, and behind it the queue that it makes: whoever changes the rules, so that it makes
/// another one, changes the format.
#[test]
fn journal_of_this_format_makes_the_queue_that_it_always_made() {
    let (journal, queue) = include_str!("tests/format-1.tasks")
        .trim_end()
        .rsplit_once('\n')
        .unwrap();
    let file = file();
    file.write_all_at(format!("{journal}\n").as_bytes(), 0)
        .unwrap();
    let made = read(&file).unwrap().head_line().unwrap();
    assert_eq!(String::from_utf8(made).unwrap().trim_end(), queue);
}
