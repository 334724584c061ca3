//! What the benches share: places and locks, processes that contend, and the table of what came out.
//!
//! A bench is a list of [`Subject`]s: a row's name, and what measures one round of it. [`Table::run`] runs their rounds
//! in turns, and prints the medians and the ratios to each subject's floor.

// Every bench compiles all of this and uses its own part.
#![allow(dead_code, unused_imports)]

mod arguments;
mod contest;
mod lock;
#[path = "../../src/engine/redis/lua.rs"]
mod lua;
mod place;
mod record;
mod redis_locks;
mod server;
mod table;
mod usage;
mod worker;

pub(crate) use arguments::{argument, has, option, words};
pub(crate) use contest::{Outcome, contest};
pub(crate) use lock::{Held, Lock, Opened, cycles, ours, timed};
pub(crate) use place::{Place, ask, pin_places, spread_places};
pub(crate) use redis_locks::{Floor, Pings, Scripts};
pub(crate) use server::{Server, connect, pin};
pub(crate) use table::{
    Column, MAX, P50, P99, Round, Subject, Table, column, per, ratio, ratio_of,
};
pub(crate) use usage::{Counting, Usage, cpu_time};
pub(crate) use worker::{Cycle, Inside, TIMED, Task, Worker, monotonic, serve, sleep_until};
