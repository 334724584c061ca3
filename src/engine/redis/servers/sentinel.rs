//! The sentinels of a URL, and what they say of its master: it has all names, until another server takes its place.
//!
//! | what is known | a call | left when |
//! |---|---|---|
//! | nothing | looks up, within its deadline | a sentinel names a server: `known` |
//! | `known` | sends to it; first it looks up, if the last look-up is older than the route allows | its connection fails, it can't serve, or too few replicas have what it wrote: `suspected`; another server is named: `replaced` |
//! | `suspected`: a call to it has failed so since it was looked up | looks up, and sends to it all the same if it is named again, or nobody answers | it is named again: `known`; another is: `replaced` |
//! | `replaced` | goes to the new one; connections to the old one are closed, and its inbox | |
//!
//! And the edges:
//!
//! - *A sentinel is behind*, or cut off, and the only one that answers: an epoch that is lower than that of the known
//!   master doesn't count. If all sentinels say so, or a majority does although the known master has failed, or for
//!   seconds, then they were set up anew.
//! - *The master has just become one, or isn't one any more.* Each new connection asks for its ROLE, and nothing is
//!   sent to one that says "replica": the call looks up again, and waits for 50 ms if it is still that one.
//! - *A command was sent, and has no answer.* It is sent again only to another master, only where that is harmless, and
//!   only while the deadline isn't over: to the same one its caller sends it again, after its pause.
//! - *A command was carried out by two masters*, one after the other. What the second one answers is true there: an
//!   owner that asks again gets its token, or a larger one if its lease wasn't copied; a renewal, a store or an
//!   adoption of a lease that wasn't copied finds none. Lock and counter are copied in one piece, so a token is never
//!   used twice. But where others have had the lock since, a release can't tell whether its first copy ended the lease:
//!   by [`Answer::moved`](crate::engine::redis::server::Answer) its value isn't taken for stored.

use std::{cmp::Reverse, fmt::Write as _, sync::Arc};

use ::redis::Value;

use super::heard::{Heard, NoView, Patience};
use super::nodes::Nodes;
use super::view::View;
use crate::base::Deadline;
use crate::engine::net::address::{Endpoint, HostPort, Login, number};
use crate::engine::redis::{
    failure::Failure, reply::text_of, round::Group, script::Command, server::Server,
    settings::Settings,
};

/// Who is asked which server has a name.
#[derive(Debug)]
pub(super) enum Ask {
    Sentinels(Sentinels),
    /// The nodes themselves.
    Nodes(Nodes),
}

impl Ask {
    /// The same for a child that was forked off.
    pub(super) fn after_fork(&self, settings: &Settings) -> Self {
        match self {
            Ask::Sentinels(sentinels) => Ask::Sentinels(sentinels.after_fork(settings)),
            Ask::Nodes(nodes) => Ask::Nodes(nodes.after_fork()),
        }
    }

    pub(super) fn seeds(&self) -> &[HostPort] {
        match self {
            Ask::Sentinels(_) => &[],
            Ask::Nodes(nodes) => nodes.seeds(),
        }
    }

    /// Why nothing of use was said.
    pub(super) fn failure(&self, heard: Heard) -> Failure {
        match self {
            Ask::Sentinels(_) => Sentinels::failure(heard),
            Ask::Nodes(_) => Nodes::failure(heard),
        }
    }
}

/// The sentinels of a URL, and the name of its master.
#[derive(Debug)]
pub(super) struct Sentinels {
    pub(super) all: Vec<Arc<Server>>,
    pub(super) question: Question,
}

impl Sentinels {
    /// Fails if a host can have no certificate.
    pub(super) fn new(
        hosts: Vec<HostPort>,
        name: String,
        login: Login,
        settings: &Settings,
    ) -> Result<Self, Failure> {
        let own = Arc::new(settings.of_sentinels(login));
        let sentinel = |host| Server::new(Endpoint::Tcp(host), own.clone()).map(Arc::new);
        let all = hosts.into_iter().map(sentinel);
        Ok(Sentinels {
            all: all.collect::<Result<_, _>>()?,
            question: Question { name },
        })
    }

    /// The same for a child that was forked off.
    pub(super) fn after_fork(&self, settings: &Settings) -> Self {
        let login = self.all[0].settings().login.clone();
        let own = Arc::new(settings.of_sentinels(login));
        let all = self.all.iter();
        let all = all.map(|sentinel| Arc::new(sentinel.after_fork(own.clone())));
        Sentinels {
            all: all.collect(),
            question: self.question.clone(),
        }
    }

    /// What they say, all of whom are asked at once; and the group of them, which goes on connecting to those that are
    /// slower than the others. The settings are those of masters.
    pub(super) fn hear(
        &self,
        patience: Patience,
        deadline: &Deadline,
        settings: &Settings,
        said_so_far: impl Fn(&Heard),
    ) -> (Heard, Group) {
        let group = Group::new(self.all.clone(), deadline);
        let mut heard = Heard::nothing(self.all.len(), patience, deadline.clone());
        let mut round = group.ask(&self.question);
        while let Some((at, said)) = round.next(&heard.until) {
            let sentinel = &self.all[at];
            let view = self.question.said(sentinel, said);
            heard.add(
                sentinel,
                view.and_then(|view| with_certificate(view, settings)),
            );
            said_so_far(&heard);
        }
        drop(round);
        by_votes(&mut heard.views);
        (heard, group)
    }

    /// Why they name no master: a refusal, if it is one of all of them.
    pub(super) fn failure(heard: Heard) -> Failure {
        let is_denied = |(_, why): &_| matches!(why, NoView::Failed(Failure::Denied(_)));
        let are_denied = heard.silent.len() == heard.asked && heard.silent.iter().all(is_denied);
        let rest = heard.asked - heard.silent.len() - heard.views.len();
        let mut text = "no sentinel reports the master".to_owned();
        for (at, (sentinel, why)) in heard.silent.into_iter().enumerate() {
            let before = if at == 0 { ": " } else { "; " };
            let why = match why {
                NoView::UnknownName => "it doesn't know this master".into(),
                NoView::NoSentinel => "it isn't a Sentinel".into(),
                NoView::Failed(failure) => failure.cause(),
            };
            let _ = write!(text, "{before}{}: {why}", sentinel.address());
        }
        if rest > 0 {
            let _ = write!(text, "; {rest} didn't answer in time");
        }
        if are_denied {
            Failure::Denied(text.into())
        } else {
            Failure::Closed(text.into())
        }
    }
}

/// Fails if the master's host can have no certificate.
fn with_certificate(view: View, settings: &Settings) -> Result<View, NoView> {
    if let Some(trust) = &settings.trust {
        for range in &view.ranges {
            trust.in_server(&range.master.host).map_err(Failure::from)?;
        }
    }
    Ok(view)
}

/// Of several that are as new the first counts: it is one that most sentinels have.
fn by_votes(views: &mut [View]) {
    let all = views.to_vec();
    let votes = |view: &View| all.iter().filter(|other| *other == view).count();
    views.sort_by_key(|view| Reverse(votes(view)));
}

/// Where the master of that name is, and since which failover: two commands in one write.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) name: String,
}

impl Question {
    /// What a sentinel says to it.
    fn said(&self, sentinel: &Arc<Server>, said: Result<Value, Failure>) -> Result<View, NoView> {
        match said {
            Ok(answers) => self.view(answers),
            Err(failure) => Err(why(sentinel.suspecting_tls(failure))),
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
        let state = Fields::of(&state)?;
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
    let host = text_of(host)?.to_owned();
    let port = number(text_of(port)?)?;
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

pub(super) fn is_unknown_command(text: &str) -> bool {
    text.to_ascii_lowercase().contains("unknown command")
}

/// What it says isn't shown: it may be what it was told.
fn nonsense() -> NoView {
    NoView::Failed(Failure::Other("it doesn't answer like a Sentinel".into()))
}

impl Command for Question {
    fn packed(&self) -> Vec<u8> {
        // The epoch first: if a failover comes between, the address is newer, not the epoch. In an answer to MASTER
        // alone the sentinel that leads a failover shows the old address with the new epoch.
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

/// What a sentinel knows of a master, or a server of itself: each name is followed by what it names.
pub(super) struct Fields<'a>(&'a [Value]);

impl<'a> Fields<'a> {
    pub(super) fn of(answer: &'a Value) -> Option<Self> {
        match answer {
            Value::Array(parts) => Some(Fields(parts)),
            _ => None,
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        let mut pairs = self.0.chunks_exact(2);
        text_of(&pairs.find(|pair| text_of(&pair[0]) == Some(name))?[1])
    }
}

/// The names of the masters that a sentinel knows, if it tells.
pub(super) fn masters(sentinel: &Arc<Server>) -> Vec<String> {
    let mut ask = ::redis::cmd("SENTINEL");
    ask.arg("MASTERS");
    let deadline = Deadline::after(sentinel.settings().connect_timeout);
    let answer = sentinel.value(&ask, &deadline);
    answer.map_or_else(|_| Vec::new(), |masters| names(&masters))
}

/// The names of masters in an answer to SENTINEL MASTERS.
pub(super) fn names(answer: &Value) -> Vec<String> {
    let Value::Array(masters) = answer else {
        return Vec::new();
    };
    let name = |master| Some(Fields::of(master)?.get("name")?.to_owned());
    masters.iter().filter_map(name).collect()
}

#[cfg(test)]
mod tests;
