//! What a sentinel is asked, and what its answers mean.

use std::sync::Arc;

use ::redis::Value;

use crate::base::clock::Deadline;
use crate::engine::net::address::{HostPort, number};
use crate::engine::redis::failure::Failure;
use crate::engine::redis::script::Command;
use crate::engine::redis::server::{Manner, Server};
use crate::engine::redis::servers::cluster::heard::NoView;
use crate::engine::redis::servers::cluster::view::View;
use crate::engine::redis::servers::masters::{State, text};

/// Where the master of that name is, and since which failover: two commands in one write.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) name: String,
}

impl Question {
    pub(super) fn ask(&self, sentinel: &Arc<Server>, deadline: &Deadline) -> Result<View, NoView> {
        match sentinel.call(self, Manner::Plain, deadline) {
            Ok(answer) => self.view(answer.value),
            Err(e) => Err(why(sentinel.suspecting_tls(e.error))),
        }
    }

    /// What such an answer means.
    fn view(&self, answer: Value) -> Result<View, NoView> {
        let Value::Array(answers) = answer else {
            return Err(nonsense());
        };
        let [state, address] = <[Value; 2]>::try_from(answers).map_err(|_| nonsense())?;
        let at = address_in(address)?;
        let epoch = self.epoch_in(state).ok_or_else(nonsense)?;
        Ok(View::of_master(at, epoch))
    }

    fn epoch_in(&self, state: Value) -> Option<u64> {
        let state = State::of(&state)?;
        let epoch = number(state.get("config-epoch")?);
        epoch.filter(|_| state.get("name") == Some(&self.name))
    }
}

fn address_in(answer: Value) -> Result<HostPort, NoView> {
    match answer {
        Value::Nil => Err(NoView::UnknownName),
        Value::ServerError(error) => Err(why(error.into())),
        Value::Array(parts) => address(&parts).ok_or_else(nonsense),
        _ => Err(nonsense()),
    }
}

fn address(parts: &[Value]) -> Option<HostPort> {
    let [host, port] = parts else { return None };
    let host = text(host)?.to_owned();
    let port = number(text(port)?)?;
    let is_odd = |c: char| c.is_whitespace() || c.is_control();
    (!host.is_empty() && !host.contains(is_odd) && port != 0).then_some(HostPort { host, port })
}

/// What the failure of a sentinel means.
fn why(failure: Failure) -> NoView {
    match failure {
        Failure::Other(cause) if is_unknown_command(&cause.to_string()) => NoView::NoSentinel,
        failure => NoView::Failed(failure),
    }
}

fn is_unknown_command(text: &str) -> bool {
    text.to_ascii_lowercase().contains("unknown command")
}

/// What it says isn't shown: it may be what it was told.
fn nonsense() -> NoView {
    NoView::Failed(Failure::Other(
        "it doesn't answer as a Sentinel does".into(),
    ))
}

impl Command for Question {
    fn packed(&self) -> Vec<u8> {
        // The epoch first: if a failover comes between, the address is newer, not the epoch. In an answer to MASTER alone
        // the sentinel that leads a failover shows the old address with the new epoch.
        let mut packed = Vec::new();
        for what in ["MASTER", "GET-MASTER-ADDR-BY-NAME"] {
            let mut ask = ::redis::cmd("SENTINEL");
            ask.arg(what)
                .arg(&self.name)
                .write_packed_command(&mut packed);
        }
        packed
    }

    fn length(&self) -> usize {
        2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::for_any;

    fn view(replies: &str) -> Result<View, NoView> {
        let value = ::redis::parse_redis_value(format!("*2\r\n{replies}").as_bytes());
        let name = "mymaster".to_owned();
        Question { name }.view(value.unwrap())
    }

    fn bulks(parts: &[&str]) -> String {
        let parts: Vec<_> = parts
            .iter()
            .map(|part| format!("${}\r\n{part}\r\n", part.len()))
            .collect();
        format!("*{}\r\n{}", parts.len(), parts.concat())
    }

    fn state(name: &str, epoch: &str) -> String {
        bulks(&["name", name, "port", "1", "config-epoch", epoch])
    }

    #[test]
    fn address_and_epoch_are_a_view() {
        let at = |host: &str, port| HostPort {
            host: host.into(),
            port,
        };
        for (host, port, expected) in [
            ("10.0.0.1", "6379", at("10.0.0.1", 6379)),
            ("::1", "1", at("::1", 1)),
            ("a.example", "65535", at("a.example", 65535)),
        ] {
            let replies = state("mymaster", "7") + &bulks(&[host, port]);
            assert_eq!(view(&replies).unwrap(), View::of_master(expected, 7));
        }
    }

    #[test]
    fn lies_are_no_view() {
        let good = state("mymaster", "7");
        let address = bulks(&["h", "1"]);
        for replies in [
            state("other", "7") + &address,
            state("mymaster", "-7") + &address,
            state("mymaster", "") + &address,
            bulks(&["name", "mymaster"]) + &address,
            "-ERR No such master with that name\r\n".to_owned() + &address,
            "+OK\r\n".to_owned() + &address,
            good.clone() + &bulks(&["", "1"]),
            good.clone() + &bulks(&["a b", "1"]),
            good.clone() + &bulks(&["h", "0"]),
            good.clone() + &bulks(&["h", "65536"]),
            good.clone() + &bulks(&["h", "+1"]),
            good.clone() + &bulks(&["h"]),
            good.clone() + "+OK\r\n",
            good.clone() + "-ERR what\r\n",
        ] {
            let found = view(&replies);
            assert!(
                matches!(found, Err(NoView::Failed(Failure::Other(_)))),
                "{replies}: {found:?}"
            );
        }
    }

    #[test]
    fn other_servers_and_refusals_are_told_apart() {
        let both = |reply: &str| format!("{reply}\r\n{reply}\r\n");
        let found = view(&both("-NOAUTH Authentication required."));
        assert!(matches!(found, Err(NoView::Failed(Failure::Denied(_)))));
        let found = view(&both("-ERR unknown command 'SENTINEL', with args"));
        assert!(matches!(found, Err(NoView::NoSentinel)));
        let found = view("-ERR No such master with that name\r\n*-1\r\n");
        assert!(matches!(found, Err(NoView::UnknownName)));
    }

    #[test]
    fn any_answer_is_understood_or_left() {
        for_any(|random| {
            let bytes = random.list(0..=60, |random| random.u8(..));
            let name = "m".to_owned();
            if let Ok(value) = ::redis::parse_redis_value(&bytes) {
                let _ = crate::engine::redis::servers::masters::names(&value);
                let _ = Question { name: name.clone() }.view(value);
            }
        });
    }
}
