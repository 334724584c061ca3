//! Goes through all states of a setup.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use stateright::{Checker, HasDiscoveries, Model, Path, Property};

use crate::judge::{Excuse, Rule};
use crate::setup::Setup;
use crate::world::{Action, World};

/// What was found.
#[derive(Debug)]
pub struct Found {
    /// How many distinct states there are, as far as they were looked at.
    pub states: usize,
    /// How many steps the longest way to one of them has.
    pub depth: usize,
    pub took: Duration,
    /// Which rules were broken, and what led there.
    pub broken: Vec<(Rule, Vec<Action>)>,
    /// Which excuses were used.
    pub excuses: BTreeSet<Excuse>,
}

impl Model for Setup {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        world.actions(self, actions);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        Some(world.after(self, action))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let rules = Rule::properties().into_iter();
        rules.chain(Excuse::properties()).collect()
    }
}

/// How many threads go through the states.
const THREADS: usize = 2;

/// Looks at all states; or, with a rule, until that one is broken, and then by the shortest way to it or nearly so.
pub fn explore(setup: Setup, until: Option<Rule>) -> Found {
    let began = Instant::now();
    let builder = setup.checker().threads(THREADS);
    let Some(rule) = until else {
        // It keeps no more than the way to where it is, but what it finds is far away.
        return found(&builder.spawn_dfs().join(), began);
    };
    let rules = HasDiscoveries::AllOf([rule.name()].into());
    found(&builder.finish_when(rules).spawn_bfs().join(), began)
}

fn found(checker: &impl Checker<Setup>, began: Instant) -> Found {
    let discoveries = checker.discoveries();
    let path = |path: &Path<World, Action>| path.clone().into_actions();
    let broken = Rule::ALL.iter().filter_map(|rule| {
        let discovery = discoveries.get(rule.name());
        discovery.map(|found| (*rule, path(found)))
    });
    let excuses = Excuse::ALL.into_iter();
    Found {
        states: checker.unique_state_count(),
        depth: checker.max_depth(),
        took: began.elapsed(),
        broken: broken.collect(),
        excuses: excuses
            .filter(|excuse| discoveries.contains_key(excuse.name()))
            .collect(),
    }
}
