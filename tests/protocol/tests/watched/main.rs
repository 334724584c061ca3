//! The watched value: in no order of what happens does a thread sleep on although another value was stored, and every
//! thread that returns has the lock and a value that fits.
//!
//! It isn't compared with the library step by step, as the scripts and rules are: it shows that what
//! `src/primitives/watched.rs` and the watches of the engines do is enough.

mod model;
mod setups;
mod states;
mod storers;
mod waiters;
