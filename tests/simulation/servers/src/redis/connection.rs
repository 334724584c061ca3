//! The commands that are about the connection on which they come.

use std::time::Duration;

use crosslock_world::service::Connection;

use super::channels;
use super::node::{Node, Waiting};
use super::numbers::integer;
use super::reply::{OK, Outcome, Reply, Words};
use super::state::greeting;

pub(super) fn ping(node: &mut Node, client: Connection, words: &Words) -> Outcome {
    let message = words.get(1).cloned();
    Ok(match node.state.channels.is_subscribed(client) {
        true => Reply::texts([b"pong".to_vec(), message.unwrap_or_default()]),
        false => message.map_or(Reply::Status("PONG"), Reply::Text),
    })
}

pub(super) fn hello(node: &mut Node, _: Connection, _: &Words) -> Outcome {
    Ok(greeting(&node.state))
}

pub(super) fn asking(node: &mut Node, client: Connection, _: &Words) -> Outcome {
    node.client(client).asks = true;
    Ok(OK)
}

pub(super) fn subscribe(node: &mut Node, client: Connection, words: &Words) -> Outcome {
    Ok(channels::subscribe(&mut node.state, client, words))
}

/// Answers at once, or when enough replicas have it or the time is over.
pub(super) fn wait(node: &mut Node, client: Connection, words: &Words) -> Outcome {
    let [least, millis] = [integer(&words[1])?, integer(&words[2])?];
    let [least, millis] = [least, millis].map(|number| usize::try_from(number).unwrap_or(0));
    if node.state.keys.is_copy {
        return Err(Reply::error(
            "ERR WAIT cannot be used with replica instances.",
        ));
    }
    let offset = node.client(client).offset;
    let have = node.acknowledged(offset);
    if have >= least {
        return Ok(Reply::count(have));
    }
    let until = (millis > 0).then(|| node.now + Duration::from_millis(millis as u64));
    node.client(client).waits = Some(Waiting {
        least,
        offset,
        until,
    });
    Ok(Reply::Several(Vec::new()))
}

/// SCRIPT LOAD.
pub(super) fn load(node: &mut Node, _: Connection, words: &Words) -> Outcome {
    node.scripts.load(&words[2]).map(Reply::text)
}

pub(super) fn eval(node: &mut Node, _: Connection, words: &Words) -> Outcome {
    let digest = node.scripts.load(&words[1])?;
    run(node, &digest, words)
}

pub(super) fn eval_digest(node: &mut Node, _: Connection, words: &Words) -> Outcome {
    run(node, &String::from_utf8_lossy(&words[1]), words)
}

fn run(node: &mut Node, digest: &str, words: &Words) -> Outcome {
    let count = usize::try_from(integer(&words[2])?).unwrap_or(usize::MAX);
    let Some((keys, arguments)) = words[3..].split_at_checked(count) else {
        return Err(Reply::error(
            "ERR Number of keys can't be greater than number of args",
        ));
    };
    node.state.has_written = false;
    let scripts = &node.scripts;
    Ok(scripts.run(digest, &mut node.state, keys, arguments))
}
