//! The scripts of `lua/`, put together as the server is sent them. `lua/README.md` says how.
//!
//! It uses nothing of the library: tests have this file, too.

const CONSTANTS: &str = include_str!("../../../lua/lib/constants.lua");

/// The other files of `lua/`, by their names.
pub(super) const FILES: [(&str, &str); 30] = [
    (
        "lock/acquire",
        include_str!("../../../lua/lock/acquire.lua"),
    ),
    ("lock/adopt", include_str!("../../../lua/lock/adopt.lua")),
    ("lock/break", include_str!("../../../lua/lock/break.lua")),
    (
        "lock/downgrade",
        include_str!("../../../lua/lock/downgrade.lua"),
    ),
    (
        "lock/inspect",
        include_str!("../../../lua/lock/inspect.lua"),
    ),
    (
        "lock/release",
        include_str!("../../../lua/lock/release.lua"),
    ),
    ("lock/remove", include_str!("../../../lua/lock/remove.lua")),
    ("lock/renew", include_str!("../../../lua/lock/renew.lua")),
    ("all/acquire", include_str!("../../../lua/all/acquire.lua")),
    ("all/adopt", include_str!("../../../lua/all/adopt.lua")),
    ("all/raise", include_str!("../../../lua/all/raise.lua")),
    ("all/release", include_str!("../../../lua/all/release.lua")),
    ("all/renew", include_str!("../../../lua/all/renew.lua")),
    ("list/locks", include_str!("../../../lua/list/locks.lua")),
    (
        "semaphore/permits",
        include_str!("../../../lua/semaphore/permits.lua"),
    ),
    ("lib/broken", include_str!("../../../lua/lib/broken.lua")),
    ("lib/grant", include_str!("../../../lua/lib/grant.lua")),
    (
        "lib/hand_off",
        include_str!("../../../lua/lib/hand_off.lua"),
    ),
    ("lib/holders", include_str!("../../../lua/lib/holders.lua")),
    ("lib/mode", include_str!("../../../lua/lib/mode.lua")),
    ("lib/name", include_str!("../../../lua/lib/name.lua")),
    ("lib/queue", include_str!("../../../lua/lib/queue.lua")),
    ("lib/refuse", include_str!("../../../lua/lib/refuse.lua")),
    ("lib/release", include_str!("../../../lua/lib/release.lua")),
    ("lib/shown", include_str!("../../../lua/lib/shown.lua")),
    ("lib/several", include_str!("../../../lua/lib/several.lua")),
    ("lib/take", include_str!("../../../lua/lib/take.lua")),
    (
        "lib/take_in_turn",
        include_str!("../../../lua/lib/take_in_turn.lua"),
    ),
    ("lib/time", include_str!("../../../lua/lib/time.lua")),
    ("lib/token", include_str!("../../../lua/lib/token.lua")),
];

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
