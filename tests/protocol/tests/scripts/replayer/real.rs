//! A real server, and the scripts on it.

use crosslock_protocol::server::{Answer, Call, Ear, Inbox, Names};
use crosslock_protocol::steps::{At, INBOXES, Step};
use redis::{Cmd, Connection, FromRedisValue, Script, Value, cmd};
use support::RedisServer;
use support::scripts::{ALL, text, whole};

use super::calls::{answer_of, request};
use super::words::{BROKEN, FOREIGN, KEYS, Seen, TICK, channel_of, keys_of, millis};

const LOOK: &str = include_str!("look.lua");
const TICK_BY: &str = include_str!("tick.lua");
const COPY: &str = include_str!("copy.lua");

/// The user that runs the scripts, which mustn't publish everywhere.
const USER: &str = "scripts";
/// The channel on which the subscriber hears that there is nothing more to hear.
const END: &str = "end";

pub(super) struct Real {
    /// May do everything.
    admin: Connection,
    scripts: Connection,
    subscriber: Connection,
    /// Of all scripts, in the order of [`Verb`](support::scripts::Verb).
    digests: Vec<String>,
    look: String,
    tick: String,
    copy: String,
    names: Vec<[String; KEYS]>,
    copies: Vec<[String; KEYS]>,
    pub(super) ears: Vec<Ear>,
    _server: RedisServer,
}

/// What there was to see of a call.
pub(super) struct Heard {
    pub(super) answer: Answer,
    /// Channels, and what was published there.
    pub(super) messages: Vec<(String, String)>,
    pub(super) seen: Seen,
}

impl Real {
    pub(super) fn start(names: usize) -> Self {
        let server = RedisServer::start();
        let mut admin = server.connection();
        let mut load = |code: String| {
            let digest: String = ask(&mut admin, cmd("SCRIPT").arg("LOAD").arg(&code));
            assert_eq!(digest, Script::new(&code).get_hash());
            digest
        };
        let digests = ALL.map(whole).into_iter().map(&mut load).collect();
        let [look, tick, copy] = [LOOK, TICK_BY, COPY].map(|code| load(code.to_owned()));
        let keys_of = |kind| (0..names).map(move |name| keys_of(kind, name)).collect();
        let mut real = Real {
            scripts: server.connection(),
            subscriber: server.connection(),
            admin,
            digests,
            look,
            tick,
            copy,
            names: keys_of("name"),
            copies: keys_of("copy"),
            ears: vec![Ear::Hears; INBOXES.into()],
            _server: server,
        };
        real.subscribe("SUBSCRIBE", END);
        real.subscribe("SUBSCRIBE", BROKEN);
        for inbox in 0..real.ears.len() {
            real.subscribe("SUBSCRIBE", &channel_of(inbox));
        }
        real.allow();
        ask::<()>(&mut real.scripts, cmd("AUTH").arg(USER).arg("any"));
        real
    }

    /// Runs a script, and looks at what it leaves.
    pub(super) fn run(&mut self, names: Names, call: Call) -> Heard {
        let (verb, arguments, valued) = request(names, call);
        let passed = if valued { KEYS } else { KEYS - 1 };
        let keys = names.of(&mut self.names).iter();
        let keys: Vec<_> = keys.flat_map(|keys| keys[..passed].to_vec()).collect();
        let script = script(&self.digests[verb as usize], &keys, &arguments);
        let mut end = cmd("PUBLISH");
        end.arg(END).arg("");
        let commands = [&script, &self.look_command(), &end];
        let [answer, seen, _] = together(&mut self.scripts, commands);
        Heard {
            answer: answer_of(call, &answer),
            messages: self.messages(),
            seen: Seen::of(text(&seen)),
        }
    }

    fn look_command(&self) -> Cmd {
        script(&self.look, self.names.as_flattened(), &[TICK.to_string()])
    }

    pub(super) fn look(&mut self) -> Seen {
        let look = self.look_command();
        let [seen] = together(&mut self.scripts, [&look]);
        Seen::of(text(&seen))
    }

    // Messages

    /// What those hear to whom a connection leads.
    fn messages(&mut self) -> Vec<(String, String)> {
        let mut messages = Vec::new();
        loop {
            let parts = hear(&mut self.subscriber);
            let [_, channel, message] = &parts[..] else {
                panic!("no message: {parts:?}");
            };
            let channel = text(channel).to_owned();
            if channel == END {
                // Those of one break, in the order of their leases' ends: in a model they end together.
                let told = messages.iter().take_while(|(channel, _)| channel == BROKEN);
                let told = told.count();
                messages[..told].sort_unstable();
                return messages;
            }
            messages.push((channel, text(message).to_owned()));
        }
    }

    pub(super) fn hear(&mut self, inbox: Inbox, ear: Ear) {
        let channel = channel_of(inbox.into());
        let before = std::mem::replace(&mut self.ears[usize::from(inbox)], ear);
        match (before == Ear::Gone, ear == Ear::Gone) {
            (true, false) => self.subscribe("SUBSCRIBE", &channel),
            (false, true) => self.subscribe("UNSUBSCRIBE", &channel),
            _ => {}
        }
        if (before == Ear::Forbidden) != (ear == Ear::Forbidden) {
            self.allow();
        }
    }

    fn subscribe(&mut self, verb: &str, channel: &str) {
        let packed = cmd(verb).arg(channel).get_packed_command();
        let sent = self.subscriber.send_packed_command(&packed);
        sent.expect("subscribe");
        let answer = hear(&mut self.subscriber);
        assert_eq!(text(&answer[0]), verb.to_lowercase());
    }

    /// Lets the scripts publish to all channels but those that are forbidden.
    fn allow(&mut self) {
        let mut user = cmd("ACL");
        user.arg("SETUSER").arg(USER);
        user.arg(&["on", "nopass", "~*", "+@all", "resetchannels"]);
        user.arg(format!("&{END}")).arg(format!("&{BROKEN}"));
        for (inbox, ear) in self.ears.iter().enumerate() {
            if *ear != Ear::Forbidden {
                user.arg(format!("&{}", channel_of(inbox)));
            }
        }
        ask::<()>(&mut self.admin, &user);
    }

    // What nobody asked for

    /// All names and copies are as if they had never been there.
    pub(super) fn flush(&mut self) {
        let keys = [&self.names[..], &self.copies].concat();
        ask::<()>(&mut self.admin, cmd("DEL").arg(keys.as_flattened()));
    }

    pub(super) fn suffer(&mut self, at: At, step: Step) {
        let all = [&self.names[..], &self.copies].concat();
        let copied = [&self.copies[..], &self.names].concat();
        let keys = &self.names[usize::from(at)];
        let command = match step {
            Step::Ear(inbox, ear) => return self.hear(inbox, ear),
            Step::Tick => script(&self.tick, all.as_flattened(), &[TICK.to_string()]),
            Step::Forget => cmd("DEL").arg(self.names.as_flattened()).clone(),
            Step::Copy => script(&self.copy, copied.as_flattened(), &[]),
            Step::FailOver => script(&self.copy, all.as_flattened(), &[]),
            Step::Delete(key) => cmd("DEL").arg(&keys[key as usize]).clone(),
            Step::Foreign(lasts) => {
                let mut set = cmd("SET");
                set.arg(&keys[0]).arg(FOREIGN).arg("NX");
                if let Some(lasts) = lasts {
                    set.arg("PX").arg(millis(lasts));
                }
                set
            }
            call => unreachable!("{call:?} is asked for"),
        };
        ask::<()>(&mut self.admin, &command);
    }
}

fn ask<T: FromRedisValue>(connection: &mut Connection, command: &Cmd) -> T {
    command.query(connection).expect("a command of the test")
}

fn script(digest: &str, keys: &[String], arguments: &[String]) -> Cmd {
    let mut command = cmd("EVALSHA");
    command.arg(digest).arg(keys.len()).arg(keys).arg(arguments);
    command
}

/// Sends all commands at once: a sequence is long, and each way to the server takes as long as a script.
fn together<const N: usize>(connection: &mut Connection, commands: [&Cmd; N]) -> [Value; N] {
    let mut packed = Vec::new();
    for command in commands {
        command.write_packed_command(&mut packed);
    }
    let sent = connection.send_packed_command(&packed);
    sent.expect("send");
    // All of them are read, also behind one that failed.
    let answers = commands.map(|_| connection.recv_response());
    answers.map(|answer| answer.expect("an answer to a script"))
}

fn hear(connection: &mut Connection) -> Vec<Value> {
    match connection.recv_response().expect("a message") {
        Value::Array(parts) => parts,
        other => panic!("no message: {other:?}"),
    }
}
