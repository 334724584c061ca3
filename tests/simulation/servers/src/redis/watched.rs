//! What a sentinel tells of the master that it watches.

use super::reply::{Outcome, Reply, Words};
use super::state::{State, unknown_subcommand};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Watched {
    pub(super) name: String,
    /// Where the master is.
    pub(super) address: (String, u16),
    /// Where SENTINEL MASTER says that it is: while a failover isn't done, this is the old one, with the new epoch.
    pub(super) shown: (String, u16),
    pub(super) epoch: u64,
    pub(super) replicas: usize,
    pub(super) is_down: bool,
}

/// The commands that a sentinel has.
pub(super) fn has(name: &str) -> bool {
    let all = [
        "AUTH",
        "CLIENT",
        "HELLO",
        "INFO",
        "PING",
        "QUIT",
        "ROLE",
        "SENTINEL",
        "SUBSCRIBE",
        "UNSUBSCRIBE",
    ];
    all.contains(&name)
}

impl Watched {
    fn fields(&self) -> Reply {
        let (host, port) = &self.shown;
        let flags = if self.is_down {
            "s_down,master"
        } else {
            "master"
        };
        Reply::texts([
            "name",
            &self.name,
            "ip",
            host,
            "port",
            &port.to_string(),
            "flags",
            flags,
            "config-epoch",
            &self.epoch.to_string(),
            "num-slaves",
            &self.replicas.to_string(),
            "num-other-sentinels",
            "2",
            "quorum",
            "2",
        ])
    }
}

/// SENTINEL.
pub(super) fn ask(state: &mut State, words: &Words) -> Outcome {
    let Some(watched) = &state.watched else {
        return Err(Reply::error("ERR it watches nothing"));
    };
    let is_known = words
        .get(2)
        .is_some_and(|name| *name == watched.name.as_bytes());
    match words[1].to_ascii_uppercase().as_slice() {
        b"MASTERS" => Ok(Reply::List(vec![watched.fields()])),
        b"MASTER" if is_known => Ok(watched.fields()),
        b"MASTER" => Err(Reply::error("ERR No such master with that name")),
        b"GET-MASTER-ADDR-BY-NAME" if is_known => {
            let (host, port) = &watched.address;
            Ok(Reply::texts([host.clone(), port.to_string()]))
        }
        b"GET-MASTER-ADDR-BY-NAME" => Ok(Reply::NoList),
        _ => Err(unknown_subcommand(words)),
    }
}
