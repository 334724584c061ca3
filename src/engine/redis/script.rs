//! Scripts by their digest.

use ::redis::Cmd;

/// A script of `lua/`.
#[derive(Debug)]
pub(super) struct Script {
    code: &'static str,
    digest: String,
}

/// A script with its keys and arguments.
#[derive(Debug)]
pub(super) struct ScriptCall<'a> {
    script: &'a Script,
    keys: &'a [&'a str],
    arguments: &'a [&'a str],
}

/// A command that can be sent again in another form when the server asks for it.
pub(super) trait Command {
    fn command(&self) -> Cmd;

    /// What to send when the server doesn't know the script.
    fn in_full(&self) -> Option<Cmd> {
        None
    }
}

impl Script {
    pub(super) fn new(code: &'static str) -> Self {
        let digest = ::redis::Script::new(code).get_hash().to_owned();
        Script { code, digest }
    }

    pub(super) fn call<'a>(
        &'a self,
        keys: &'a [&'a str],
        arguments: &'a [&'a str],
    ) -> ScriptCall<'a> {
        ScriptCall {
            script: self,
            keys,
            arguments,
        }
    }
}

impl ScriptCall<'_> {
    fn as_command(&self, verb: &str, script: &str) -> Cmd {
        const USUAL_SIZE: usize = 256;
        let words = 3 + self.keys.len() + self.arguments.len();
        let mut command = Cmd::with_capacity(words, USUAL_SIZE);
        command
            .arg(verb)
            .arg(script)
            .arg(self.keys.len())
            .arg(self.keys)
            .arg(self.arguments);
        command
    }
}

impl Command for ScriptCall<'_> {
    fn command(&self) -> Cmd {
        self.as_command("EVALSHA", &self.script.digest)
    }

    fn in_full(&self) -> Option<Cmd> {
        Some(self.as_command("EVAL", self.script.code))
    }
}

impl Command for Cmd {
    fn command(&self) -> Cmd {
        self.clone()
    }
}
