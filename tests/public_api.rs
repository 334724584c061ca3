//! The public names of the library, as `tests/public_api.txt` lists them: a change of these is seen in a review. Each
//! has an example.
//!
//! The lint `unreachable_pub` sees to it that what is `pub` in the sources is public. So the list has each item that is
//! `pub`, each variant of an enum, each method of a public trait, and each implementation of a trait for a public type.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{env, fs};

/// The items of a type, or at the top of the library.
type Api = BTreeMap<String, BTreeSet<String>>;

fn sources(directory: &Path, texts: &mut Vec<(bool, String)>) {
    for entry in fs::read_dir(directory).expect("the directory is there") {
        let path = entry.expect("it can be read").path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name");
        if path.is_dir() {
            sources(&path, texts);
        } else if !["tests.rs", "guide.rs", "fuzzing.rs"].contains(&name) {
            let text = fs::read_to_string(&path).expect("a module is text");
            let text = text.split("\n#[cfg(test)]\nmod tests").next();
            texts.push((name == "lib.rs", text.unwrap_or_default().to_owned()));
        }
    }
}

/// The code of each line that isn't a comment.
fn code(text: &str) -> Vec<&str> {
    let lines = text.lines();
    lines
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect()
}

/// What begins at the first of these lines, up to its body.
fn signature(lines: &[&str]) -> String {
    let mut signature = String::new();
    for line in lines {
        let line = line.trim();
        let is_last = line.ends_with(['{', ';']) || line.ends_with('}');
        let part = line.split(" {").next().unwrap_or_default();
        signature += part.trim_end_matches(';');
        if is_last {
            break;
        }
        signature.push(' ');
    }
    signature
        .replace("( ", "(")
        .replace(", )", ")")
        .replace(",)", ")")
}

/// The name of the type that an `impl` is for, and of the trait.
fn of_impl(line: &str) -> Option<(String, Option<String>)> {
    let rest = line.strip_prefix("impl")?;
    let rest = match rest.strip_prefix('<') {
        Some(generic) => {
            let mut depth = 1;
            let end = generic.find(|c| {
                depth += i32::from(c == '<') - i32::from(c == '>');
                depth == 0
            })?;
            &generic[end + 1..]
        }
        None => rest,
    };
    let rest = rest.split(" where ").next()?.trim();
    let (of_trait, of_type) = match rest.split_once(" for ") {
        Some((of_trait, of_type)) => (Some(of_trait.to_owned()), of_type),
        None => (None, rest),
    };
    let end = of_type.find(|c: char| !c.is_alphanumeric() && c != '_');
    Some((of_type[..end.unwrap_or(of_type.len())].to_owned(), of_trait))
}

/// The features and attributes in front of a line that a user notices.
fn attributes(lines: &[&str], at: usize) -> String {
    let noticed = [
        "#[cfg(feature",
        "#[cfg(all(",
        "#[derive(",
        "#[must_use",
        "#[non_exhaustive",
    ];
    let before = lines[..at].iter().rev().map(|line| line.trim());
    let before = before.take_while(|line| line.starts_with("#["));
    let kept = before.filter(|line| noticed.iter().any(|start| line.starts_with(start)));
    let mut kept: Vec<_> = kept
        .map(|line| match line.starts_with("#[must_use") {
            true => "#[must_use] ".to_owned(),
            false => format!("{line} "),
        })
        .collect();
    kept.reverse();
    kept.concat()
}

/// What was read of a module.
#[derive(Default)]
struct Reader {
    api: Api,
    /// The implementations of traits, each with its type.
    impls: Vec<(String, String)>,
    /// The type whose items are read.
    owner: String,
    /// Whether all of its items are public: it is an enum or a trait.
    is_open: bool,
    /// The variant whose fields are read.
    variant: String,
}

impl Reader {
    fn add(&mut self, place: &str, item: String) {
        self.api.entry(place.to_owned()).or_default().insert(item);
    }

    fn read(&mut self, text: &str, is_root: bool) {
        let lines = code(text);
        for (at, line) in lines.iter().enumerate() {
            let item = line.trim();
            match line.len() - item.len() {
                0 if item == "}" => (self.owner, self.is_open) = (String::new(), false),
                0 if item.starts_with("impl") => self.implementation(&lines, at),
                0 => self.top(&lines, at, is_root),
                4 if !self.owner.is_empty() => self.member(&lines, at),
                8 if self.is_open && item.ends_with(',') && !item.contains('(') => {
                    let field = format!("{} {{ {} }}", self.variant, item.trim_end_matches(','));
                    self.add(&self.owner.clone(), field);
                }
                _ => {}
            }
        }
    }

    fn implementation(&mut self, lines: &[&str], at: usize) {
        let whole = signature(&lines[at..]);
        match of_impl(&whole) {
            Some((of_type, Some(_))) => self.impls.push((of_type, attributes(lines, at) + &whole)),
            Some((of_type, None)) => self.owner = of_type,
            None => {}
        }
    }

    fn top(&mut self, lines: &[&str], at: usize, is_root: bool) {
        let Some((kind, rest)) = lines[at]
            .strip_prefix("pub ")
            .and_then(|item| item.split_once(' '))
        else {
            return;
        };
        let words = attributes(lines, at) + &signature(&lines[at..]);
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
        let name = &rest[..end.unwrap_or(rest.len())];
        match kind {
            "struct" | "enum" | "trait" => {
                // The fields of a tuple are private.
                let whole = match words.rsplit_once('(') {
                    Some((front, _)) if front.ends_with(name) => front.to_owned(),
                    _ => words,
                };
                self.add(name, whole);
                if lines[at].ends_with('{') {
                    (self.owner, self.is_open) = (name.to_owned(), kind != "struct");
                }
            }
            // Those of other modules only pass names on.
            "use" | "mod"
                if !is_root || words.contains("cfg(all(doc") || rest.ends_with("fuzzing;") => {}
            _ => self.add("", words),
        }
    }

    fn member(&mut self, lines: &[&str], at: usize) {
        let item = lines[at].trim();
        let is_public =
            item.starts_with("pub ") || self.is_open && !item.starts_with(['#', '}', ')']);
        if !is_public {
            return;
        }
        let is_field = !item.contains("fn ") && !item.contains("const ") && !item.contains("type ");
        let words = match is_field {
            true => attributes(lines, at) + item.trim_end_matches(['{', ',', ' ']),
            false => attributes(lines, at) + &signature(&lines[at..]),
        };
        self.variant = item
            .split([' ', ',', '('])
            .next()
            .unwrap_or_default()
            .to_owned();
        self.add(&self.owner.clone(), words);
    }
}

fn listing() -> String {
    let (mut texts, mut reader) = (Vec::new(), Reader::default());
    sources(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../src"),
        &mut texts,
    );
    for (is_root, text) in &texts {
        reader.read(text, *is_root);
    }
    let Reader { mut api, impls, .. } = reader;
    for (of_type, line) in impls {
        if let Some(items) = api.get_mut(&of_type).filter(|_| !of_type.is_empty()) {
            items.insert(line);
        }
    }
    let sections = api.into_iter().map(|(name, items)| {
        let items: String = items
            .into_iter()
            .map(|item| format!("    {item}\n"))
            .collect();
        let name = if name.is_empty() { "crosslock" } else { &name };
        format!("{name}\n{items}")
    });
    sections.collect::<Vec<_>>().join("\n")
}

#[test]
fn public_names_are_those_of_the_list() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("public_api.txt");
    let found = listing();
    if env::var_os("WRITE_PUBLIC_API").is_some() {
        fs::write(&path, &found).expect("it can be written");
    }
    let listed = fs::read_to_string(&path).expect("the list is there");
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let new: Vec<_> = lines(&found).difference(&lines(&listed)).cloned().collect();
    let gone: Vec<_> = lines(&listed).difference(&lines(&found)).cloned().collect();
    assert!(
        found == listed,
        "new: {new:#?}\ngone: {gone:#?}\nis it in CHANGELOG.md? Then run this with WRITE_PUBLIC_API=1"
    );
}

/// It runs as a test of the documentation, or names the item whose example shows this one, too.
#[test]
fn every_public_item_has_an_example() {
    let mut texts = Vec::new();
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src");
    sources(&src, &mut texts);
    let (mut number, mut without) = (0, Vec::new());
    for (_, text) in &texts {
        let mut has_example = false;
        for line in text.lines().map(str::trim) {
            let item = line
                .strip_prefix("pub ")
                .and_then(|item| item.split_once(' '));
            match item {
                Some(("const" | "enum" | "fn" | "struct" | "trait" | "type", _)) => {
                    number += 1;
                    without.extend((!has_example).then_some(line));
                    has_example = false;
                }
                _ if line.starts_with("///") => has_example |= line == "/// # Examples",
                // Attributes stand between the documentation and its item, also over several lines.
                _ if line.is_empty() || line.ends_with(['}', ';', ',']) => has_example = false,
                _ => {}
            }
        }
    }
    assert!(number > 150, "{number}");
    assert!(without.is_empty(), "without an example: {without:#?}");
}
