//! What a server knows, and how it carries a command out that comes from a client or from a script.

use crosslock_world::service::Done;

use super::about::About;
use super::channels::{Channels, Sort};
use super::keyspace::{Bytes, Keyspace};
use super::reply::{Outcome, Reply, Words};
use super::slots::{Favour, Slots};
use super::table::{Command, Does, find};
use super::users::{Denied, Users};
use super::watched::{self, Watched};

#[derive(Debug)]
pub(super) struct State {
    pub(super) keys: Keyspace,
    pub(super) channels: Channels,
    pub(super) users: Users,
    /// The user for whom the command is carried out.
    pub(super) user: String,
    pub(super) about: About,
    /// Of a sentinel.
    pub(super) watched: Option<Watched>,
    /// Of a node of a cluster.
    pub(super) slots: Option<Slots>,
    /// That the client has asked for.
    pub(super) favour: Favour,
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
    pub(super) fn new(about: About, password: Option<&str>) -> Self {
        State {
            keys: Keyspace::default(),
            channels: Channels::default(),
            users: Users::new(password),
            user: String::new(),
            about,
            watched: None,
            slots: None,
            favour: Favour::default(),
            is_full: false,
            has_written: false,
            published: Vec::new(),
            done: Vec::new(),
        }
    }

    /// Finds a command, and says whether it may be carried out.
    pub(super) fn check(&self, words: &Words, from: From) -> Result<&'static Command, Reply> {
        let has = |command: &&Command| match self.about.mode {
            "sentinel" => watched::has(command.name),
            _ => command.name != "SENTINEL",
        };
        let command = find(&words[0]).filter(has);
        let command = command.ok_or_else(|| unknown(words, from))?;
        if !command.takes(words.len()) {
            return Err(wrong_number(command, from));
        }
        let is_of_connection = matches!(command.does, Does::Client(_));
        if from == From::Script && is_of_connection {
            return Err(Reply::error(
                "ERR This Redis command is not allowed from script",
            ));
        }
        let keys = command.keys_in(words);
        let channel = command.channel_in(words);
        if command.needs_user {
            let denied = self
                .users
                .denied(&self.user, &command.lower(), &keys, channel);
            denied.map_or(Ok(()), |denied| Err(refusal(denied, command, self, from)))?;
        }
        self.place(command, words, from)?;
        let goes_on = from == From::Script && self.has_written;
        let is_full = self.is_full && command.needs_memory && !goes_on;
        if is_full {
            let error = "OOM command not allowed when used memory > 'maxmemory'.";
            return Err(Reply::error(error));
        }
        if command.writes && self.keys.is_copy {
            return Err(Reply::error(
                "READONLY You can't write against a read only replica.",
            ));
        }
        Ok(command)
    }

    /// Carries a command out that needs no connection.
    pub(super) fn run(&mut self, words: &Words, from: From) -> Reply {
        let command = match self.check(words, from) {
            Ok(command) => command,
            Err(refusal) => return refusal,
        };
        match command.does {
            Does::Data(run) => self.carry_out(command, run, words),
            Does::Client(_) => Reply::error("ERR it needs a connection"),
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
}

fn unknown(words: &Words, from: From) -> Reply {
    if from == From::Script {
        return Reply::error("ERR Unknown Redis command called from script");
    }
    let shown = |word: &Bytes| String::from_utf8_lossy(word).into_owned();
    let behind: String = words[1..]
        .iter()
        .map(|word| format!("'{}' ", shown(word)))
        .collect();
    let name = shown(&words[0]);
    Reply::error(format!(
        "ERR unknown command '{name}', with args beginning with: {behind}"
    ))
}

fn wrong_number(command: &Command, from: From) -> Reply {
    if from == From::Script {
        return Reply::error("ERR Wrong number of args calling Redis command from script");
    }
    let name = command.lower();
    Reply::error(format!(
        "ERR wrong number of arguments for '{name}' command"
    ))
}

pub(super) fn unknown_subcommand(words: &Words) -> Reply {
    let [name, sub] = [&words[0], &words[1]].map(|word| String::from_utf8_lossy(word));
    let upper = name.to_uppercase();
    Reply::error(format!("ERR unknown subcommand '{sub}'. Try {upper} HELP."))
}

fn refusal(denied: Denied, command: &Command, state: &State, from: From) -> Reply {
    let (user, name) = (&state.user, command.lower());
    let text = match (denied, from) {
        (Denied::Command, From::Client) => {
            format!("NOPERM this user has no permissions to run the '{name}' command")
        }
        (Denied::Key, From::Client) => {
            "NOPERM this user has no permissions to access one of the keys used as arguments".to_owned()
        }
        (Denied::Channel, From::Client) => {
            "NOPERM this user has no permissions to access one of the channels used as arguments".to_owned()
        }
        (_, From::Script) if user.is_empty() => "NOAUTH Authentication required.".to_owned(),
        (Denied::Command, From::Script) => {
            "ERR The user executing the script can't run this command or subcommand".to_owned()
        }
        (Denied::Key, From::Script) => {
            "ERR The user executing the script can't access at least one of the keys mentioned in the command \
             arguments".to_owned()
        }
        (Denied::Channel, From::Script) => {
            "ERR The user executing the script can't publish to the channel mentioned in the command".to_owned()
        }
    };
    Reply::error(text)
}
