//! Makes a world that fails smaller, as long as it fails, and shows the history of the smallest.

use std::process::ExitCode;

use crate::children::child;
use crate::plan::Plan;
use crate::runner::{Options, Smaller};

pub fn run(seed: u64, options: &Options) -> ExitCode {
    let engine = options.engine_of(seed);
    let arguments = |smaller: &Smaller| {
        let mut arguments = vec![
            seed.to_string(),
            "--engine".to_owned(),
            engine.name().to_owned(),
        ];
        arguments.extend(smaller.arguments());
        arguments
    };
    let fails = |smaller: &Smaller| child(&arguments(smaller)).is_none();
    let mut smallest = options.smaller.clone();
    if !fails(&smallest) {
        println!("this world doesn't fail");
        return ExitCode::SUCCESS;
    }
    loop {
        let plan = smallest.of(Plan::of(seed, engine));
        let mut tried = tries(&plan, &smallest).into_iter();
        match tried.find(&fails) {
            Some(smaller) => smallest = smaller,
            None => break,
        }
    }
    let smallest = arguments(&smallest).join(" ");
    println!("the smallest that fails: simulate {smallest}");
    ExitCode::FAILURE
}

/// What could be a little smaller than this, the largest steps first.
fn tries(plan: &Plan, smaller: &Smaller) -> Vec<Smaller> {
    let mut tries = Vec::new();
    for trouble in &plan.troubles {
        let mut next = smaller.clone();
        next.without.push(format!("{trouble:?}"));
        tries.push(next);
    }
    let mut add = |count: usize, set: fn(&mut Smaller, usize)| {
        for less in [
            count / 2,
            count.saturating_sub(count / 10),
            count.saturating_sub(1),
        ] {
            if (1..count).contains(&less) {
                let mut next = smaller.clone();
                set(&mut next, less);
                tries.push(next);
            }
        }
    };
    add(plan.processes, |smaller, count| {
        smaller.processes = Some(count)
    });
    add(plan.threads, |smaller, count| smaller.threads = Some(count));
    add(plan.rounds, |smaller, count| smaller.rounds = Some(count));
    tries
}
