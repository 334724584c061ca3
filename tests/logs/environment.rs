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

#[test]
fn variable_that_is_not_set_is_warned_of_with_the_directory() {
    for (url, warnings) in [(None, 1), (Some("memory:"), 0)] {
        let mut said = said(url);
        assert!(said.contains(&"opened: true".to_owned()), "{said:?}");
        said.retain(|line| line.starts_with("WARN"));
        assert_eq!(said.len(), warnings, "{said:?}");
        let is_told =
            |line: &String| line.contains(VARIABLE) && line.contains("file:///tmp/crosslock-");
        assert!(said.iter().all(is_told), "{said:?}");
    }
}
