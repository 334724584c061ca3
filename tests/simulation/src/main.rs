//! Runs crosslock in simulated worlds: `simulate SEED` repeats one, `simulate --seeds N` runs many.

mod children;
mod events;
mod judge;
mod messages;
mod places;
mod plan;
mod runner;
mod scenes;
mod shrink;
mod steps;
mod trouble;
mod work;
mod world;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match runner::Options::of(&arguments) {
        Ok(options) => runner::run(&options),
        Err(text) => {
            eprintln!("{text}\n\n{}", runner::USAGE);
            ExitCode::from(2)
        }
    }
}
