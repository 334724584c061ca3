//! What `README.md`, the pages in `docs` and rustdoc say about the crate as a whole is what the sources have.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn read(file: impl AsRef<Path>) -> String {
    let file = root().join(file);
    fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

/// `README.md`, and the pages of `docs` and its folders.
fn pages() -> Vec<PathBuf> {
    let (mut pages, mut folders) = (vec!["README.md".into()], vec![PathBuf::from("docs")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).expect("a folder") {
            let entry = entry.expect("it can be read");
            let path = folder.join(entry.file_name());
            let is_folder = entry.file_type().expect("it has a type").is_dir();
            let list = if is_folder { &mut folders } else { &mut pages };
            list.push(path);
        }
    }
    assert!(pages.len() > 15, "{pages:?}");
    pages
}

/// The part of `text` from behind `begin` up to `end`.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let (_, rest) = text.split_once(begin).expect(begin);
    rest.split_once(end).expect(end).0
}

/// Nobody can have it from there.
#[test]
fn no_page_takes_crosslock_from_a_registry() {
    for page in pages() {
        for line in read(&page).lines() {
            let dependency = line.starts_with("crosslock = ");
            let from_a_registry = dependency && !line.contains("git = ")
                || line.contains("cargo install crosslock")
                || line.contains("cargo add crosslock");
            assert!(!from_a_registry, "{}: {line}", page.display());
        }
    }
}

#[test]
fn readme_names_every_page() {
    let readme = read("README.md");
    for page in pages().iter().skip(1) {
        let page = page.display();
        assert!(readme.contains(&format!("]({page})")), "{page}");
    }
}
