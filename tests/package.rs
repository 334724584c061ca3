//! What the packages have that a registry gets.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The files and folders at the top of a package, and below `docs`.
fn entries(package: &str) -> BTreeSet<String> {
    let mut list = Command::new(env!("CARGO"));
    list.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    list.args([
        "package",
        "--list",
        "--allow-dirty",
        "--offline",
        "--locked",
    ]);
    let list = list.args(["-p", package]).output().expect("cargo runs");
    let errors = String::from_utf8_lossy(&list.stderr);
    assert!(list.status.success(), "{errors}");
    let paths = String::from_utf8(list.stdout).expect("names are text");
    let paths = paths.lines().map(|path| {
        let depth = if path.starts_with("docs/") { 2 } else { 1 };
        let parts: Vec<_> = path.split('/').take(depth).collect();
        parts.join("/")
    });
    paths
        .filter(|path| !path.starts_with("docs/") || !path.ends_with(".md"))
        .collect()
}

fn assert_entries(package: &str, allowed: &str) {
    let allowed = allowed.split_whitespace().map(str::to_owned);
    assert_eq!(entries(package), allowed.collect(), "{package}");
}

/// What cargo adds itself.
const OF_CARGO: &str = "Cargo.lock Cargo.toml Cargo.toml.orig .cargo_vcs_info.json";

#[test]
fn library_has_what_users_need() {
    let own = "CHANGELOG.md LICENSE-APACHE LICENSE-MIT README.md docs/cli examples lua src";
    assert_entries("crosslock", &format!("{own} {OF_CARGO}"));
}

#[test]
fn program_has_what_users_need() {
    let own = "LICENSE-APACHE LICENSE-MIT README.md src";
    assert_entries("crosslock-cli", &format!("{own} {OF_CARGO}"));
}
