//! The commands that are about the connection on which they come.

use std::time::Duration;

use crosslock_world::service::Connection;

use super::about::greeting;
use super::channels::{self, Sort};
use super::keyspace::Bytes;
use super::node::{Node, Waiting};
use super::numbers::integer;
use super::reply::{OK, Outcome, Reply, Words};
use super::state::unknown_subcommand;

pub(super) fn ping(node: &mut Node, client: Connection, words: &Words) -> Outcome {
    let message = words.get(1).cloned();
    if node.state.channels.is_subscribed(client) {
        let message = message.unwrap_or_default();
        return Ok(Reply::texts([b"pong".to_vec(), message]));
    }
    Ok(message.map_or(Reply::Status("PONG".into()), Reply::Text))
}

pub(super) fn auth(node: &mut Node, client: Connection, words: &Words) -> Outcome {
    let user = node.state.users.log_in(&words[1..])?;
    node.client(client).user = Some(user);
    Ok(OK)
}

pub(super) fn hello(node: &mut Node, client: Connection, words: &Words) -> Outcome {
    if words.get(1).is_some_and(|version| version != b"2") {
        return Err(Reply::error("NOPROTO unsupported protocol version"));
    }
    if let Some([auth, login @ ..]) = words.get(2..)
        && auth.eq_ignore_ascii_case(b"AUTH")
    {
        let user = node.state.users.log_in(login)?;
        node.client(client).user = Some(user);
    }
    if node.client(client).user.is_none() {
        let error = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> \
                     AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol \
                     version at the same time";
        return Err(Reply::error(error));
    }
    Ok(greeting(&node.state.about, client))
}

pub(super) fn quit(node: &mut Node, client: Connection, _: &Words) -> Outcome {
    node.client(client).is_leaving = true;
    Ok(OK)
}

pub(super) fn select(_: &mut Node, _: Connection, words: &Words) -> Outcome {
    match integer(&words[1])? {
        0 => Ok(OK),
        _ => Err(Reply::error("ERR DB index is out of range")),
    }
}

pub(super) fn client(node: &mut Node, client: Connection, words: &Words) -> Outcome {
    match words[1].to_ascii_uppercase().as_slice() {
        b"SETNAME" if words.len() == 3 => {
            node.client(client).name = Some(words[2].clone());
            Ok(OK)
        }
        b"GETNAME" => Ok(Reply::maybe(node.client(client).name.clone())),
        b"ID" => Ok(Reply::Int(i64::try_from(client).unwrap_or(0))),
        _ => Err(unknown_subcommand(words)),
    }
}

pub(super) fn read_only(node: &mut Node, client: Connection, _: &Words) -> Outcome {
    node.client(client).favour.reads = true;
    Ok(OK)
}

/// The next command alone may be about a slot that comes.
pub(super) fn asking(node: &mut Node, client: Connection, _: &Words) -> Outcome {
    if node.state.slots.is_none() {
        return Err(Reply::error(
            "ERR This instance has cluster support disabled",
        ));
    }
    node.client(client).favour.asks = true;
    Ok(OK)
}

pub(super) fn subscribe(node: &mut Node, client: Connection, words: &Words) -> Outcome {
    Ok(channels::subscribe(
        &mut node.state,
        client,
        Sort::Plain,
        words,
    ))
}

pub(super) fn subscribe_sharded(node: &mut Node, client: Connection, words: &Words) -> Outcome {
    Ok(channels::subscribe(
        &mut node.state,
        client,
        Sort::Sharded,
        words,
    ))
}

pub(super) fn unsubscribe(node: &mut Node, client: Connection, words: &Words) -> Outcome {
    Ok(channels::unsubscribe(
        &mut node.state,
        client,
        Sort::Plain,
        words,
    ))
}

pub(super) fn unsubscribe_sharded(node: &mut Node, client: Connection, words: &Words) -> Outcome {
    Ok(channels::unsubscribe(
        &mut node.state,
        client,
        Sort::Sharded,
        words,
    ))
}

/// Answers at once, or when enough replicas have it or the time is over.
pub(super) fn wait(node: &mut Node, client: Connection, words: &Words) -> Outcome {
    let least = integer(&words[1])?;
    let millis = integer(&words[2])
        .map_err(|_| Reply::error("ERR timeout is not an integer or out of range"))?;
    let millis = u64::try_from(millis).map_err(|_| Reply::error("ERR timeout is negative"))?;
    if node.state.keys.is_copy {
        let error = "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a \
                     replica is configured to be writable (which is not the default) writes to replicas are just \
                     local and are not propagated.";
        return Err(Reply::error(error));
    }
    let offset = node.client(client).offset;
    let have = node.acknowledged(offset);
    if have >= usize::try_from(least).unwrap_or(0) {
        return Ok(Reply::count(have));
    }
    let until = (millis > 0).then(|| node.now + Duration::from_millis(millis));
    let least = usize::try_from(least).unwrap_or(0);
    node.client(client).waits = Some(Waiting {
        least,
        offset,
        until,
    });
    Ok(Reply::Several(Vec::new()))
}

pub(super) fn script(node: &mut Node, _: Connection, words: &Words) -> Outcome {
    match (words[1].to_ascii_uppercase().as_slice(), &words[2..]) {
        (b"LOAD", [code]) => node.scripts.load(code).map(Reply::text),
        (b"EXISTS", digests) => {
            let knows = |digest: &Bytes| node.scripts.knows(&text(digest));
            let known = digests
                .iter()
                .map(|digest| Reply::count(usize::from(knows(digest))));
            Ok(Reply::List(known.collect()))
        }
        (b"FLUSH", _) => {
            node.scripts.forget_all();
            Ok(OK)
        }
        _ => Err(unknown_subcommand(words)),
    }
}

fn text(word: &[u8]) -> String {
    String::from_utf8_lossy(word).to_lowercase()
}

pub(super) fn eval(node: &mut Node, _: Connection, words: &Words) -> Outcome {
    let (keys, arguments) = parameters(words)?;
    let digest = node.scripts.load(&words[1])?;
    Ok(run(node, &digest, keys, arguments))
}

pub(super) fn eval_digest(node: &mut Node, _: Connection, words: &Words) -> Outcome {
    let (keys, arguments) = parameters(words)?;
    Ok(run(node, &text(&words[1]), keys, arguments))
}

fn parameters(words: &Words) -> Result<(&[Bytes], &[Bytes]), Reply> {
    let count = integer(&words[2])?;
    let count =
        usize::try_from(count).map_err(|_| Reply::error("ERR Number of keys can't be negative"))?;
    let rest = &words[3..];
    if count > rest.len() {
        return Err(Reply::error(
            "ERR Number of keys can't be greater than number of args",
        ));
    }
    Ok(rest.split_at(count))
}

fn run(node: &mut Node, digest: &str, keys: &[Bytes], arguments: &[Bytes]) -> Reply {
    node.state.has_written = false;
    let reply = node.scripts.run(digest, &mut node.state, keys, arguments);
    node.state.has_written = false;
    reply
}
