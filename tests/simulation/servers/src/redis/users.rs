//! Who may do what: as much of access lists as takes a command or a channel away from a client.

use std::collections::{BTreeMap, BTreeSet};

use super::keyspace::Bytes;
use super::reply::{OK, Outcome, Reply, Words};
use super::state::State;
use super::texts::matches;

#[derive(Debug)]
pub(super) struct Users(BTreeMap<String, User>);

#[derive(Clone, Debug, Default)]
struct User {
    is_on: bool,
    needs_no_password: bool,
    passwords: BTreeSet<Bytes>,
    keys: Vec<Bytes>,
    channels: Vec<Bytes>,
    all_commands: bool,
    /// Those that differ from that, in lower case.
    commands: BTreeSet<String>,
}

/// What a user may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Denied {
    Command,
    Key,
    Channel,
}

pub(super) const DEFAULT: &str = "default";

impl Users {
    /// One that may do everything; with a password, if there is one.
    pub(super) fn new(password: Option<&str>) -> Self {
        let all = vec![b"*".to_vec()];
        let default = User {
            is_on: true,
            needs_no_password: password.is_none(),
            passwords: password
                .iter()
                .map(|word| word.as_bytes().to_vec())
                .collect(),
            keys: all.clone(),
            channels: all,
            all_commands: true,
            commands: BTreeSet::new(),
        };
        Users(BTreeMap::from([(DEFAULT.to_owned(), default)]))
    }

    /// The user of a connection that hasn't said who it is.
    pub(super) fn at_first(&self) -> Option<String> {
        let default = self.0.get(DEFAULT)?;
        (default.is_on && default.needs_no_password).then(|| DEFAULT.to_owned())
    }

    /// AUTH, with a user or without.
    pub(super) fn log_in(&self, words: &[Bytes]) -> Result<String, Reply> {
        let (name, password) = match words {
            [password] => (DEFAULT.to_owned(), password),
            [name, password] => (String::from_utf8_lossy(name).into_owned(), password),
            _ => return Err(Reply::error("ERR syntax error")),
        };
        let user = self.0.get(&name).filter(|user| user.is_on);
        if words.len() == 1 && user.is_some_and(|user| user.needs_no_password) {
            let error = "ERR AUTH <password> called without any password configured for the default user. \
                         Are you sure your configuration is correct?";
            return Err(Reply::error(error));
        }
        let is_right =
            user.is_some_and(|user| user.needs_no_password || user.passwords.contains(password));
        let error = "WRONGPASS invalid username-password pair or user is disabled.";
        is_right.then_some(name).ok_or_else(|| Reply::error(error))
    }

    pub(super) fn denied(
        &self,
        user: &str,
        command: &str,
        keys: &[&Bytes],
        channel: Option<&Bytes>,
    ) -> Option<Denied> {
        let Some(user) = self.0.get(user) else {
            return Some(Denied::Command);
        };
        let any = |patterns: &[Bytes], text: &[u8]| patterns.iter().any(|one| matches(one, text));
        if user.all_commands == user.commands.contains(command) {
            Some(Denied::Command)
        } else if !keys.iter().all(|key| any(&user.keys, key)) {
            Some(Denied::Key)
        } else if !channel.is_none_or(|channel| any(&user.channels, channel)) {
            Some(Denied::Channel)
        } else {
            None
        }
    }
}

impl User {
    fn apply(&mut self, rule: &str) -> Option<()> {
        match rule {
            "on" => self.is_on = true,
            "off" => self.is_on = false,
            "nopass" => self.needs_no_password = true,
            "resetkeys" => self.keys.clear(),
            "allkeys" => self.keys = vec![b"*".to_vec()],
            "resetchannels" => self.channels.clear(),
            "allchannels" => self.channels = vec![b"*".to_vec()],
            "+@all" | "allcommands" => (self.all_commands, self.commands) = (true, BTreeSet::new()),
            "-@all" | "nocommands" => (self.all_commands, self.commands) = (false, BTreeSet::new()),
            _ => {
                let rest = rule.get(1..)?;
                match rule.as_bytes().first()? {
                    b'>' => drop(self.passwords.insert(rest.into())),
                    b'~' => self.keys.push(rest.into()),
                    b'&' => self.channels.push(rest.into()),
                    sign @ (b'+' | b'-') => self.allow(&rest.to_lowercase(), *sign == b'+'),
                    _ => return None,
                }
            }
        }
        Some(())
    }

    fn allow(&mut self, command: &str, may: bool) {
        if may == self.all_commands {
            self.commands.remove(command);
        } else {
            self.commands.insert(command.to_owned());
        }
    }
}

/// ACL.
pub(super) fn ask(state: &mut State, words: &Words) -> Outcome {
    match words[1].to_ascii_uppercase().as_slice() {
        b"WHOAMI" => Ok(Reply::text(state.user.clone())),
        b"SETUSER" if words.len() > 2 => {
            let name = String::from_utf8_lossy(&words[2]).into_owned();
            let mut user = state.users.0.get(&name).cloned().unwrap_or_default();
            for rule in &words[3..] {
                let rule = String::from_utf8_lossy(rule);
                let error = || {
                    Reply::error(format!(
                        "ERR Error in ACL SETUSER modifier '{rule}': Syntax error"
                    ))
                };
                user.apply(&rule).ok_or_else(error)?;
            }
            state.users.0.insert(name, user);
            Ok(OK)
        }
        b"DELUSER" => {
            let names = words[2..].iter().map(|name| String::from_utf8_lossy(name));
            let gone = names.filter(|name| state.users.0.remove(&**name).is_some());
            Ok(Reply::count(gone.count()))
        }
        _ => Err(super::state::unknown_subcommand(words)),
    }
}
