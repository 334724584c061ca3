//! The rules of delay queues beside the scripts of `lua/task/`, on a real server.

#![allow(
    dead_code,
    unexpected_cfgs,
    unused_imports,
    clippy::allow_attributes,
    reason = "the files of the library are here as they are, and not all that uses them is"
)]

#[path = "../../../../src/base/mod.rs"]
mod base;
mod real;
mod replay;
mod steps;
#[path = "../../../../src/engine/rules/tasks/mod.rs"]
mod tasks;
