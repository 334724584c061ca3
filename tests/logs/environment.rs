//! Where locks live when nothing says so.

use std::process::Command;

use crosslock::Locker;

use super::{lines_with, listen};
use support::is_child;

const VARIABLE: &str = "CROSSLOCK_URL";
const ENTRY: &str = "environment::child_opens_what_the_environment_says";

#[test]
fn child_opens_what_the_environment_says() {
    if !is_child(ENTRY) {
        return;
    }
    listen();
    let opened = Locker::from_env();
    for line in lines_with("") {
        println!("{}: {}", line.level, line.text);
    }
    println!("opened: {}", opened.is_ok());
}

/// What a process says that opens a locker with the variable, or without.
fn said(url: Option<&str>) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", ENTRY, "--nocapture"]);
    child
        .env("CROSSLOCK_CHILD", ENTRY)
        .env("CROSSLOCK_CHILD_OF", std::process::id().to_string());
    match url {
        Some(url) => child.env(VARIABLE, url),
        None => child.env_remove(VARIABLE),
    };
    String::from_utf8(child.output().unwrap().stdout).unwrap()
}

#[cfg(feature = "file")]
#[test]
fn variable_that_is_not_set_is_warned_of_with_the_directory() {
    let said = said(None);
    assert!(said.contains("opened: true"), "{said}");
    let warning = said.lines().find(|line| line.contains(VARIABLE));
    let warning = warning.unwrap_or_else(|| panic!("{said}"));
    assert!(warning.starts_with("WARN"), "{warning}");
    assert!(warning.contains("file:///tmp/crosslock-"), "{warning}");
}

#[test]
fn variable_that_is_set_is_not_warned_of() {
    let said = said(Some("memory:"));
    assert!(said.contains("opened: true"), "{said}");
    assert!(!said.contains("WARN"), "{said}");
}
