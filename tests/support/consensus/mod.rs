//! Servers of a kind that decide together: one, or a set of several.
//!
//! A [`Kind`] says what its servers are, and `etcd` and `zookeeper` have what else a test can do with one of theirs.

mod front;
mod server;
mod set;

pub(super) use front::{Front, local};
pub use server::Server;
pub use set::ServerSet;

use std::fmt::Debug;

/// A kind of servers, and what it has to know of each of its own.
pub trait Kind: Debug + Sized {
    fn is_ready(server: &Server<Self>) -> bool;

    /// Returns the URL with these hosts of all locks below `root`.
    fn url(server: &Server<Self>, hosts: &str, root: &str) -> String;

    /// Returns which server leads, as it says itself and most others say.
    fn leader(members: &[Server<Self>]) -> Option<usize>;
}

const ATTEMPTS: usize = 30;

/// Starts servers by `launch`, and waits until all are ready. If a port is taken meanwhile, all are started anew.
pub(super) fn start<K: Kind>(launch: impl Fn() -> Vec<Server<K>>) -> Vec<Server<K>> {
    let servers = (0..ATTEMPTS).find_map(|_| {
        let servers = launch();
        let ready = servers.iter().all(|server| server.wait().is_ok());
        ready.then_some(servers)
    });
    servers.expect("free ports")
}
