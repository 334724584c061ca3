//! A real server, and the scripts on it.

use crosslock_protocol::server::{
    Answer, BROADCAST, Call, Ear, Inbox, Key, Messages, Names, Ticks,
};
use redis::{Cmd, Connection, FromRedisValue, Script, Value, cmd};

use super::keys::{BROKEN, FOREIGN, KEYS, Seen, TICK, channel_of, copies_of, inbox_of, keys_of};
use super::words::{Request, answer_of, message_of, millis};
use crate::place::Place;
use support::scripts::{ALL, text, whole};

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
    _server: Place,
}

/// What there was to see of a call.
pub(super) struct Heard {
    pub(super) answer: Answer,
    pub(super) messages: Messages,
    pub(super) seen: Seen,
}

impl Real {
    pub(super) fn start(server: Place, names: usize, inboxes: usize) -> Self {
        let mut admin = server.connection();
        let mut load = |code: String| {
            let digest: String = ask(&mut admin, cmd("SCRIPT").arg("LOAD").arg(&code));
            assert_eq!(digest, Script::new(&code).get_hash());
            digest
        };
        let digests = ALL.map(whole).into_iter().map(&mut load).collect();
        let [look, tick, copy] = [LOOK, TICK_BY, COPY].map(|code| load(code.to_owned()));
        let mut real = Real {
            scripts: server.connection(),
            subscriber: server.connection(),
            admin,
            digests,
            look,
            tick,
            copy,
            names: (0..names).map(keys_of).collect(),
            copies: (0..names).map(copies_of).collect(),
            ears: vec![Ear::Hears; inboxes],
            _server: server,
        };
        real.subscribe("SUBSCRIBE", END);
        real.subscribe("SUBSCRIBE", BROKEN);
        (0..inboxes).for_each(|inbox| real.subscribe("SUBSCRIBE", &channel_of(inbox)));
        real.allow();
        ask::<()>(&mut real.scripts, cmd("AUTH").arg(USER).arg("any"));
        real
    }

    /// Runs a script, and looks at what it leaves.
    pub(super) fn run(&mut self, names: Names, call: Call) -> Heard {
        let request = Request::of(names, call);
        let passed = if request.valued { KEYS } else { KEYS - 1 };
        let first = usize::from(names.first);
        let keys = &self.names[first..first + usize::from(names.count)];
        let keys = keys.iter().flat_map(|keys| keys[..passed].to_vec());
        let keys: Vec<_> = keys.collect();
        let digest = &self.digests[request.verb as usize];
        let script = script(digest, &keys, &request.arguments);
        let mut end = cmd("PUBLISH");
        end.arg(END).arg("");
        let look = self.look_command();
        let commands = [&script, &look, &end];
        let [answer, seen, _] = together(&mut self.scripts, commands);
        Heard {
            answer: answer_of(call, &answer),
            messages: self.messages(),
            seen: Seen::of(text(&seen)),
        }
    }

    fn look_command(&self) -> Cmd {
        script(&self.look, self.names.as_flattened(), &[])
    }

    pub(super) fn look(&mut self) -> Seen {
        let look = self.look_command();
        let [seen] = together(&mut self.scripts, [&look]);
        Seen::of(text(&seen))
    }

    // Messages

    /// What those hear to whom a connection leads.
    fn messages(&mut self) -> Messages {
        let mut messages = Messages::new();
        loop {
            let parts = hear(&mut self.subscriber);
            let [_, channel, message] = &parts[..] else {
                panic!("no message: {parts:?}");
            };
            if text(channel) == END {
                // Those of one break, in the order of their leases' ends: in a model they end together.
                let told = messages.iter().take_while(|one| one.inbox == BROADCAST);
                let told = told.count();
                messages[..told].sort_unstable_by_key(|one| one.owner);
                return messages;
            }
            let ear = self.ears.get(usize::from(inbox_of(text(channel))));
            if ear.is_none_or(|ear| *ear == Ear::Hears) {
                messages.push(message_of(text(channel), text(message)));
            }
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

    pub(super) fn forget(&mut self) {
        ask::<()>(&mut self.admin, cmd("DEL").arg(self.names.as_flattened()));
    }

    pub(super) fn delete(&mut self, name: u8, key: Key) {
        let at = match key {
            Key::Lock => 0,
            Key::Counter => 1,
            Key::Queue => 2,
            Key::Waiters => 3,
            Key::Readers => 4,
            Key::Shares => 5,
            Key::Value => 6,
        };
        let key = &self.names[usize::from(name)][at];
        ask::<()>(&mut self.admin, cmd("DEL").arg(key));
    }

    pub(super) fn lock_foreign(&mut self, name: u8, lasts: Option<Ticks>) {
        let lock = &self.names[usize::from(name)][0];
        let mut set = cmd("SET");
        set.arg(lock).arg(FOREIGN).arg("NX");
        if let Some(lasts) = lasts {
            set.arg("PX").arg(millis(lasts));
        }
        ask::<()>(&mut self.admin, &set);
    }

    pub(super) fn tick(&mut self) {
        let keys = [&self.names[..], &self.copies].concat();
        let tick = [TICK.to_string()];
        evaluate(&mut self.admin, &self.tick, keys.as_flattened(), &tick);
    }

    pub(super) fn copy(&mut self) {
        let keys = [&self.copies[..], &self.names].concat();
        evaluate(&mut self.admin, &self.copy, keys.as_flattened(), &[]);
    }

    pub(super) fn fail_over(&mut self) {
        let keys = [&self.names[..], &self.copies].concat();
        evaluate(&mut self.admin, &self.copy, keys.as_flattened(), &[]);
    }
}

fn ask<T: FromRedisValue>(connection: &mut Connection, command: &Cmd) -> T {
    command.query(connection).expect("a command of the test")
}

fn evaluate(connection: &mut Connection, digest: &str, keys: &[String], arguments: &[String]) {
    let command = script(digest, keys, arguments);
    ask::<()>(connection, &command);
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
