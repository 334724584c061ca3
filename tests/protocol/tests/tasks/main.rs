//! The rules of delay queues: what holds in all their states, with lost and late messages; and the scripts of
//! `lua/task/` beside them, on a real server.

#![allow(
    dead_code,
    unexpected_cfgs,
    unused_imports,
    clippy::allow_attributes,
    reason = "the files of the library are here as they are, and not all that uses them is"
)]

#[path = "../../../../src/base/mod.rs"]
mod base;
mod model;
#[path = "../scripts/place.rs"]
mod place;
mod real;
mod replay;
mod states;
mod steps;
#[path = "../../../../src/engine/rules/tasks/mod.rs"]
mod tasks;
