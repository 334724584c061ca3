//! The sequences of `corpus/`, which have names: each step, and what is answered and seen then.

mod parse;
mod seen;

use std::fs;
use std::path::Path;

use crate::server::{Answer, Message, Name, Owner};

use self::seen::seen;
use crate::steps::{At, Claim, OWNERS, Step};

/// One sequence.
pub struct Named {
    name: String,
    pub claims: Vec<Claim>,
    lines: Vec<Line>,
}

/// One step, as it is written; a time that passes is several.
struct Line {
    text: String,
    /// Who asks, if anybody does.
    owner: Option<Owner>,
    steps: Vec<(At, Step)>,
    expected: Vec<Expected>,
}

/// What is to be seen: of which name, by which word, and how it is.
struct Expected {
    at: usize,
    word: String,
    is: String,
}

/// What plays the steps of a sequence.
pub trait Plays {
    /// Says whether anything was done.
    fn play(&mut self, at: At, step: Step) -> Result<bool, String>;

    fn after(&self) -> After<'_>;
}

/// What there is to see after a step.
pub struct After<'a> {
    pub answer: Option<Answer>,
    pub messages: &'a [Message],
    pub names: &'a [Name],
}

/// All of them.
pub fn all() -> Vec<Named> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let files = corpus.read_dir().expect("the corpus");
    let texts = files.map(|file| fs::read_to_string(file.expect("a file").path()).expect("text"));
    texts.flat_map(|text| parse::sequences(&text)).collect()
}

/// Plays all of them, and says which went otherwise.
pub fn play_all(all: &[Named], mut play: impl FnMut(&Named) -> Result<(), String>) {
    assert!(all.len() > 20, "only {} sequences", all.len());
    let failures = all.iter().filter_map(|named| {
        let failure = play(named).err()?;
        Some(format!("{}: {failure}", named.name))
    });
    let failures: Vec<_> = failures.collect();
    let (count, all) = (failures.len(), all.len());
    assert!(
        failures.is_empty(),
        "{count} of {all}:\n{}",
        failures.join("\n")
    );
}

impl Named {
    pub fn play(&self, player: &mut impl Plays) -> Result<(), String> {
        // The last token that each owner was told.
        let mut tokens = [None; OWNERS as usize];
        for line in &self.lines {
            for (at, step) in &line.steps {
                let done = player.play(*at, *step);
                let done = done.map_err(|error| format!("{}: {error}", line.text))?;
                if !done {
                    return Err(format!("{}: isn't done", line.text));
                }
            }
            let after = player.after();
            let mut nobody = None;
            let last = line
                .owner
                .map_or(&mut nobody, |owner| &mut tokens[usize::from(owner)]);
            for Expected { at, word, is } in &line.expected {
                let seen = seen(&after, *at, word, *last);
                let agrees = is.strip_prefix('!').map_or(seen == *is, |not| seen != not);
                if !agrees {
                    return Err(format!("{}: {word} {seen:?}", line.text));
                }
            }
            *last = after.answer.and_then(seen::token).or(*last);
        }
        Ok(())
    }
}
