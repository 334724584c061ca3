//! Redis: the scripts of `lua/` run as they are, by the Lua that Redis has, on keys that are kept here.
//!
//! It has the commands that the scripts and the library use, and answers with Redis's words: 7.0 is what it is compared
//! with. A client speaks the second version of the protocol.

mod about;
mod channels;
mod cluster;
mod gossip;
mod group;
mod keyspace;
mod links;
mod lists;
mod log;
mod moves;
mod node;
mod numbers;
mod reply;
mod scripts;
mod sentinels;
mod single;
mod slots;
mod sorted;
mod state;
mod table;
mod texts;
mod users;
mod watch;
mod watched;

pub use cluster::Cluster;
pub use sentinels::Sentinels;
pub use single::Single;
