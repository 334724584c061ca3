//! A model of crosslock's protocol: what scripts, clients and the network between them may do, in every order.
//!
//! See `docs/protocol_model.md` in the project's repository.

pub mod checker;
pub mod judge;
pub mod mutant;
pub mod server;
pub mod setup;
pub mod setups;
pub mod world;
