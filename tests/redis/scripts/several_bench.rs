//! Several locks of a server, seen through the scripts.

use redis::{RedisResult, Value};

use super::TTL;
use super::ask::{Ask, released};
use super::bench::{Bench, KEYS};
use super::seen::Seen;
use support::RedisServer;
use support::scripts::{Acquired, Verb};

pub(crate) struct Several(pub(crate) Vec<Bench>);

impl Several {
    pub(crate) fn new(server: &RedisServer, names: usize) -> Self {
        Several((0..names).map(|_| Bench::new(server)).collect())
    }

    fn run(&mut self, verb: Verb, names: &[usize], arguments: &[String]) -> RedisResult<Value> {
        let keys = |name: &usize| self.0[*name].keys().into_iter().take(KEYS);
        let keys: Vec<_> = names.iter().flat_map(keys).collect();
        self.0[0].run_on(verb, &keys, arguments)
    }

    pub(crate) fn try_ask(&mut self, names: &[usize], ask: Ask<'_>) -> RedisResult<Value> {
        self.run(Verb::AcquireAll, names, &ask.arguments())
    }

    pub(crate) fn ask(&mut self, names: &[usize], ask: Ask<'_>) -> Acquired {
        Acquired::of(&self.try_ask(names, ask).expect("acquire all"))
    }

    #[track_caller]
    pub(crate) fn token(&mut self, names: &[usize], owner: &str) -> u64 {
        let answer = self.ask(names, Ask::once(owner));
        answer.token().unwrap_or_else(|| panic!("{answer:?}"))
    }

    pub(crate) fn release(&mut self, names: &[usize], owner: &str, token: Option<u64>) -> bool {
        self.release_answer(names, owner, token) == 1
    }

    pub(crate) fn release_answer(
        &mut self,
        names: &[usize],
        owner: &str,
        token: Option<u64>,
    ) -> i64 {
        let counter = token.map_or(0, |token| token + 1).to_string();
        let arguments = [owner.to_owned(), counter, "x".to_owned()];
        released(&self.run(Verb::ReleaseAll, names, &arguments))
    }

    /// What `all/raise.lua` answers: 1 raised, 0 not the owner's, 2 broken.
    pub(crate) fn raise(&mut self, names: &[usize], owner: &str, token: u64) -> i64 {
        let arguments = [owner.to_owned(), TTL.to_string(), token.to_string()];
        match self.run(Verb::RaiseAll, names, &arguments) {
            Ok(Value::Int(answer)) => answer,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn seen(&mut self) -> Vec<Seen> {
        self.0.iter_mut().map(Bench::seen).collect()
    }

    pub(crate) fn holders(&mut self) -> Vec<Option<String>> {
        self.0.iter_mut().map(|bench| bench.contents().0).collect()
    }

    pub(crate) fn counters(&mut self) -> Vec<Option<u64>> {
        self.0.iter_mut().map(|bench| bench.contents().1).collect()
    }

    pub(crate) fn lines(&mut self) -> Vec<Vec<String>> {
        let line = |bench: &mut Bench| bench.seen().line().into_iter().map(str::to_owned).collect();
        self.0.iter_mut().map(line).collect()
    }

    /// None of the names is held by `owner`, nor waited for.
    #[track_caller]
    pub(crate) fn assert_has_none(&mut self, owner: &str) {
        let holders = self.holders();
        assert!(!holders.contains(&Some(owner.to_owned())), "{holders:?}");
        let lines = self.lines().concat();
        assert!(!lines.contains(&owner.to_owned()), "{lines:?}");
    }
}
