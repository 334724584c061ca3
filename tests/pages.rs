//! What `README.md`, the pages in `docs` and rustdoc say about the crate as a whole is what the sources have.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

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
            if entry.file_type().expect("it has a type").is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                pages.push(path);
            }
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
fn every_page_is_named() {
    let (readme, contributing) = (read("README.md"), read("CONTRIBUTING.md"));
    for page in pages().iter().skip(1) {
        let list = if page.starts_with("docs/internals") {
            &contributing
        } else {
            &readme
        };
        let page = page.display();
        assert!(list.contains(&format!("]({page}")), "{page}");
    }
}

/// What stands behind each `begin` of `source`, up to the next quotation mark.
fn quoted<'a>(source: &'a str, begin: &str) -> Vec<&'a str> {
    let parts = source.split(begin).skip(1);
    parts.filter_map(|part| part.split('"').next()).collect()
}

/// The schemes of `Locker::open`, from its match, as URLs begin with them.
fn schemes() -> BTreeSet<String> {
    let source = read("src/engine/open.rs");
    let arms = between(&source, "match kind.unwrap_or(&scheme) {", "_ => Err");
    let patterns = arms
        .lines()
        .filter(|line| line.contains("=>"))
        .filter_map(|line| line.split(" if ").next()?.split("=>").next());
    let single = patterns.flat_map(|pattern| pattern.split('"').skip(1).step_by(2));
    let kinds = between(&source, "let servers = [", "];");
    let kinds = kinds.split('"').skip(1).step_by(2);
    let schemes = single.map(str::to_owned);
    let schemes: BTreeSet<_> = schemes
        .chain(kinds.map(|kind| format!("redis{kind}")))
        .map(|scheme| match scheme.as_str() {
            "memory" | "file" => format!("{scheme}:"),
            _ => format!("{scheme}://"),
        })
        .collect();
    assert!(schemes.len() >= 12, "{schemes:?}");
    schemes
}

#[test]
fn every_scheme_is_in_each_list_of_urls() {
    let open = read("src/engine/open.rs");
    let locker = read("src/locker/mod.rs");
    let readme = read("README.md");
    for (list, text) in [
        ("the error", between(&open, "const SCHEMES", ";")),
        ("Locker", between(&locker, "/// | URL |", "\n///\n")),
        ("README.md", between(&readme, "## Engines", "## Features")),
    ] {
        for scheme in schemes() {
            assert!(text.contains(&scheme), "{list} has no {scheme}");
        }
    }
}

#[test]
fn every_part_of_a_query_is_in_the_list_of_lockers() {
    let locker = read("src/locker/mod.rs");
    let list = between(&locker, "/// | URL |", "/// # Examples");
    for file in ["etcd/address", "redis/settings", "zookeeper/address"] {
        let source = read(format!("src/engine/{file}.rs"));
        for name in ["take(\"", "take_duration(\""]
            .map(|take| quoted(&source, take))
            .concat()
        {
            assert!(list.contains(&format!("{name}=")), "{file}: {name}");
        }
    }
}

#[test]
fn every_option_is_in_the_list_of_the_builder() {
    let builder = read("src/locker/builder.rs");
    let list = between(&builder, "/// | option |", "\n///\n");
    let setters = builder.split("pub fn ").skip(1);
    let setters = setters.filter_map(|part| part.split_once("(mut self"));
    let mut number = 0;
    for (setter, _) in setters.filter(|(name, _)| !name.contains('(')) {
        assert!(
            list.contains(&format!("[`{setter}`](Self::{setter})")),
            "{setter}"
        );
        number += 1;
    }
    assert!(number >= 17, "{number}");
}

/// What docs.rs builds: without this, engines of features that aren't default aren't there.
#[test]
fn documentation_has_all_features() {
    let package = read("Cargo.toml");
    let settings = between(&package, "[package.metadata.docs.rs]\n", "\n\n");
    assert!(
        settings.lines().any(|line| line == "all-features = true"),
        "{settings}"
    );
}

/// The lines of a page that aren't code.
fn prose(page: &Path) -> Vec<String> {
    let mut is_code = false;
    let text = read(page);
    let lines = text.lines().filter(|line| {
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    lines.map(str::to_owned).collect()
}

/// The headings of a page, as links name them.
fn anchors(page: &Path) -> BTreeSet<String> {
    let headings = prose(page).into_iter().filter(|line| line.starts_with('#'));
    let letter = |c: char| match c {
        ' ' => Some('-'),
        c => (c.is_alphanumeric() || "-_".contains(c)).then_some(c),
    };
    headings
        .map(|line| line.trim_start_matches('#').trim().to_lowercase())
        .map(|heading| heading.chars().filter_map(letter).collect())
        .collect()
}

/// The definitions of links with references, as `[label]: target`.
fn definitions(page: &Path) -> Vec<(String, String)> {
    let lines = prose(page).into_iter();
    let lines = lines.filter_map(|line| {
        let (label, target) = line.strip_prefix('[')?.split_once("]: ")?;
        (!line.contains("](") && target.split_whitespace().count() == 1).then_some(())?;
        Some((label.to_owned(), target.to_owned()))
    });
    lines.collect()
}

/// The pages that are modules of `crosslock::guide`, with the name of each.
fn guides() -> BTreeMap<PathBuf, String> {
    let guide = read("src/guide.rs");
    let (_, list) = guide.split_once("pages! {").expect("a list");
    let rows = list.lines().filter_map(|row| row.split_once(" \""));
    let rows = rows.map(|(module, file)| (file.trim_end_matches("\","), module.trim()));
    rows.map(|(file, module)| (Path::new("docs").join(file), module.to_owned()))
        .collect()
}

/// Links that lead to guides, by the module and the file, and those that lead to other files of the repository.
#[derive(Default)]
struct Rows {
    guides: BTreeMap<(String, String), BTreeSet<String>>,
    others: BTreeSet<(String, String)>,
}

impl Rows {
    fn add(&mut self, page: &Path, target: &str, guides: &BTreeMap<PathBuf, String>) {
        let (file, anchor) = target.split_at(target.find('#').unwrap_or(target.len()));
        let path = plain(&page.with_file_name("").join(file));
        if let Some(guide) = guides.get(&path) {
            let row = self.guides.entry((guide.clone(), file.to_owned()));
            row.or_default().insert(anchor.to_owned());
        } else {
            // A picture itself, and not the page that shows it.
            let raw = if file.ends_with(".svg") {
                "?raw=true"
            } else {
                ""
            };
            let there = format!("{}{raw}{anchor}", path.display());
            self.others.insert((target.to_owned(), there));
        }
    }

    fn text(&self) -> String {
        let guides = self.guides.iter().map(|((module, file), anchors)| {
            let anchors: String = anchors.iter().map(|a| format!(" \"{a}\"")).collect();
            format!("{module} \"{file}\":{anchors};\n")
        });
        let others = self.others.iter();
        let others = others.map(|(label, path)| format!("\"{label}\" = \"{path}\";\n"));
        guides.collect::<String>() + "=>\n" + &others.collect::<String>()
    }
}

#[test]
fn every_page_for_users_is_a_guide() {
    let pages = pages().into_iter().skip(1);
    let pages: BTreeSet<_> = pages
        .filter(|page| !page.starts_with("docs/internals"))
        .collect();
    assert_eq!(pages, guides().into_keys().collect());
}

/// A link in the text itself would lead nowhere in rustdoc, where a page isn't a file of its own name.
#[test]
fn guides_link_with_references_that_their_module_defines() {
    let (guides, mut rows) = (guides(), Rows::default());
    for page in guides.keys() {
        let text = prose(page).join("\n");
        let links = text.split("](").skip(1);
        let mut links = links.filter_map(|part| part.split(')').next());
        let within = links.find(|link| !link.starts_with('#') && !link.contains("://"));
        assert_eq!(within, None, "{}: use [text][{within:?}]", page.display());
        for (label, target) in definitions(page) {
            assert_eq!(label, target, "{}", page.display());
            rows.add(page, &target, &guides);
        }
    }
    let source = read("src/guide.rs");
    let found = between(&source, "definitions! {\n", "        }\n");
    let expected = rows.text();
    let is_right = found.split_whitespace().eq(expected.split_whitespace());
    assert!(is_right, "write into src/guide.rs:\n{expected}");
}

/// The same path without its parts `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path {
        if part == ".." {
            plain.pop();
        } else {
            plain.push(part);
        }
    }
    plain
}

#[test]
fn links_between_pages_lead_somewhere() {
    let others = [
        "CONTRIBUTING.md",
        "SECURITY.md",
        "CHANGELOG.md",
        "lua/README.md",
    ];
    let pages = pages().into_iter().chain(others.map(PathBuf::from));
    for page in pages {
        let text = prose(&page).join("\n");
        let links = text.split("](").skip(1);
        let links = links.filter_map(|part| part.split(')').next());
        let links = links.map(str::to_owned);
        let links = links.chain(definitions(&page).into_iter().map(|(_, target)| target));
        for link in links.filter(|link| !link.contains("://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match file {
                "" => page.clone(),
                file => page.with_file_name("").join(file),
            };
            let page = page.display();
            assert!(root().join(&target).exists(), "{page}: no file {link}");
            let is_there = anchor.is_empty() || anchors(&target).contains(anchor);
            assert!(is_there, "{page}: no heading {link}");
        }
    }
}

/// Pictures are what their script draws, and measured figures are those of the newest record.
#[test]
fn pictures_and_figures_are_what_their_scripts_make() {
    for script in ["docs/img/draw.py", "benches/report.py"] {
        let mut command = Command::new("python3");
        // It leaves no compiled modules beside the pictures.
        command.args(["-B", script, "--check"]).current_dir(root());
        match command.output() {
            Ok(output) => {
                let errors = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{script}: {errors}");
            }
            Err(e) => eprintln!("left out: {script} needs python3: {e}"),
        }
    }
}
