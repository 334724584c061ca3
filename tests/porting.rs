//! The example of a port: both programs do the same.

#[allow(dead_code, reason = "its `main` isn't called")]
#[path = "../examples/ported.rs"]
mod ported;
#[allow(dead_code, reason = "its `main` isn't called")]
#[path = "../examples/ported_before.rs"]
mod ported_before;

use std::fs;

use crosslock::Locker;

#[test]
fn both_programs_have_the_same_result() {
    let before = ported_before::run().expect("all orders are good");
    assert_eq!(before.len(), 3, "{before:?}");
    let locker = Locker::open("memory:porting").expect("a memory");
    assert_eq!(ported::run(&locker).expect("all orders are good"), before);
}

#[cfg(feature = "file")]
#[test]
fn port_can_be_run_again_where_its_values_are_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let url = format!("file://{}", directory.path().display());
    let run = || ported::run(&Locker::open(&url).expect("a directory")).expect("it is served");
    assert_eq!(run(), run());
}

#[test]
fn page_links_the_differences_of_each_primitive() {
    let page = include_str!("../docs/porting.md");
    let links = page.split("\n[Differences from ").skip(1);
    let files = links.filter_map(|link| link.split("][../").nth(1)?.split(']').next());
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let mut number = 0;
    for file in files {
        let source = fs::read_to_string(format!("{root}/{file}")).expect("a source");
        assert!(source.contains("/// # Differences from "), "{file}");
        number += 1;
    }
    assert_eq!(number, 8);
}
