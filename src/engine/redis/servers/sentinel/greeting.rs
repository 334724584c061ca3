//! What is found out when sentinels are named in a URL for the first time.

use std::sync::Arc;

use ::redis::Value;

use super::lookup::{AFTER_FIRST, Heard};
use super::question::NoView;
use super::{Refused, Sentinels};
use crate::base::clock::Deadline;
use crate::base::error::Error;
use crate::engine::redis::failure::Failure;
use crate::engine::redis::server::Server;
use crate::engine::redis::servers::masters::masters;
use crate::engine::redis::servers::{Route, Servers, advice};
use crate::engine::redis::settings::Kind;

/// What is wrong when no sentinel names a server.
enum Wrong {
    /// These know no master of that name.
    Name(Vec<Arc<Server>>),
    /// It is no Sentinel.
    Server(Arc<Server>),
    Failure(Failure),
}

impl Sentinels {
    /// Finds out whether sentinels name a master, and whether it lets us in, within the connect timeout.
    pub(super) fn find_first(&self) -> Result<(), Refused> {
        let until = Deadline::after(self.settings.connect_timeout);
        let lookup = self.join_or_start();
        let wrong = wrong(&lookup.wait(AFTER_FIRST, &until));
        match wrong {
            None => {}
            Some(Wrong::Failure(failure)) => return Err(failure.into()),
            Some(Wrong::Name(sentinels)) => return Err(self.unknown_name(&sentinels)),
            Some(Wrong::Server(server)) => {
                let role = server.greet()?;
                advice::check(role, &server, Kind::Sentinel).map_err(Refused::Error)?;
            }
        }
        let ping = ::redis::cmd("PING");
        let answer = self.call(Route::to(""), &ping, &until);
        match answer.map_err(|unanswered| unanswered.error)?.value {
            Value::SimpleString(pong) if pong == "PONG" => Ok(()),
            _ => {
                let cause = "its master doesn't answer PING as a Redis server does";
                Err(Failure::Other(cause.into()).into())
            }
        }
    }

    fn unknown_name(&self, sentinels: &[Arc<Server>]) -> Refused {
        let mut known: Vec<_> = sentinels.iter().flat_map(masters).collect();
        known.sort_unstable();
        known.dedup();
        let known = match &known[..] {
            [] => "see SENTINEL MASTERS for the names that they know".to_owned(),
            known => format!("they know {}", known.join(", ")),
        };
        Refused::Error(Error::InvalidUrl {
            url: self.settings.shown.clone(),
            reason: format!("no sentinel knows a master {}: {known}", self.question.name),
        })
    }
}

fn wrong(heard: &Heard) -> Option<Wrong> {
    if heard.newest().is_some() {
        return None;
    }
    let mut unknown = Vec::new();
    for (server, why) in &heard.silent {
        match **why {
            NoView::UnknownName => unknown.push(server.clone()),
            NoView::NoSentinel => return Some(Wrong::Server(server.clone())),
            NoView::Denied(_) | NoView::Other(_) => {}
        }
    }
    Some(if unknown.is_empty() {
        Wrong::Failure(heard.failure())
    } else {
        Wrong::Name(unknown)
    })
}
