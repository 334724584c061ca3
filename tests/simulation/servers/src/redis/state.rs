//! What a server knows, and how it carries a command out that comes from a client or from a script.

use std::time::Duration;

use crosslock_world::service::Done;

use super::channels::{Channels, Sort};
use super::keyspace::{Bytes, Keyspace};
use super::reply::{Outcome, Reply, Words};
use super::slots::Slots;
use super::table::{Command, Does, find};
use super::watch::Watched;

/// A host and a port.
pub(super) type Address = (String, u16);

#[derive(Default)]
pub(super) struct State {
    pub(super) keys: Keyspace,
    pub(super) channels: Channels,
    pub(super) address: Address,
    /// `standalone`, `sentinel` or `cluster`.
    pub(super) mode: &'static str,
    /// How often the process was started.
    pub(super) starts: u64,
    /// Since when it runs, and the time, both since the world began; the first one ran before.
    pub(super) up_since: Option<Duration>,
    pub(super) now: Duration,
    /// Whom it copies.
    pub(super) master: Option<Address>,
    /// How much was written that replicas are sent.
    pub(super) offset: u64,
    /// Of a sentinel.
    pub(super) watched: Option<Watched>,
    /// Of a node of a cluster.
    pub(super) slots: Option<Slots>,
    /// Whether the command may be about a slot that comes.
    pub(super) asks: bool,
    /// Whether there is no memory left, so that what needs more is refused.
    pub(super) is_full: bool,
    /// Whether the script that runs has written anything.
    pub(super) has_written: bool,
    /// What was published since this was taken last.
    pub(super) published: Vec<(Sort, Bytes, Bytes)>,
    /// What is to be done, in this order.
    pub(super) done: Vec<Done>,
}

/// Who sends a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    Client,
    Script,
}

impl State {
    pub(super) fn new(address: Address, mode: &'static str) -> Self {
        State {
            address,
            mode,
            starts: 1,
            ..State::default()
        }
    }

    /// Finds a command, and says whether it may be carried out.
    pub(super) fn check(&self, words: &Words, from: From) -> Result<&'static Command, Reply> {
        let command = find(&words[0]).ok_or_else(|| Reply::error("ERR unknown command"))?;
        let refused = |text: &'static str| Err(Reply::error(text));
        if !command.takes(words.len()) {
            return refused("ERR wrong number of arguments");
        }
        if from == From::Script && matches!(command.does, Does::Client(_)) {
            return refused("ERR This Redis command is not allowed from script");
        }
        self.place(command, words, from)?;
        let goes_on = from == From::Script && self.has_written;
        if self.is_full && command.needs_memory && !goes_on {
            return refused("OOM command not allowed when used memory > 'maxmemory'.");
        }
        if command.writes && self.keys.is_copy {
            return refused("READONLY You can't write against a read only replica.");
        }
        Ok(command)
    }

    /// Carries a command of a script out.
    pub(super) fn run(&mut self, words: &Words) -> Reply {
        match self.check(words, From::Script) {
            Ok(command) => match command.does {
                Does::Data(run) => self.carry_out(command, run, words),
                Does::Client(_) => Reply::error("ERR it needs a connection"),
            },
            Err(refusal) => refusal,
        }
    }

    pub(super) fn carry_out(
        &mut self,
        command: &Command,
        run: fn(&mut State, &Words) -> Outcome,
        words: &Words,
    ) -> Reply {
        let keys = command.keys_in(words);
        keys.iter().for_each(|key| self.keys.expire(key));
        let outcome = run(self, words);
        if command.writes {
            self.has_written |= outcome.is_ok();
            keys.iter().for_each(|key| self.keys.written(key));
        }
        outcome.unwrap_or_else(|error| error)
    }

    /// A node of a cluster, or a replica, is known by its address; this life of a server by that and its number.
    fn run_id(&self) -> String {
        let text = format!("{:?} {}", self.address, self.starts);
        sha1_smol::Sha1::from(text).digest().to_string()
    }
}

/// INFO, of which the run id and the uptime are read.
pub(super) fn info(state: &mut State, _: &Words) -> Outcome {
    let id = state.run_id();
    let ran = state
        .up_since
        .map_or(Duration::MAX, |since| state.now.saturating_sub(since));
    let uptime = ran.as_secs().min(1_000_000);
    Ok(Reply::text(format!(
        "# Server\r\nrun_id:{id}\r\nuptime_in_seconds:{uptime}\r\n"
    )))
}

/// What HELLO answers.
pub(super) fn greeting(state: &State) -> Reply {
    let role = match state.master {
        None => "master",
        Some(_) => "replica",
    };
    let parts = ["server", "redis", "version", "7.0.15", "mode", state.mode];
    Reply::texts(parts.into_iter().chain(["role", role]))
}

pub(super) fn role(state: &mut State, _: &Words) -> Outcome {
    let offset = Reply::Int(i64::try_from(state.offset).unwrap_or(0));
    Ok(Reply::List(match &state.master {
        None => vec![Reply::text("master"), offset, Reply::List(Vec::new())],
        Some((host, port)) => {
            let (host, port) = (Reply::text(host.clone()), Reply::Int((*port).into()));
            let link = Reply::text("connected");
            vec![Reply::text("slave"), host, port, link, offset]
        }
    }))
}

pub(super) fn time(state: &mut State, _: &Words) -> Outcome {
    let wall = state.keys.wall;
    let parts = [wall.as_secs().to_string(), wall.subsec_micros().to_string()];
    Ok(Reply::texts(parts))
}
