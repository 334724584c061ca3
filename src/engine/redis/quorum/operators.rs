//! The engine of a quorum: each call to what does it; and what operators see of a name, and do with it: what a majority
//! says.

use std::sync::{Arc, Weak};
use std::{cmp::Reverse, mem::discriminant, time::Duration};

use ::redis::Value;

use super::votes::Votes;
use super::{leases::Held, shared::Quorum, wait::QuorumWait};
use crate::base::diagnosis::Verdict;
use crate::base::{
    Deadline, Error, Finding, Holder, Inspection, Key, LockState, Namespace, Options, Result,
};
use crate::engine::redis::operators::{broken, inspection};
use crate::engine::redis::server::{Answer as Reply, Server};
use crate::engine::redis::{diagnosis::diagnose, failure::Failure, script::Call};
use crate::engine::{
    Capabilities, Change, Cursor, Engine, Outcome, Page, Request, Revocations, Wait,
};

/// How far clocks may differ where servers rejoin at once.
const LEAST_REJOIN: Duration = Duration::from_secs(1);

const FEWER_MAY_FAIL: &str = "locks work while a majority is up, but fewer of the others may fail";

#[derive(Debug)]
pub(crate) struct QuorumEngine(pub(super) Arc<Quorum>);

impl Engine for QuorumEngine {
    fn endpoint(&self) -> &str {
        self.0.scripts().endpoint()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            is_split: true,
            only_exclusive: true,
            clock_skew: self.0.deps.clock_skew,
            ..Capabilities::default()
        }
    }

    fn new_wait(&self) -> Box<dyn Wait> {
        Box::new(QuorumWait::new(self.0.clone()))
    }

    fn change(
        &self,
        request: Request<'_>,
        change: Change<'_>,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        let held = Held {
            quorum: &self.0,
            request,
            deadline,
        };
        held.change(change)
    }

    fn tell_revocations(&self, to: Weak<dyn Revocations>) {
        self.0.deps.inbox.tell_revocations(to);
    }

    fn after_fork(&self) -> Option<Arc<dyn Engine>> {
        Some(Arc::new(QuorumEngine(Arc::new(self.0.after_fork()))))
    }

    /// The state and the holders are what a majority shows; the waiters are those of the first server that has some.
    fn inspect(&self, key: &Key, deadline: &Deadline) -> Result<Inspection> {
        let quorum = &*self.0;
        let look = quorum.scripts().inspecting(key);
        let mut seen = quorum.ask_each(key, look, deadline, |value| inspection(key, value))?;
        let states: Vec<_> = seen.iter().map(|one| one.state).collect();
        let is_alike = |one: &LockState, other| discriminant(one) == discriminant(other);
        let count = |state| states.iter().filter(|one| is_alike(one, state)).count();
        let state = states
            .iter()
            .find(|state| count(state) >= quorum.majority());
        let holders: Vec<_> = seen.iter().map(|one| one.holders.clone()).collect();
        let first = seen.iter().position(|one| !one.waiters.is_empty());
        Ok(Inspection {
            name: key.name().to_owned(),
            state: state.copied().unwrap_or(LockState::Free),
            last_token: seen.iter().filter_map(|one| one.last_token).max(),
            waiters: seen.swap_remove(first.unwrap_or(0)).waiters,
            holders: quorum.of_majority(&holders).into_iter().collect(),
        })
    }

    /// Page after page of one server after the other: what a majority has is at each majority. Those that are down are
    /// passed over.
    fn list(&self, of: (&Namespace, &str), cursor: Cursor, deadline: &Deadline) -> Result<Page> {
        let nodes = &self.0.nodes;
        let Some(node) = nodes.get(cursor.part) else {
            return Ok(Page::default());
        };
        let servers = self.0.servers();
        let page = node.scripts.list(&servers, of, &cursor, deadline);
        page.or_else(|e| {
            if !matches!(e, Error::Unavailable { .. }) {
                return Err(e);
            }
            node.heard(Some(&Failure::Closed(e.to_string().into())));
            let up = nodes.iter().filter(|node| node.is_up()).count();
            if up < self.0.majority() {
                return Err(e);
            }
            let next = cursor.next(0, nodes.len());
            Ok(Page {
                next,
                ..Page::default()
            })
        })
    }

    /// An owner that is granted the lock at the same time may be broken at some servers, and be let in at the others
    /// behind that. So while one is shown by some alone, all are told again.
    fn break_lock(&self, key: &Key, deadline: &Deadline) -> Result<Vec<Holder>> {
        const MOST: usize = 3;
        let quorum = &*self.0;
        let mut holders: Vec<Holder> = Vec::new();
        for _ in 0..MOST {
            let end = quorum.scripts().breaking(key);
            let held = quorum.ask_each(key, end, deadline, broken)?;
            let all = held.concat();
            let is_alone = !all.is_empty() && all.len() < held.len();
            for holder in quorum.of_majority(&held).into_iter().chain(all) {
                let is_known =
                    |known: &Holder| (&known.party, known.token) == (&holder.party, holder.token);
                if !holders.iter().any(is_known) {
                    holders.push(holder);
                }
            }
            if !is_alone {
                break;
            }
        }
        Ok(holders)
    }

    /// What is found of each as of a single server; but what one loses when it is started anew, and that it is down, is
    /// no harm here. Clocks give tokens where counters are lost.
    fn diagnose(&self, of: (&Namespace, &Options), deadline: &Deadline) -> Result<Vec<Finding>> {
        let (servers, scripts) = (self.0.servers(), self.0.scripts());
        let rejoin = servers[0].settings().rejoin;
        let mut findings = diagnose((&servers, &[]), scripts, of, deadline)?;
        for finding in &mut findings {
            if finding.check == "persistence" && !rejoin.is_zero() {
                let found = format!("a restarted server grants nothing for {rejoin:?}");
                *finding = Finding::fine(finding.check, found);
            } else if let Verdict::Weak { consequence, .. } = &mut finding.verdict
                && finding.check == "servers"
            {
                *consequence = FEWER_MAY_FAIL.into();
            }
        }
        findings.push(self.0.clocks(rejoin));
        Ok(findings)
    }
}

impl Quorum {
    fn servers(&self) -> Vec<Arc<Server>> {
        self.nodes.iter().map(|node| node.server.clone()).collect()
    }

    /// The holder that a majority may show, if there is one; of two, which are before and behind a release that is on
    /// its way, the later one. A server that it asked again has counted another token for it: the usual one is told,
    /// else the smallest.
    fn of_majority(&self, shown: &[Vec<Holder>]) -> Option<Holder> {
        let (all, silent) = (shown.concat(), self.nodes.len() - shown.len());
        let rank = |one: &&Holder| {
            let its = || all.iter().filter(|other| other.party == one.party);
            let last = its().map(|other| other.token).max();
            let alike = its().filter(|other| other.token == one.token).count();
            (its().count(), last, alike, Reverse(one.token))
        };
        let holder = all.iter().max_by_key(rank)?;
        let (count, ..) = rank(&holder);
        (count + silent >= self.majority()).then(|| holder.clone())
    }

    /// How far the servers' clocks are apart.
    fn clocks(&self, rejoin: Duration) -> Finding {
        let ahead = || {
            let voters = self.nodes.iter().filter_map(|node| node.server.voter());
            voters.map(|voter| voter.ahead)
        };
        let apart = ahead().max().unwrap_or(0) - ahead().min().unwrap_or(0);
        let apart = Duration::from_micros(apart);
        let found = format!("the servers' clocks are {apart:.0?} apart");
        let allowed = Some(rejoin).filter(|rejoin| !rejoin.is_zero());
        if apart < allowed.unwrap_or(LEAST_REJOIN) {
            return Finding::fine("clocks", found);
        }
        let consequence = "if a majority loses its data, tokens may be smaller than earlier ones";
        Finding::weak("clocks", found, consequence, "synchronize them with NTP")
    }

    /// Asks all servers, and waits for each. Gives what they say, in their order.
    fn ask_each<T: Clone>(
        &self,
        key: &Key,
        call: Call<'_>,
        deadline: &Deadline,
        read: impl Fn(Value) -> Option<T>,
    ) -> Result<Vec<T>> {
        let mut votes: Votes<_> = self.no_votes();
        let strange = || Failure::Other("it doesn't answer a script as a Redis server does".into());
        let read = |reply: Reply| read(reply.value).map(Ok).ok_or_else(strange);
        self.poll(&mut votes, &call, deadline, read, |_| false);
        let is_majority = votes.is_yes();
        // That one has nothing which was started a short while ago is no news.
        for (node, vote) in self.nodes.iter().zip(&mut votes.said) {
            vote.take_if(|_| !node.votes());
        }
        if !is_majority || votes.yes().next().is_none() {
            return Err(self.too_few(Some(key), votes));
        }
        Ok(votes.yes().cloned().collect())
    }
}
