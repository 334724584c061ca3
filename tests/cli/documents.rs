//! `completions` and `man`.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::tool::Place;

const VERBS: [&str; 10] = [
    "elect",
    "leader",
    "ls",
    "show",
    "break",
    "watch",
    "doctor",
    "bench",
    "completions",
    "man",
];

#[test]
fn bash_understands_its_completions() {
    let place = Place::with_files();
    let script = place.tool("completions bash").done().out;
    for verb in VERBS {
        assert!(script.contains(verb), "{verb}");
    }
    let mut bash = Command::new("bash");
    let mut bash = bash
        .arg("-n")
        .stdin(Stdio::piped())
        .spawn()
        .expect("start bash");
    let mut stdin = bash.stdin.take().expect("it is piped");
    stdin.write_all(script.as_bytes()).expect("bash reads");
    drop(stdin);
    assert!(bash.wait().expect("bash ends").success());
}

#[test]
fn each_shell_has_completions_and_no_other() {
    let place = Place::with_files();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let done = place.tool(&format!("completions {shell}")).ends(0);
        assert!(done.out.contains("doctor"), "{shell}");
    }
    place.tool("completions csh").ends(64);
}

#[test]
fn manual_page_has_each_verb_once() {
    let place = Place::with_files();
    let page = place.tool("man").done().out;
    assert!(page.contains(".TH crosslock 1"), "{page}");
    for verb in VERBS {
        let heads = page.lines().filter(|line| *line == format!(".SS {verb}"));
        assert_eq!(heads.count(), 1, "{verb}");
    }
    for section in [
        "NAME",
        "SYNOPSIS",
        "OPTIONS",
        "VERBS",
        "ENVIRONMENT",
        "FILES",
    ] {
        let heads = page
            .lines()
            .filter(|line| *line == format!(".SH {section}"));
        assert_eq!(heads.count(), 1, "{section}");
    }
    assert!(page.contains(".SH \"EXIT STATUS\""));
    // What begins with a point is a request, and each one here is known.
    let requests = page
        .lines()
        .filter_map(|line| line.strip_prefix('.')?.split(' ').next());
    for request in requests {
        let known = [
            "TH", "SH", "SS", "TP", "PP", "IP", "ie", "el", "RS", "RE", "br",
        ];
        assert!(known.contains(&request), ".{request}");
    }
}

#[test]
fn help_names_each_kind_of_url() {
    let place = Place::with_files();
    let help = place.tool("--help").done().out;
    for scheme in [
        "file:",
        "file:///",
        "redis://",
        "rediss://",
        "valkey://",
        "valkeys://",
        "unix://",
        "redis+sentinel://",
        "rediss+sentinel://",
        "redis+cluster://",
        "rediss+cluster://",
        "etcd://",
        "etcds://",
        "zk://",
        "memory:",
    ] {
        assert!(help.contains(scheme), "{scheme}: {help}");
    }
}
