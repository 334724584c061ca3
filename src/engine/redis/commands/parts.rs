//! What is sent about several parts of a claim. The names of a part are on one slot, those of two parts aren't.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::thread;

use super::Commands;
use crate::base::claim::Claim;
use crate::base::name::Key;
use crate::base::sys;
use crate::engine::Request;
use crate::engine::redis::keys::Keys;
use crate::engine::redis::server::Server;
use crate::engine::redis::servers::slots::slot_of;
use crate::engine::redis::settings::Kind;

impl Commands {
    /// The parts of a claim whose names are on several slots, in the order of the slots; else `None`. The errors about a part
    /// name the whole.
    pub(in crate::engine::redis) fn parts(&self, claim: &Claim) -> Option<Vec<Claim>> {
        if !claim.has_many() || self.servers.settings().kind != Kind::Cluster {
            return None;
        }
        let mut slots: BTreeMap<u16, Vec<Key>> = BTreeMap::new();
        for key in claim.keys() {
            let slot = slot_of(&Keys::of(key).lock);
            slots.entry(slot).or_default().push(key.clone());
        }
        let part = |names: Vec<Key>| Claim {
            names: names.into(),
            ..claim.clone()
        };
        (slots.len() > 1).then(|| slots.into_values().map(part).collect())
    }

    /// Does something with each part, and gives the answers in their order. All servers are called at the same time, so that
    /// one that doesn't answer keeps the others from nothing, and each by one thread: what an owner sends to a server comes
    /// behind a question of its that is late there.
    pub(in crate::engine::redis) fn each<T: Send + Sync>(
        &self,
        requests: &[Request<'_>],
        call: impl Fn(Request<'_>) -> T + Sync,
    ) -> Vec<T> {
        let answers: Vec<_> = requests.iter().map(|_| OnceLock::new()).collect();
        let call_those = |which: &[usize]| {
            for at in which {
                answers[*at].get_or_init(|| call(requests[*at]));
            }
        };
        let servers = self.by_server(requests);
        thread::scope(|scope| {
            let Some((first, others)) = servers.split_first() else {
                return;
            };
            for which in others {
                if let Err(e) = sys::spawn_scoped("crosslock-parts", scope, || call_those(which)) {
                    log::warn!(
                        "no thread for one of several servers, which is called after the others: {e}"
                    );
                }
            }
            call_those(first);
        });
        let answers = answers.into_iter().zip(requests);
        answers
            .map(|(answer, request)| answer.into_inner().unwrap_or_else(|| call(*request)))
            .collect()
    }

    /// Which parts are for which server, as far as that is known.
    fn by_server(&self, requests: &[Request<'_>]) -> Vec<Vec<usize>> {
        let mut all: Vec<(Option<Arc<Server>>, Vec<usize>)> = Vec::new();
        for (at, request) in requests.iter().enumerate() {
            let server = request
                .claim
                .keys()
                .first()
                .and_then(|key| self.server_of(key));
            let is_same = |other: &Option<Arc<Server>>| match (other, &server) {
                (Some(one), Some(other)) => Arc::ptr_eq(one, other),
                (one, other) => one.is_none() && other.is_none(),
            };
            match all.iter_mut().find(|(other, _)| is_same(other)) {
                Some((_, which)) => which.push(at),
                None => all.push((server, vec![at])),
            }
        }
        all.into_iter().map(|(_, which)| which).collect()
    }
}
