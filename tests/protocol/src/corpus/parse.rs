//! How the corpus is written: `docs/internals/protocol_model.md` says it for people.

use crate::server::{Ear, Key, Mode, Names, Owner, Ticks, Token, Wait};

use super::seen::ANSWER;
use super::{Expected, Line, Named};
use crate::steps::{At, Claim, End, NAMES, OWNERS, Step};

/// A lease, where nothing else is said.
const TTL: Ticks = 4;
/// Nobody is overdue before this.
const PROMISE: Ticks = 50;
/// An inbox that hears.
const INBOX: u8 = 0;
/// It has nothing and waits for nothing; it looks after a time that passes.
const LOOKER: Owner = OWNERS - 1;

/// All sequences of a text. One for several modes is as many.
pub(super) fn sequences(text: &str) -> Vec<Named> {
    let mut all = Vec::new();
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default());
    let mut lines = lines.filter(|line| !line.trim().is_empty()).peekable();
    while let Some(title) = lines.next() {
        let (name, claims) = title
            .split_once(':')
            .unwrap_or_else(|| panic!("no claims: {title}"));
        let mut body = String::new();
        while let Some(line) = lines.next_if(|line| line.starts_with(' ')) {
            body.push_str(line);
            body.push(';');
        }
        let (name, modes) = name.split_once('(').unwrap_or((name, "x)"));
        for mode in modes.trim_end_matches(')').split(' ') {
            let claims = claims.replace('*', mode);
            all.push(Named {
                name: format!("{} {mode}", name.trim()),
                claims: all_claims(&claims),
                lines: Script::default().lines(&body),
            });
        }
    }
    all
}

/// `a=x b=r c=2/3 d=x@01 e=x$`: two names, and a value.
fn all_claims(text: &str) -> Vec<Claim> {
    let name = |first| Claim {
        names: Names { first, count: 1 },
        mode: Mode::Exclusive,
        valued: false,
    };
    let mut claims = vec![name(0); OWNERS.into()];
    for word in text.split_whitespace() {
        let (owner, wants) = word.split_once('=').expect("who wants what");
        let wants = wants
            .strip_suffix('$')
            .map_or((wants, false), |wants| (wants, true));
        let ((mode, names), valued) = (wants.0.split_once('@').unwrap_or((wants.0, "0")), wants.1);
        let (first, count) = (
            number(&names[..1]),
            names.len().try_into().expect("a few names"),
        );
        let names = Names { first, count };
        claims[usize::from(owner_of(owner))] = Claim {
            names,
            mode: mode.parse().expect("a mode"),
            valued,
        };
    }
    let last = claims
        .iter()
        .map(|claim| claim.names.first + claim.names.count)
        .max();
    claims[usize::from(LOOKER)].names.count = last.unwrap_or(1).min(NAMES);
    claims
}

/// Who asks: `a tries`, `late a tries`.
fn owner_in(step: &str) -> Option<Owner> {
    let mut words = step.split_whitespace().filter(|word| *word != "late");
    words.next().filter(|word| word.len() == 1).map(owner_of)
}

fn owner_of(text: &str) -> Owner {
    match text.as_bytes() {
        [letter @ b'a'..=b'e'] => letter - b'a',
        _ => panic!("no owner: {text}"),
    }
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("no number: {text}"))
}

/// What was called so far, by its words, for late copies.
#[derive(Default)]
struct Script {
    calls: Vec<String>,
}

impl Script {
    fn lines(mut self, body: &str) -> Vec<Line> {
        let lines = body
            .split(';')
            .map(str::trim)
            .filter(|line| !line.is_empty());
        lines.map(|text| self.line(text)).collect()
    }

    /// `a tries ttl=2: got, has a`.
    fn line(&mut self, text: &str) -> Line {
        let (step, expected) = text.split_once(':').unwrap_or((text, ""));
        let expected = expected
            .split(',')
            .map(str::trim)
            .filter(|one| !one.is_empty());
        Line {
            text: text.to_owned(),
            owner: owner_in(step),
            steps: self.steps(step.trim()),
            expected: expected.map(expectation).collect(),
        }
    }

    fn steps(&mut self, text: &str) -> Vec<(At, Step)> {
        let words: Vec<_> = text.split_whitespace().collect();
        let (verb, at) = at_of(words[0]);
        let rest = &words[1..];
        let step = match verb {
            "tick" => return vec![(0, Step::Tick); number(rest[0])],
            "pass" => {
                self.calls.push(String::new());
                let look = Step::Release {
                    owner: Some(LOOKER),
                    end: End::Unknown,
                    keep: None,
                };
                let ticks = vec![(0, Step::Tick); number(rest[0])];
                return [ticks, vec![(0, look)]].concat();
            }
            "late" => {
                let mut calls = self.calls.iter().rev();
                let before = calls.position(|call| *call == rest.join(" "));
                let before = before.unwrap_or_else(|| panic!("not called before: {text}"));
                self.calls.push(rest.join(" "));
                return vec![(0, Step::Again(before))];
            }
            "permits" => Step::Permits,
            "break" => Step::Break,
            "forget" => return vec![(0, Step::Forget)],
            "copy" => return vec![(0, Step::Copy)],
            "fail_over" => return vec![(0, Step::FailOver)],
            "delete" => return vec![(at, Step::Delete(key_of(rest[0])))],
            "foreign" => return vec![(at, Step::Foreign(rest.first().map(|ticks| number(ticks))))],
            "inbox" if rest[1..] == ["gone"] => {
                return vec![(0, Step::Ear(number(rest[0]), Ear::Gone))];
            }
            owner => owner_step(owner_of(owner), rest),
        };
        self.calls
            .push(words.iter().take(2).copied().collect::<Vec<_>>().join(" "));
        vec![(at, step)]
    }
}

/// `break@1` is of the second name.
fn at_of(word: &str) -> (&str, At) {
    let (word, at) = word.split_once('@').unwrap_or((word, "0"));
    (word, number(at))
}

fn expectation(text: &str) -> Expected {
    let (word, is) = text.split_once(' ').unwrap_or((ANSWER, text));
    let (word, at) = at_of(word);
    let (word, is) = (word.to_owned(), is.to_owned());
    Expected {
        at: at.into(),
        word,
        is,
    }
}

fn owner_step(owner: Owner, words: &[&str]) -> Step {
    let options = Options(words);
    let (ttl, more) = (options.ticks("ttl").unwrap_or(TTL), options.number("more"));
    let release = |end| Step::Release {
        owner: Some(owner),
        end,
        keep: options.ticks("keep"),
    };
    match words[0] {
        "tries" => options.ask(owner, None),
        "waits" => options.ask(owner, Some(options.ticks("late").unwrap_or(PROMISE))),
        "renews" => renewal(owner, ttl),
        "looks" => renewal(owner, 0),
        "ends" => release(End::Clean { more }),
        "panics" => release(End::Panicked { more }),
        "leaves" => release(End::Unknown),
        "downgrades" => Step::Downgrade {
            owner: Some(owner),
            more,
            ttl,
        },
        "adopts" => Step::Adopt {
            owner,
            from: Some(owner_of(words[1])),
            more,
            ttl,
        },
        other => panic!("nobody {other}"),
    }
}

fn renewal(owner: Owner, ttl: Ticks) -> Step {
    let owner = Some(owner);
    Step::Renew { owner, ttl }
}

/// The words behind a verb: `ttl=2 inbox=none`.
struct Options<'a>(&'a [&'a str]);

impl Options<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        let mut options = self.0.iter().filter_map(|word| word.split_once('='));
        let option = options.find(|(key, _)| *key == name);
        option.map(|(_, value)| value)
    }

    fn ticks(&self, name: &str) -> Option<Ticks> {
        self.get(name).map(number)
    }

    fn number(&self, name: &str) -> Token {
        self.get(name).map_or(0, number)
    }

    fn ask(&self, owner: Owner, promise: Option<Ticks>) -> Step {
        let inbox = match self.get("inbox") {
            Some("none") => None,
            inbox => Some(inbox.map_or(INBOX, number)),
        };
        let ttl = self.ticks("ttl").unwrap_or(TTL);
        let wait = promise.map(|promise| Wait { promise, inbox });
        Step::Ask { owner, ttl, wait }
    }
}

fn key_of(text: &str) -> Key {
    let mut all = Key::ALL.into_iter();
    let key = all.find(|key| format!("{key:?}").to_lowercase() == text);
    key.unwrap_or_else(|| panic!("no key: {text}"))
}
