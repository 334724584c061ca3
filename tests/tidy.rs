//! Limits of style that a reviewer would otherwise have to count. `clippy.toml` limits the length of functions.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const LINES: usize = 400;
const COLUMNS: usize = 120;
const TABLE: &str = "tests/conformance/main.rs";

/// Each Rust file of the workspace: its path from the root, and its text.
fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut sources = Vec::new();
    for folder in ["src", "cli", "tests", "benches", "examples"] {
        collect(&root, Path::new(folder), &mut sources);
    }
    assert!(sources.len() > 200, "{} files are found", sources.len());
    sources
}

fn collect(root: &Path, folder: &Path, sources: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(root.join(folder)).expect("the folder is there") {
        let entry = entry.expect("it can be read");
        let path = folder.join(entry.file_name());
        if entry.path().is_dir() {
            if entry.file_name() != "target" {
                collect(root, &path, sources);
            }
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = fs::read_to_string(entry.path()).expect("Rust is text");
            sources.push((path, text));
        }
    }
}

/// Fails with the lines that are wrong, each with its place.
fn assert_no_line(is_wrong: impl Fn(&Path, &str) -> bool, rule: &str) {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let lines = text.lines().zip(1..);
        let lines = lines.filter(|(line, _)| is_wrong(&path, line));
        wrong.extend(lines.map(|(line, number)| format!("{}:{number}: {line}", path.display())));
    }
    assert!(wrong.is_empty(), "{rule}:\n{}", wrong.join("\n"));
}

/// Pages of public documentation don't count, nor does the table of the conformance suite's cases.
#[test]
fn files_have_at_most_400_lines() {
    let is_code = |line: &&str| !line.trim_start().starts_with("///") && !line.starts_with("//!");
    let long = sources().into_iter();
    let long = long.map(|(path, text)| (text.lines().filter(is_code).count(), path));
    let long = long.filter(|(lines, _)| *lines > LINES);
    let long: Vec<_> = long.filter(|(_, path)| path != Path::new(TABLE)).collect();
    assert!(long.is_empty(), "split these: {long:?}");
}

#[test]
fn lines_have_at_most_120_columns() {
    // A row of a table can't be broken.
    let is_row = |line: &str| line.trim_start_matches(['/', '!', ' ']).starts_with('|');
    assert_no_line(
        |_, line| line.chars().count() > COLUMNS && !is_row(line),
        "break these lines",
    );
}

#[test]
fn visibility_is_limited_to_a_module_of_the_root() {
    let is_deep = |line: &str| {
        let mut limits = line.split("pub(in ").skip(1);
        limits.any(|limit| {
            limit
                .split(')')
                .next()
                .is_some_and(|path| path.matches("::").count() > 1)
        })
    };
    // This file names what it looks for.
    assert_no_line(
        |path, line| path != Path::new("tests/tidy.rs") && is_deep(line),
        "use `pub(super)`, or `pub` in a private module",
    );
}

#[test]
fn features_of_engines_are_known_to_engines_only() {
    const ENGINES: [&str; 4] = ["redis", "etcd", "zookeeper", "file"];
    let names = ENGINES.map(|engine| format!("feature = \"{engine}\""));
    assert_no_line(
        |path, line| {
            let is_above = path.starts_with("src") && !path.starts_with("src/engine");
            is_above && names.iter().any(|name| line.contains(name))
        },
        "ask the engine through the seam",
    );
}

/// The names of those programs of tests in the workspace that `is_one` picks by cargo's description.
fn programs(is_one: impl Fn(&Value) -> bool) -> BTreeSet<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version=1"]);
    let output = cargo.output().expect("cargo runs").stdout;
    let workspace: Value = serde_json::from_slice(&output).expect("JSON");
    let packages = workspace["packages"].as_array().into_iter().flatten();
    let targets = packages.flat_map(|package| package["targets"].as_array());
    let tests = targets
        .flatten()
        .filter(|target| target["kind"][0] == "test" && is_one(target));
    tests
        .filter_map(|target| Some(target["name"].as_str()?.to_owned()))
        .collect()
}

/// The programs of tests that a file names as arguments of cargo.
fn named_in(file: &str) -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = fs::read_to_string(root.join(file)).expect("the file is there");
    let named = text.split("--test ").skip(1);
    let named = named.filter_map(|rest| rest.split_whitespace().next());
    let named = named.map(|name| name.trim_end_matches(')'));
    // A pattern that fits all of them.
    let named = named.filter(|name| *name != "'*'");
    named.map(str::to_owned).collect()
}

#[test]
fn workflows_run_each_program_of_tests() {
    let all = programs(|_| true);
    assert_eq!(named_in(".github/workflows/pull-request.yml"), all);
    let nightly = named_in(".github/workflows/nightly.yml");
    let missing: Vec<_> = nightly.difference(&all).collect();
    assert!(missing.is_empty(), "nightly.yml names {missing:?}");
}

#[test]
fn run_sh_names_each_program_that_cargo_leaves_out() {
    let left_out = programs(|target| target["test"] == false);
    assert_eq!(named_in("tests/run.sh"), left_out);
}
