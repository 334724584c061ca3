//! `completions`, `man`, and `--help`.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::tool::Place;

const VERBS: &str = "elect leader ls show break watch doctor bench completions man";

#[test]
fn each_shell_has_completions_and_no_other() {
    let place = Place::with_files();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = place.tool(&format!("completions {shell}")).ends(0).out;
        let mut verbs = VERBS.split(' ');
        assert!(verbs.all(|verb| script.contains(verb)), "{shell}");
        if shell == "bash" {
            let mut bash = Command::new("bash");
            let bash = bash.arg("-n").stdin(Stdio::piped()).spawn();
            let mut bash = bash.expect("start bash");
            let mut stdin = bash.stdin.take().expect("it is piped");
            stdin.write_all(script.as_bytes()).expect("bash reads");
            drop(stdin);
            assert!(bash.wait().expect("bash ends").success());
        }
    }
    place.tool("completions csh").ends(64);
}

#[test]
fn manual_page_has_each_verb_once() {
    const KNOWN: &str = "TH SH SS TP PP IP ie el RS RE br";
    let page = Place::with_files().tool("man").done().out;
    assert!(page.contains(".TH crosslock 1"), "{page}");
    let sections = "NAME SYNOPSIS OPTIONS VERBS ENVIRONMENT FILES";
    let sections = sections.split(' ').map(|name| format!(".SH {name}"));
    let verbs = VERBS.split(' ').map(|verb| format!(".SS {verb}"));
    for head in sections
        .chain([".SH \"EXIT STATUS\"".to_owned()])
        .chain(verbs)
    {
        let heads = page.lines().filter(|line| *line == head);
        assert_eq!(heads.count(), 1, "{head}");
    }
    // What begins with a point is a request, and each one here is known.
    let requests = page.lines().filter_map(|line| line.strip_prefix('.'));
    for request in requests.filter_map(|line| line.split(' ').next()) {
        let mut known = KNOWN.split(' ');
        assert!(known.any(|one| one == request), ".{request}");
    }
}

#[test]
fn help_names_each_kind_of_url() {
    let help = Place::with_files().tool("--help").ends(0).out;
    let redis = "redis rediss valkey valkeys unix redis+sentinel rediss+sentinel redis+cluster rediss+cluster \
                 redis+quorum rediss+quorum";
    let schemes = redis.split(' ').chain(["etcd", "etcds", "zk"]);
    let urls = schemes.map(|scheme| format!("{scheme}://"));
    let more = ["file:", "file:///", "memory:"].map(str::to_owned);
    for url in urls.chain(more) {
        assert!(help.contains(&url), "{url}: {help}");
    }
}
