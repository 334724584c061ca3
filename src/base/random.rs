//! Random input for unit tests.

#![allow(dead_code, reason = "a build without engines needs less of it")]

use std::ops::{Deref, DerefMut, RangeInclusive};
use std::{env, thread};

use fastrand::Rng;

/// Characters of namespaces, and of hosts.
pub(crate) const WORD: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

const CASES: usize = 256;
/// Repeats one case.
const SEED: &str = "CROSSLOCK_TEST_SEED";

/// Tries a property with many random inputs; where it fails, the seed is printed by which the environment repeats it.
pub(crate) fn for_any(property: impl FnMut(&mut Random)) {
    for_cases(CASES, property);
}

/// The same with so many inputs.
pub(crate) fn for_cases(cases: usize, mut property: impl FnMut(&mut Random)) {
    if let Ok(seed) = env::var(SEED) {
        let seed = seed.parse().expect("a seed is a number");
        return property(&mut Random(Rng::with_seed(seed)));
    }
    for _ in 0..cases {
        let case = Case(fastrand::u64(..));
        property(&mut Random(Rng::with_seed(case.0)));
    }
}

/// The seed of a case, printed if that fails.
struct Case(u64);

impl Drop for Case {
    fn drop(&mut self) {
        if thread::panicking() {
            println!("{SEED}={} tries this case again", self.0);
        }
    }
}

/// Where the input of a case comes from.
pub(crate) struct Random(Rng);

impl Deref for Random {
    type Target = Rng;

    fn deref(&self) -> &Rng {
        &self.0
    }
}

impl DerefMut for Random {
    fn deref_mut(&mut self) -> &mut Rng {
        &mut self.0
    }
}

impl Random {
    pub(crate) fn one_of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.usize(..choices.len())].clone()
    }

    pub(crate) fn option<T>(&mut self, some: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.bool().then(|| some(self))
    }

    pub(crate) fn list<T>(
        &mut self,
        length: RangeInclusive<usize>,
        mut item: impl FnMut(&mut Self) -> T,
    ) -> Vec<T> {
        let length = self.usize(length);
        (0..length).map(|_| item(self)).collect()
    }

    /// A text of these characters.
    pub(crate) fn text_of(&mut self, alphabet: &str, length: RangeInclusive<usize>) -> String {
        let alphabet: Vec<char> = alphabet.chars().collect();
        let text = self.list(length, |random| random.one_of(&alphabet));
        text.into_iter().collect()
    }

    /// A text of any characters, half of it ASCII.
    pub(crate) fn text(&mut self, length: RangeInclusive<usize>) -> String {
        self.text_without(|_| false, length)
    }

    /// The same without some characters.
    pub(crate) fn text_without(
        &mut self,
        excluded: impl Fn(char) -> bool,
        length: RangeInclusive<usize>,
    ) -> String {
        let text = self.list(length, |random| {
            loop {
                let ascii = random.bool();
                let any = if ascii {
                    random.char(..='\x7f')
                } else {
                    random.char(..)
                };
                if !excluded(any) {
                    return any;
                }
            }
        });
        text.into_iter().collect()
    }
}
