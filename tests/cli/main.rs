//! The program `crosslock`: what its verbs print, with which status they end, and what becomes of commands under a
//! lock.

mod bench;
mod breaks;
mod command;
mod death;
mod doctor;
mod documents;
mod elections;
mod holders;
mod loss;
mod ls_and_show;
mod signals;
mod statuses;
mod tasks;
mod terminal;
mod tool;
mod wait_and_test;
mod watch;

use std::time::Duration;

/// Far more than anything here takes, even on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);
