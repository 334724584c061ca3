//! Children.

use std::panic::catch_unwind;
use std::path::Path;
use std::thread;

use super::*;
use support::{Child, wait_until};

#[test]
fn parent_and_child_talk() {
    let mut child = Child::spawn("echo", &[("GREETING", "good day")]);
    assert_eq!(child.wait_for("pid", PATIENCE), child.pid().to_string());
    assert_eq!(child.wait_for("greeting", PATIENCE), "good day");
    child.tell("one two");
    // Not in the order in which they were said.
    assert_eq!(child.wait_for("done", PATIENCE), "");
    assert!(child.has_said("heard"));
    assert_eq!(child.wait_for("heard", PATIENCE), "one two");
    assert!(!child.has_said("heard"));
    child.hang_up();
    assert!(child.wait(PATIENCE).success());
}

#[test]
fn silent_child_fails_the_wait_with_its_story() {
    let panic = catch_unwind(|| {
        let mut child = Child::spawn("echo", &[("GREETING", "good day")]);
        child.hang_up();
        child.wait_for("never", PATIENCE)
    });
    let story = *panic.unwrap_err().downcast::<String>().unwrap();
    assert!(story.contains("never") && story.contains("greeting good day"));
}

#[test]
fn killed_child_is_reaped() {
    let mut child = Child::spawn("echo", &[("GREETING", "")]);
    child.wait_for("greeting", PATIENCE);
    child.kill();
    assert!(!Path::new(&format!("/proc/{}", child.pid())).exists());
    assert!(!child.wait(PATIENCE).success());
}

#[test]
fn stopped_child_goes_on_when_continued() {
    let mut child = Child::spawn("echo", &[("GREETING", "")]);
    child.wait_for("greeting", PATIENCE);
    child.stop();
    child.tell("are you there");
    thread::sleep(SILENCE);
    assert!(!child.has_said("heard"));
    child.cont();
    assert_eq!(child.wait_for("heard", PATIENCE), "are you there");
}

#[test]
fn dropped_child_is_gone_even_if_stopped() {
    let mut child = Child::spawn("echo", &[("GREETING", "")]);
    child.wait_for("greeting", PATIENCE);
    child.stop();
    let pid = child.pid();
    drop(child);
    assert!(!is_running(pid));
}

#[test]
fn child_dies_with_its_parent() {
    let mut parent = Child::spawn("has a child", &[]);
    let pid = parent.wait_for("grandchild", PATIENCE).parse().unwrap();
    assert!(is_running(pid));
    parent.kill();
    wait_until("the grandchild to die", PATIENCE, || !is_running(pid));
}

#[test]
fn threads_begin_in_forked_children() {
    let mut child = Child::spawn("forks while threads begin and end", &[]);
    assert!(child.wait(6 * PATIENCE).success());
}
