//! The scripts of `lua/`, put together as the server is sent them. `lua/README.md` says how.
//!
//! It uses nothing of the library: tests have this file, too.

const CONSTANTS: &str = include_str!("../../../lua/lib/constants.lua");

macro_rules! files {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../../lua/", $name, ".lua")))),*]
    };
}

/// The other files of `lua/`, by their names.
#[rustfmt::skip]
pub(super) const FILES: [(&str, &str); 43] = files! {
    "lock/acquire" "lock/adopt" "lock/break" "lock/confirm" "lock/downgrade" "lock/inspect" "lock/release" "lock/remove"
    "lock/renew"
    "all/acquire" "all/adopt" "all/raise" "all/release" "all/renew"
    "list/locks" "semaphore/permits"
    "task/change" "task/finish" "task/insert" "task/look" "task/next" "task/renew" "task/take"
    "lib/broken" "lib/ends" "lib/grant" "lib/hand_off" "lib/holders" "lib/mode" "lib/name" "lib/queue" "lib/refuse"
    "lib/release"
    "lib/shown" "lib/several" "lib/store" "lib/take" "lib/take_in_turn" "lib/takes" "lib/tasks" "lib/time" "lib/token"
    "lib/workers"
};

/// The script of that name, such as `lock/acquire`, with the libraries that it uses, and with literals in the place of
/// constants.
pub(crate) fn whole(script: &str) -> String {
    let mut whole = Whole {
        constants: constants(),
        placed: Vec::new(),
        text: String::new(),
    };
    whole.place_file(script);
    whole.text
}

struct Whole {
    constants: Vec<(&'static str, &'static str)>,
    placed: Vec<&'static str>,
    text: String,
}

impl Whole {
    /// Appends the file, unless it is there already.
    fn place_file(&mut self, name: &str) {
        let file = FILES.iter().find(|(known, _)| *known == name);
        let (name, code) = file.unwrap_or_else(|| panic!("there is no lua/{name}.lua"));
        if !self.placed.contains(name) {
            self.placed.push(name);
            self.place(code);
        }
    }

    /// Appends code without its comments, and in the place of `-- use:` the libraries that it names.
    fn place(&mut self, code: &str) {
        for line in code.lines() {
            if let Some(names) = line.strip_prefix("-- use: ") {
                for name in names.split(", ") {
                    self.place_file(&["lib/", name].concat());
                }
            } else if !line.trim_start().starts_with("--") && !line.is_empty() {
                self.place_line(line);
            }
        }
    }

    /// Appends a line with literals in the place of constants.
    fn place_line(&mut self, line: &str) {
        let mut rest = line;
        while let Some(start) = rest.find(is_of_a_constant) {
            let (before, from_word) = rest.split_at(start);
            let length = from_word.find(|c| !is_of_a_constant(c));
            let (word, behind) = from_word.split_at(length.unwrap_or(from_word.len()));
            let is_part = before.ends_with(is_of_a_word) || behind.starts_with(is_of_a_word);
            let mut constants = self.constants.iter().filter(|_| !is_part);
            let literal = constants.find(|(name, _)| *name == word);
            self.text.push_str(before);
            self.text
                .push_str(literal.map_or(word, |(_, literal)| literal));
            rest = behind;
        }
        self.text.push_str(rest);
        self.text.push('\n');
    }
}

fn is_of_a_constant(c: char) -> bool {
    c.is_ascii_uppercase() || c == '_'
}

fn is_of_a_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The names and literals of lines such as `local ONE, TWO = 1, 2`.
pub(super) fn constants() -> Vec<(&'static str, &'static str)> {
    let lines = CONSTANTS.lines();
    let lines = lines.filter_map(|line| line.strip_prefix("local ")?.split_once(" = "));
    lines
        .flat_map(|(names, literals)| names.split(", ").zip(literals.split(", ")))
        .collect()
}
