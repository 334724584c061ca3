//! A model of the scripts in `lua/`, and what is played on it and on the real ones.
//!
//! See `docs/internals/protocol_model.md` in the project's repository.

pub mod corpus;
pub mod players;
pub mod server;
pub mod steps;
