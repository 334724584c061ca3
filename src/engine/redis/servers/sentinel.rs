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
//! - *The master has just become one, or isn't one any more.* Each new connection asks for its ROLE, and nothing is sent to
//!   one that says "replica": the call looks up again, and waits for 50 ms if it is still that one.
//! - *A command was sent, and has no answer.* It is sent again only to another master, only where that is harmless, and only
//!   while the deadline isn't over: to the same one its caller sends it again, after its pause.
//! - *A command was carried out by two masters*, one after the other. What the second one answers is true there: an owner
//!   that asks again gets its token, or a larger one if its lease wasn't copied; a renewal, a store or an adoption of a lease
//!   that wasn't copied finds none. Lock and counter are copied in one piece, so a token is never used twice. But where
//!   others have had the lock since, a release can't tell whether its first copy ended the lease: by
//!   [`Answer::moved`](crate::engine::redis::server::Answer) its value isn't taken for stored.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::sync::Arc;

use self::question::Question;
use super::ask_all::{Answers, ask_all};
use super::cluster::heard::{Heard, NoView, Patience, Said};
use super::cluster::view::View;
use crate::base::clock::Deadline;
use crate::engine::net::address::{Endpoint, HostPort, Login};
use crate::engine::redis::failure::Failure;
use crate::engine::redis::server::{Manner, Server};
use crate::engine::redis::settings::Settings;

mod greeting;
pub(super) mod question;

/// The sentinels of a URL, and the name of its master.
#[derive(Debug)]
pub(super) struct Sentinels {
    pub(super) all: Vec<Arc<Server>>,
    question: Question,
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

    /// What they say, all of whom are asked at once; and the answers of those that are slower than the others. The settings
    /// are those of masters.
    pub(super) fn hear(
        &self,
        patience: Patience,
        deadline: &Deadline,
        settings: &Arc<Settings>,
    ) -> (Heard, Answers<Said>) {
        let (question, settings) = (self.question.clone(), settings.clone());
        let answers = ask_all(&self.all, deadline, move |sentinel, deadline| {
            let said = question.ask(sentinel, deadline);
            let said = said.and_then(|view| with_certificate(view, &settings));
            Ok((sentinel.clone(), said))
        });
        let mut heard = Heard::nothing(self.all.len(), patience, deadline.clone());
        while let Some((sentinel, said)) = heard.next(&answers) {
            heard.add(&sentinel, said);
        }
        by_votes(&mut heard.views);
        (heard, answers)
    }

    /// Why they name no master: a refusal, if it is one of all of them.
    pub(super) fn failure(heard: Heard) -> Failure {
        let is_denied = |(_, why): &_| matches!(why, NoView::Failed(Failure::Denied(_)));
        let are_denied = heard.silent.len() == heard.asked && heard.silent.iter().all(is_denied);
        let rest = heard.asked - heard.silent.len() - heard.views.len();
        let mut text = "no sentinel tells where the master is".to_owned();
        for (at, (sentinel, why)) in heard.silent.into_iter().enumerate() {
            let before = if at == 0 { ": " } else { "; " };
            let why = match why {
                NoView::UnknownName => "it knows no master of that name".into(),
                NoView::NoSentinel => "it is no Sentinel".into(),
                NoView::Failed(failure) => failure.cause(),
            };
            let _ = write!(text, "{before}{}: {why}", sentinel.address());
        }
        if rest > 0 {
            let _ = write!(text, "; {rest} don't answer in time");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_views_that_are_as_new_the_one_is_first_that_most_have() {
        let view = |&(epoch, port): &(u64, u16)| {
            let host = "a".to_owned();
            View::of_master(HostPort { host, port }, epoch)
        };
        for (said, port) in [
            (&[(1, 1), (1, 1), (2, 2)][..], 1),
            (&[(2, 1), (2, 2), (2, 2)], 2),
            (&[(2, 2), (2, 2), (2, 1)], 2),
        ] {
            let mut views: Vec<_> = said.iter().map(view).collect();
            by_votes(&mut views);
            assert_eq!(views[0].ranges[0].master.port, port, "{said:?}");
        }
    }
}
