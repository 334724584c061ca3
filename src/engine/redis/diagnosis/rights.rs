//! What this user may do.
//!
//! A server checks a user's rights after the number of a command's arguments, and before anything else. So each command
//! is sent to a key that holds a text, on which those for queues, tables and sets fail without a trace: an error of any
//! other kind than a refusal shows that it is allowed.

use std::sync::Arc;

use ::redis::{Cmd, Value};
use uuid::Uuid;

use super::Probe;
use crate::base::{Finding, Key, Namespace, Result, sys};
use crate::engine::redis::keys::{Keys, channel, slot_of, tag_of};
use crate::engine::redis::{failure::Failure, settings::Kind};

const CHECK: &str = "rights";
const INBOX: &str = "inbox";

/// What is found where nothing is missing.
const ALL: &str = "this user is allowed everything that locks need";

/// How the key is made: it expires whatever happens next.
const MAKE: &str = "SET KEY text PX 60000";

/// What the scripts and the library send. `KEY` and `CHANNEL` stand for ours. The last ones end it.
const LOCKS: &str = "PING; TIME; GET KEY; MGET KEY; EXISTS KEY; PTTL KEY; PEXPIRE KEY 60000; INCR KEY; LINDEX KEY 0; \
    LLEN KEY; LPOP KEY; LRANGE KEY 0 0; LREM KEY 0 text; RPUSH KEY text; HGET KEY text; HGETALL KEY; HSET KEY text \
    text; HDEL KEY text; EVAL return(1) 1 KEY; EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 1 KEY; DEL KEY";

/// What those of several holders need besides.
const SHARED: &str = "PEXPIREAT KEY 4102444800000; ZADD KEY 1 text; ZREM KEY text; ZSCORE KEY text; ZRANGE KEY 0 -1; \
    ZREMRANGEBYSCORE KEY 0 1";

/// What `min_replicas` needs.
const REPLICAS: &str = "WAIT 0 1";

/// What operators need besides.
const OPERATORS: &str = "SCAN 0 COUNT 1; GETRANGE KEY 0 1";

/// What delay queues need besides.
const TASKS: &str = "HEXISTS KEY text; HLEN KEY; HMGET KEY text; LPOS KEY text; PERSIST KEY; ZCARD KEY; \
                     ZCOUNT KEY 0 1; ZRANGEBYSCORE KEY 0 1";

/// What finds the node of a lock.
const NODES: &str = "CLUSTER SLOTS; CLUSTER INFO; CLUSTER NODES; ASKING";

/// What keeps the order of waiters when another server takes the name over.
const PLACES: &str = "INFO server";

/// What tells waiters, and what they hear by; and the same in a cluster, where a channel is at the node of its slot.
const CHANNELS: [&str; 2] = [
    "PUBLISH CHANNEL text; PUBSUB NUMSUB CHANNEL",
    "SPUBLISH CHANNEL text; PUBSUB SHARDNUMSUB CHANNEL",
];
const SUBSCRIPTIONS: [&str; 2] = [
    "SUBSCRIBE CHANNEL; UNSUBSCRIBE CHANNEL",
    "SSUBSCRIBE CHANNEL; SUNSUBSCRIBE CHANNEL",
];

pub(super) fn rights(probe: &Probe<'_>, namespace: &Namespace) -> Result<Vec<Finding>> {
    let trial = Trial::new(probe, namespace)?;
    let locks = trial.locks()?;
    Ok(vec![locks, trial.inbox()?])
}

struct Trial<'a> {
    probe: &'a Probe<'a>,
    key: String,
    channel: String,
    is_in_cluster: bool,
}

impl<'a> Trial<'a> {
    fn new(probe: &'a Probe<'a>, namespace: &Namespace) -> Result<Self> {
        let id = sys::random_uuid();
        let key = key_at(probe, namespace, &id)?;
        let is_in_cluster = probe.scripts.is_cluster();
        let tag = is_in_cluster.then(|| tag_of(slot_of(&key)));
        let channel = channel(namespace.as_str(), &id.to_string(), tag);
        Ok(Trial {
            probe,
            key,
            channel,
            is_in_cluster,
        })
    }

    fn locks(&self) -> Result<Finding> {
        if !self.denied(MAKE)?.is_empty() {
            return Ok(self.missing(&["SET"], "no lock can be taken"));
        }
        let shared = self.denied(SHARED)?;
        let (operators, tasks) = (self.denied(OPERATORS)?, self.denied(TASKS)?);
        // It removes the key.
        let mut locks = self.denied(LOCKS)?;
        if self.is_in_cluster {
            locks.extend(self.denied(NODES)?);
        }
        if self.probe.server.settings().replicas.is_some() {
            locks.extend(self.denied(REPLICAS)?);
        }
        let all = [
            (locks, "locks can't be taken, or fail under contention"),
            (shared, "read-write locks and semaphores fail"),
            (operators, "locks can't be listed"),
        ];
        let missing = all.iter().find(|(denied, _)| !denied.is_empty());
        Ok(match missing {
            Some((denied, consequence)) => self.missing(denied, consequence),
            None if tasks.is_empty() => Finding::fine(CHECK, ALL),
            // A user of locks alone needs none.
            None => Finding::fine(
                CHECK,
                format!("{ALL}; delay queues need {} too", tasks.join(", ")),
            ),
        })
    }

    /// Whether this user may hear of grants, and tell others of theirs.
    fn inbox(&self) -> Result<Finding> {
        let kind = usize::from(self.is_in_cluster);
        let mut denied = self.denied(CHANNELS[kind])?;
        if self.probe.server.settings().kind != Kind::Single {
            denied.extend(self.denied(PLACES)?);
        }
        denied.extend(self.denied_subscriptions(SUBSCRIPTIONS[kind])?);
        if denied.is_empty() {
            return Ok(Finding::fine(
                INBOX,
                "this user can notify waiters and be notified",
            ));
        }
        Ok(Finding::weak(
            INBOX,
            format!(
                "this user isn't allowed to use {} on {}",
                denied.join(", "),
                shape(&self.channel)
            ),
            "waiters aren't notified: they poll, at least every third of the ttl, and aren't served in order",
            self.advice(),
        ))
    }

    /// By a connection of their own, which is closed after them.
    fn denied_subscriptions(&self, commands: &'static str) -> Result<Vec<&'static str>> {
        let Probe {
            server, deadline, ..
        } = self.probe;
        let connection = server.connect(deadline);
        let mut connection = connection.map_err(|e| self.probe.scripts.error(None, e))?;
        self.denied_by(commands, |command| {
            let deadline = deadline.within(server.settings().io_timeout);
            match connection.request(&command.get_packed_command(), &deadline) {
                Ok(Value::ServerError(error)) => self.probe.answered(Err(error.into())),
                answer => self.probe.answered(answer),
            }
        })
    }

    /// Where it is written what a user needs.
    fn advice(&self) -> &'static str {
        if self.is_in_cluster {
            "see `Access rights` in docs/cluster.md"
        } else {
            "see `Access rights` in docs/redis.md"
        }
    }

    fn missing(&self, commands: &[&str], consequence: &str) -> Finding {
        let commands = commands.join(", ");
        Finding::weak(
            CHECK,
            format!("this user isn't allowed to use {commands} on its keys"),
            consequence,
            self.advice(),
        )
    }

    /// Those of the commands that this user may not send.
    fn denied(&self, commands: &'static str) -> Result<Vec<&'static str>> {
        self.denied_by(commands, |command| self.probe.ask(command))
    }

    fn denied_by(
        &self,
        commands: &'static str,
        mut ask: impl FnMut(&Cmd) -> Result<Result<Value, Failure>>,
    ) -> Result<Vec<&'static str>> {
        let mut denied = Vec::new();
        for template in commands.split("; ") {
            if let Err(Failure::Denied(_)) = ask(&self.command(template))? {
                denied.push(verb(template));
            }
        }
        Ok(denied)
    }

    fn command(&self, template: &str) -> Cmd {
        let mut command = Cmd::new();
        for word in template.split(' ') {
            command.arg(match word {
                "KEY" => &self.key,
                "CHANNEL" => &self.channel,
                "return(1)" => "return 1",
                word => word,
            });
        }
        command
    }
}

/// A key that is at this server: in a cluster most names are elsewhere. The share of a node may be a single slot.
fn key_at(probe: &Probe<'_>, namespace: &Namespace, id: &Uuid) -> Result<String> {
    const MOST: u32 = 200_000;
    let mut number = 0;
    loop {
        let key = Key::new(namespace, &format!("crosslock-doctor-{id}-{number}"))?;
        let at = probe.scripts.server_of(&key);
        let is_here = at.is_none_or(|server| Arc::ptr_eq(&server, probe.server));
        if is_here || number == MOST {
            return Ok(Keys::of(&key).lock);
        }
        number += 1;
    }
}

/// As rights are named: `PUBSUB NUMSUB` is one.
fn verb(template: &'static str) -> &'static str {
    if template.starts_with("CLUSTER ") {
        return template;
    }
    match template.split_once(" CHANNEL").or(template.split_once(' ')) {
        Some((verb, _)) => verb,
        None => template,
    }
}

/// The channels of a namespace.
fn shape(channel: &str) -> String {
    let namespace = channel.split(':').next().unwrap_or_default();
    format!("the channels {namespace}:inbox:*")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::redis::lua::FILES;

    /// The commands that a script calls.
    fn calls(code: &str) -> impl Iterator<Item = &str> {
        let lines = code
            .lines()
            .filter(|line| !line.trim_start().starts_with("--"));
        let calls = lines.flat_map(|line| line.split("call('").skip(1));
        calls.filter_map(|rest| rest.split('\'').next())
    }

    #[test]
    fn each_command_of_the_scripts_is_tried() {
        let [channels, sharded] = CHANNELS;
        let lists = [
            MAKE, LOCKS, SHARED, OPERATORS, TASKS, channels, sharded, PLACES,
        ];
        let tried: Vec<_> = lists.iter().flat_map(|list| list.split("; ")).collect();
        let mut seen = 0;
        for (script, code) in FILES {
            for call in calls(code) {
                let is_it = |template: &&str| template.split(' ').next() == Some(call);
                assert!(tried.iter().any(is_it), "{script} calls {call}");
                seen += 1;
            }
        }
        assert!(seen > 50, "only {seen} calls are found");
    }
}
