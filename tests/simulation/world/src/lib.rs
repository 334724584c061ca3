//! A world in one process: time, threads, machines and a network, in which a seed decides all that chance would decide.
//!
//! It knows nothing of crosslock. `library` builds crosslock on it, and `servers` are the servers in it.

pub mod service;
