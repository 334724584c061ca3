//! What a call's caller is told when a server fails.

use std::slice;

use super::Commands;
use crate::base::claim::Claim;
use crate::base::error::{Cause, Error};
use crate::base::name::Key;
use crate::engine::redis::failure::Failure;
use crate::engine::redis::keys::Keys;
use crate::engine::redis::shortfall::Shortfall;
use crate::engine::{Unanswered, denied};

const LOGIN: &str = "user, password and rights";

impl Commands {
    pub(super) fn unconfirmed(&self, key: &Key, shortfall: Shortfall) -> Error {
        let error = self.unavailable(key, shortfall.to_string());
        error.advising("check its replicas")
    }

    pub(in crate::engine::redis) fn unavailable(
        &self,
        key: &Key,
        cause: impl Into<Cause>,
    ) -> Error {
        Error::unavailable(Some(key.name()), self.place(), cause)
    }

    /// A conflict is found before anything is changed, if there is one name; any other error of a script may come after that.
    pub(super) fn unanswered(&self, claim: &Claim, unanswered: Unanswered<Failure>) -> Unanswered {
        let Unanswered { error, sent } = unanswered;
        let is_clean = claim.keys().len() == 1 && matches!(error, Failure::Conflict(_));
        let error = match error {
            Failure::Conflict(reason) => conflict(claim.key.name(), claim.keys(), &reason),
            failure => self.error(Some(&claim.key), failure),
        };
        Unanswered {
            error,
            sent: sent && !is_clean,
        }
    }

    pub(in crate::engine::redis) fn error(&self, key: Option<&Key>, failure: Failure) -> Error {
        let name = key.map(Key::name);
        let place = self.place();
        match failure {
            Failure::Closed(cause)
            | Failure::TimedOut(cause)
            | Failure::Demoted(cause)
            | Failure::Moving(cause)
            | Failure::ClusterDown(cause)
            | Failure::Busy(cause) => Error::unavailable(name, place, cause),
            Failure::Elsewhere(redirect) => Error::unavailable(name, place, redirect.to_string()),
            Failure::Denied(cause) => denied(name, place, LOGIN, cause),
            Failure::Conflict(reason) => match key {
                Some(key) => conflict(key.name(), slice::from_ref(key), &reason),
                None => Error::engine(name, place, self.advice(), reason),
            },
            Failure::Other(cause) => Error::engine(name, place, self.advice(), cause),
        }
    }

    /// What to check when the server fails.
    fn advice(&self) -> &'static str {
        match self.place().split_once("://") {
            Some(("rediss" | "valkeys", _)) => "host, port, certificate and the server's log",
            Some(("unix", _)) => "the socket and the server's log",
            _ => "host, port and the server's log",
        }
    }

    /// The answer isn't shown: what isn't a Redis server may send back what it was told.
    pub(super) fn surprised(&self, key: &Key) -> Error {
        let cause = "it doesn't answer a script as a Redis server does";
        Error::engine(Some(key.name()), self.place(), self.advice(), cause)
    }
}

/// The acquire script says CONFLICT for a counter, and which; WRONGTYPE is the server's word, about a lock.
fn conflict(name: &str, keys: &[Key], reason: &str) -> Error {
    let counter = reason.strip_prefix("CONFLICT ");
    let counter = counter.and_then(|rest| rest.strip_suffix(" holds no counter"));
    let (key, reason) = match counter {
        Some(counter) => (counter.to_owned(), "it holds no counter"),
        None => {
            let locks: Vec<_> = keys.iter().map(|key| Keys::of(key).lock).collect();
            let reason = "it, or one of the keys beside it, is of another type";
            (locks.join(" or "), reason)
        }
    };
    Error::Conflict {
        name: name.to_owned(),
        key,
        reason: reason.to_owned(),
    }
}
