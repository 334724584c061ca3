//! What a sentinel is asked, and what its answers mean.

use std::fmt;

use ::redis::Value;

use crate::base::error::Cause;
use crate::engine::net::address::{HostPort, number};
use crate::engine::redis::failure::Failure;
use crate::engine::redis::script::Command;
use crate::engine::redis::servers::masters::{State, text};

/// Where the master of that name is, and since which failover: two commands in one write.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) name: String,
}

/// What a sentinel takes for the master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct View {
    /// Each failover has a larger one.
    pub(super) epoch: u64,
    pub(super) at: HostPort,
}

/// Why what a sentinel says doesn't count.
#[derive(Debug)]
pub(super) enum NoView {
    /// It knows no master of that name.
    UnknownName,
    /// It knows the command of sentinels as little as any server does.
    NoSentinel,
    /// It doesn't let us in.
    Denied(Cause),
    /// It can't be reached, doesn't answer in time, or what it says can't be.
    Other(Cause),
}

impl Question {
    /// What such an answer means.
    pub(super) fn view(&self, answer: Value) -> Result<View, NoView> {
        let Value::Array(answers) = answer else {
            return Err(nonsense());
        };
        let [state, address] = <[Value; 2]>::try_from(answers).map_err(|_| nonsense())?;
        let at = address_in(address)?;
        let epoch = self.epoch_in(state).ok_or_else(nonsense)?;
        Ok(View { epoch, at })
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
        Value::ServerError(error) => Err(Failure::from(error).into()),
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

impl From<Failure> for NoView {
    fn from(failure: Failure) -> Self {
        let is_denied = matches!(failure, Failure::Denied(_));
        let cause = failure.cause();
        match cause.to_string() {
            _ if is_denied => NoView::Denied(cause),
            text if text.to_ascii_lowercase().contains("unknown command") => NoView::NoSentinel,
            _ => NoView::Other(cause),
        }
    }
}

/// What it says isn't shown: it may be what it was told.
fn nonsense() -> NoView {
    NoView::Other("it doesn't answer as a Sentinel does".into())
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

impl fmt::Display for NoView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoView::UnknownName => f.write_str("it knows no master of that name"),
            NoView::NoSentinel => f.write_str("it is no Sentinel"),
            NoView::Denied(cause) | NoView::Other(cause) => write!(f, "{cause}"),
        }
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
            let expected = View {
                epoch: 7,
                at: expected,
            };
            assert_eq!(view(&replies).unwrap(), expected);
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
                matches!(found, Err(NoView::Other(_))),
                "{replies}: {found:?}"
            );
        }
    }

    #[test]
    fn other_servers_and_refusals_are_told_apart() {
        let both = |reply: &str| format!("{reply}\r\n{reply}\r\n");
        let found = view(&both("-NOAUTH Authentication required."));
        assert!(matches!(found, Err(NoView::Denied(_))));
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
