//! What is above uses what is below, and never the reverse: no module of `src` uses one that stands above it, and none
//! uses, by whichever way, a module that uses it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// From the bottom to the top. A module belongs to the longest of these names that begins its path.
const LAYERS: [&str; 26] = [
    "base",
    "engine",
    "engine::heartbeat",
    "engine::url",
    "engine::net",
    "engine::line",
    "engine::rules",
    "engine::memory",
    "engine::file",
    "engine::redis",
    "engine::etcd",
    "engine::zookeeper",
    "engine::open",
    "engine::fuzzing",
    "lease",
    "queue",
    "core",
    "doctor",
    "guard",
    "acquire",
    "locker",
    "primitives",
    "delay",
    "metrics",
    "testing",
    "guide",
];

/// The modules that each module uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

fn height(module: &str) -> usize {
    let own = LAYERS.iter().enumerate();
    let own = own.filter(|(_, layer)| is_in(module, layer));
    let own = own.max_by_key(|(_, layer)| layer.len());
    own.unwrap_or_else(|| panic!("{module} is in no layer")).0
}

fn is_in(module: &str, layer: &str) -> bool {
    let rest = module.strip_prefix(layer);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// The text of each module, without comments and tests.
fn texts(directory: &Path, path: &str, texts: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(directory).expect("the directory is there") {
        let file = entry.expect("it can be read").path();
        let stem = file.file_stem().and_then(|stem| stem.to_str());
        let stem = stem.expect("names of modules are text");
        let module = match path {
            "" => stem.to_owned(),
            path => format!("{path}::{stem}"),
        };
        if file.is_dir() {
            self::texts(&file, &module, texts);
        } else if !["tests", "lib"].contains(&stem) {
            let module = if stem == "mod" { path } else { &module };
            let text = fs::read_to_string(&file).expect("a module is text");
            texts.insert(module.to_owned(), code(&text));
        }
    }
}

fn code(text: &str) -> String {
    let lines = text.lines().take_while(|line| *line != "#[cfg(test)]");
    let lines = lines.map(|line| line.split("//").next().unwrap_or_default());
    let lines: Vec<_> = lines.collect();
    // A limit of visibility is no use.
    lines.join("\n").replace("(in crate::", "(in ")
}

/// The paths of this crate that a text names, as they would be written from the crate's root.
fn paths(module: &str, text: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for part in text.split("use ").skip(1) {
        let tree: String = part
            .split(';')
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        paths.extend(
            leaves(&tree)
                .into_iter()
                .filter_map(|path| absolute(module, &path)),
        );
    }
    for part in text.split("crate::").skip(1) {
        let end = part.find(|c: char| !c.is_alphanumeric() && !"_:".contains(c));
        let (path, rest) = part.split_at(end.unwrap_or(part.len()));
        // What stands before a tree isn't used itself.
        if !rest.starts_with('{') {
            paths.push(path.to_owned());
        }
    }
    paths
}

/// Each path of a tree as `a::{b, c::{d, e}}`.
fn leaves(tree: &str) -> Vec<String> {
    let Some((stem, rest)) = tree.split_once('{') else {
        return vec![tree.to_owned()];
    };
    let (mut depth, mut items, mut item) = (0, Vec::new(), String::new());
    for c in rest.strip_suffix('}').unwrap_or(rest).chars() {
        match c {
            ',' if depth == 0 => items.push(std::mem::take(&mut item)),
            _ => {
                depth += i32::from(c == '{') - i32::from(c == '}');
                item.push(c);
            }
        }
    }
    items.push(item);
    let items = items.iter().filter(|item| !item.is_empty());
    items
        .flat_map(|item| leaves(&format!("{stem}{item}")))
        .collect()
}

fn absolute(module: &str, path: &str) -> Option<String> {
    let mut above: Vec<&str> = module.split("::").collect();
    let mut rest = path;
    if let Some(from_root) = rest.strip_prefix("crate::") {
        return Some(from_root.to_owned());
    } else if let Some(own) = rest.strip_prefix("self::") {
        rest = own;
    } else if !rest.starts_with("super::") {
        return None;
    }
    while let Some(next) = rest.strip_prefix("super::") {
        above.pop();
        rest = next;
    }
    above.push(rest);
    Some(above.join("::"))
}

/// The module that a path leads to: what follows it is an item of that module.
fn module_of(path: &str, texts: &BTreeMap<String, String>) -> Option<String> {
    let mut path = path.trim_end_matches(':');
    loop {
        if texts.contains_key(path) {
            return Some(path.to_owned());
        }
        path = path.rsplit_once("::")?.0;
    }
}

fn library() -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src");
    self::texts(&sources, "", &mut texts);
    assert!(texts.len() > 40, "{} modules are found", texts.len());
    texts
}

fn uses() -> Uses {
    let texts = library();
    let uses = |(module, text): (&String, &String)| {
        let used = paths(module, text);
        let used = used.iter().filter_map(|path| module_of(path, &texts));
        (module.clone(), used.filter(|used| used != module).collect())
    };
    texts.iter().map(uses).collect()
}

#[test]
fn no_module_uses_one_above_it() {
    let uses = uses();
    let edges = uses
        .iter()
        .flat_map(|(module, used)| used.iter().map(move |used| (module, used)));
    let upward: Vec<_> = edges
        .filter(|(module, used)| height(used) > height(module))
        .collect();
    assert!(
        upward.is_empty(),
        "these use what is above them: {upward:?}"
    );
}

#[test]
fn no_modules_use_each_other() {
    let mut uses = uses();
    // A module that uses none of those that are left is in no circle.
    loop {
        let left: BTreeSet<String> = uses.keys().cloned().collect();
        uses.retain(|_, used| used.iter().any(|used| left.contains(used)));
        if uses.len() == left.len() {
            break;
        }
    }
    let circle: Vec<_> = uses.keys().collect();
    assert!(circle.is_empty(), "in a circle, or above one: {circle:?}");
}

/// The code of a module, with each path that it imports from another crate.
fn foreign(text: &str) -> String {
    let mut parts = text.split("use ");
    let mut foreign = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (tree, rest) = part.split_once(';').unwrap_or((part, ""));
        let is_own = |path: &String| {
            let own = ["crate::", "self::", "super::"];
            own.iter().any(|root| path.starts_with(root))
        };
        let paths = leaves(&tree.split_whitespace().collect::<String>()).into_iter();
        let paths = paths.filter(|path| !is_own(path));
        foreign += &(paths.collect::<Vec<_>>().join("\n") + "\n" + rest);
    }
    foreign
}

/// What only `base::sys` asks the system for, so that a simulation answers all of it: time; threads, and what they wait
/// at; processes and hosts; sockets; randomness, and order that is random.
const QUESTIONS: [&str; 5] = [
    "Instant::now SystemTime::now clock_gettime thread::sleep yield_now() spin_loop",
    "thread::spawn thread::Builder thread::scope thread::current thread::park JoinHandle sync::Mutex sync::Condvar \
     std::sync::RwLock sync::Barrier mpsc crossbeam_channel",
    "process::id uname gettid env::var",
    "socket2 Socket::new rustix::net rustix::event net::Tcp net::Udp net::Unix UnixStream UnixListener \
     to_socket_addrs ToSocketAddrs",
    "fastrand getrandom new_v4 RandomState DefaultHasher collections::HashMap collections::HashSet",
];

/// Those that a text has.
fn asked(text: &str) -> impl Iterator<Item = &'static str> {
    let all = QUESTIONS.iter().flat_map(|some| some.split_whitespace());
    all.filter(move |question| text.contains(question))
}

/// Directories aren't simulated, and the environment is read where a program opens a locker.
const EXCEPTIONS: [(&str, &str); 2] = [
    ("engine::file", "rustix::event"),
    ("locker::open", "env::var"),
];

fn may_ask(module: &str, question: &str) -> bool {
    let mut exceptions = EXCEPTIONS.iter();
    exceptions.any(|(layer, allowed)| is_in(module, layer) && question == *allowed)
}

#[test]
fn only_one_module_asks_the_system() {
    let texts = library();
    let texts = texts.iter().filter(|(module, _)| {
        let is_test = module.contains("::tests::") || *module == "base::random";
        !is_test && !is_in(module, "base::sys")
    });
    let asked = texts.flat_map(|(module, text)| {
        let text = foreign(text)
            .replace("sys::sync::", "")
            .replace("sys::collections::", "")
            .replace("time::yield_now", "");
        let asked: Vec<_> = asked(&text).collect();
        asked.into_iter().map(move |question| (module, question))
    });
    let asked: Vec<_> = asked
        .filter(|(module, question)| !may_ask(module, question))
        .collect();
    assert!(asked.is_empty(), "these do, too: {asked:?}");
}

#[test]
fn questions_are_found_in_all_forms() {
    let text = "use std::{\n    collections::{BTreeMap, HashMap},\n    net::TcpStream,\n};\n\
                pub(crate) use super::sync::Mutex;\nlet id = std::process::id();";
    let foreign = foreign(text);
    let asked: Vec<_> = asked(&foreign).collect();
    assert_eq!(asked, ["process::id", "net::Tcp", "collections::HashMap"]);
}

/// Both have threads wait where a forked child finds those of its parent: `base::sys` and `base::fork` have others.
#[test]
fn no_module_waits_where_a_forked_child_has_threads_of_its_parent() {
    const WAITS: [&str; 2] = ["parking_lot", "LazyLock"];
    let texts = library();
    let waits = texts.iter();
    let waits = waits.filter(|(_, text)| WAITS.iter().any(|name| text.contains(name)));
    let waits: Vec<_> = waits.map(|(module, _)| module).collect();
    assert!(waits.is_empty(), "these do: {waits:?}");
}

#[test]
fn edges_are_found_in_all_forms() {
    let text = "use crate::base::{clock::Clock, error};\nuse super::{a, b::C};\nlet x = crate::core::Core::new();";
    let found = paths("engine::redis::wait", text);
    for path in [
        "base::clock::Clock",
        "base::error",
        "engine::redis::a",
        "engine::redis::b::C",
        "core::Core::new",
    ] {
        assert!(found.iter().any(|one| one == path), "{path} in {found:?}");
    }
    let stem = found.iter().find(|one| one.ends_with("::"));
    assert_eq!(stem, None, "it is used by its parts only");
}
