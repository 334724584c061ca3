//! Where locks live when nothing says so.

use std::time::Duration;

use support::Child;

const VARIABLE: &str = "CROSSLOCK_URL";
const PATIENCE: Duration = Duration::from_secs(20);

/// What a process says that opens a locker with the variable, or without.
fn said(url: Option<&str>) -> Vec<String> {
    let args = url.map(|url| (VARIABLE, url));
    let mut child = Child::spawn("opens and logs", args.as_slice());
    child.rest(PATIENCE)
}

#[cfg(feature = "file")]
#[test]
fn variable_that_is_not_set_is_warned_of_with_the_directory() {
    let said = said(None);
    assert!(said.contains(&"opened: true".to_owned()), "{said:?}");
    let warning = said.iter().find(|line| line.contains(VARIABLE));
    let warning = warning.unwrap_or_else(|| panic!("{said:?}"));
    assert!(warning.starts_with("WARN"), "{warning}");
    assert!(warning.contains("file:///tmp/crosslock-"), "{warning}");
}

#[test]
fn variable_that_is_set_is_not_warned_of() {
    let said = said(Some("memory:"));
    assert!(said.contains(&"opened: true".to_owned()), "{said:?}");
    assert!(
        said.iter().all(|line| !line.starts_with("WARN")),
        "{said:?}"
    );
}
