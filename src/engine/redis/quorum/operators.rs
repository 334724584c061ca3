//! What operators see of a name, and do with it: what a majority says.

use std::{cmp::Reverse, mem::discriminant, time::Duration};

use ::redis::Value;

use super::shared::Quorum;
use crate::base::diagnosis::Verdict;
use crate::base::{
    Deadline, Finding, Holder, Inspection, Key, LockState, Namespace, Options, Result,
};
use crate::engine::redis::diagnosis::diagnose;
use crate::engine::redis::keys::{Keys, VALUE, broken_channel};
use crate::engine::redis::operators::{broken, inspection};
use crate::engine::redis::script::Call;
use crate::engine::{Cursor, Page};

/// How far clocks may differ where servers rejoin at once.
const LEAST_REJOIN: Duration = Duration::from_secs(1);

impl Quorum {
    /// The state and the holders are what a majority shows; the waiters are those of the first server that has some.
    pub(super) fn inspect(&self, key: &Key, deadline: &Deadline) -> Result<Inspection> {
        let keys = Keys::of(key);
        let look = || (self.scripts()).call("lock/inspect", &keys.all()[..VALUE], &[]);
        let seen = self.ask_each(key, look, deadline, |value| inspection(key, value))?;
        let count = |state: LockState| {
            let is_so = |one: &&Inspection| discriminant(&one.state) == discriminant(&state);
            seen.iter().filter(is_so).count()
        };
        let mut states = seen.iter().map(|one| one.state);
        let state = states.find(|state| count(*state) >= self.nodes.majority());
        let mut waiters = seen.iter().map(|one| &one.waiters);
        Ok(Inspection {
            name: key.name().to_owned(),
            state: state.unwrap_or(LockState::Free),
            waiters: waiters
                .find(|all| !all.is_empty())
                .cloned()
                .unwrap_or_default(),
            last_token: seen.iter().filter_map(|one| one.last_token).max(),
            holders: self.of_majority(seen.into_iter().map(|one| one.holders).collect()),
        })
    }

    /// An owner that is granted the lock at the same time may be broken at some servers, and be let in at the others
    /// behind that. So while one is shown by some alone, all are told again. No copy is sent by itself: that would
    /// break the lease of the next holder.
    pub(super) fn break_lock(&self, key: &Key, deadline: &Deadline) -> Result<Vec<Holder>> {
        const MOST: usize = 3;
        let keys = Keys::of(key);
        let channel = broken_channel(key.namespace(), None);
        let arguments = [channel.as_bytes()];
        let scripts = self.scripts();
        let end = || (scripts.call("lock/break", &keys.all()[..VALUE], &arguments)).once();
        let mut holders: Vec<Holder> = Vec::new();
        for _ in 0..MOST {
            let held = self.ask_each(key, end, deadline, broken)?;
            let is_of_all = held.iter().all(|of_one| of_one.len() == 1) || held.concat().is_empty();
            for holder in self
                .of_majority(held.clone())
                .into_iter()
                .chain(held.concat())
            {
                let is_known =
                    |known: &Holder| (&known.party, known.token) == (&holder.party, holder.token);
                if !holders.iter().any(is_known) {
                    holders.push(holder);
                }
            }
            if is_of_all {
                break;
            }
        }
        Ok(holders)
    }

    /// The holder that a majority may show, if there is one; of two, which are before and behind a release that is on
    /// its way, the later one. A server that it asked again has counted another token for it: the usual one is told,
    /// else the smallest.
    fn of_majority(&self, shown: Vec<Vec<Holder>>) -> Vec<Holder> {
        let silent = self.nodes.all.len() - shown.len();
        let all: Vec<_> = shown.into_iter().flatten().collect();
        let count = |is_so: &dyn Fn(&Holder) -> bool| all.iter().filter(|one| is_so(one)).count();
        let parties = |of: &Holder| count(&|one| one.party == of.party);
        let tokens = |of: &Holder| count(&|one| one.party == of.party && one.token == of.token);
        let last = |of: &Holder| {
            all.iter()
                .filter(|one| one.party == of.party)
                .map(|one| one.token)
                .max()
        };
        let may_hold = |one: &&Holder| parties(one) + silent >= self.nodes.majority();
        let rank = |one: &&Holder| (parties(one), last(one), tokens(one), Reverse(one.token));
        all.iter()
            .filter(may_hold)
            .max_by_key(rank)
            .cloned()
            .into_iter()
            .collect()
    }

    /// What is found of each as of a single server; but what one loses when it is started anew, and that it is down, is
    /// no harm here. Clocks give tokens where counters are lost.
    pub(super) fn diagnose(
        &self,
        of: (&Namespace, &Options),
        deadline: &Deadline,
    ) -> Result<Vec<Finding>> {
        let nodes = || self.nodes.all.iter();
        let servers: Vec<_> = nodes().map(|node| node.server.clone()).collect();
        let mut findings = diagnose((&servers, &[]), self.scripts(), of, deadline)?;
        let rejoin = servers[0].settings().rejoin;
        for finding in &mut findings {
            if finding.check == "persistence" && !rejoin.is_zero() {
                let found = format!("a restarted server grants nothing for {rejoin:?}");
                *finding = Finding::fine(finding.check, found);
            } else if let Verdict::Weak { consequence, .. } = &mut finding.verdict
                && finding.check == "servers"
            {
                *consequence =
                    "locks work while a majority is up, but fewer of the others may fail".into();
            }
        }
        let clocks = servers
            .iter()
            .filter_map(|one| Some(one.voter()?.clock_at(self.nodes.began)));
        let (least, most) = clocks.fold((u64::MAX, 0), |(least, most), one| {
            (least.min(one), most.max(one))
        });
        let apart = Duration::from_micros(most.saturating_sub(least));
        let found = format!("the servers' clocks are {apart:.0?} apart");
        let allowed = if rejoin.is_zero() {
            LEAST_REJOIN
        } else {
            rejoin
        };
        findings.push(if apart < allowed {
            Finding::fine("clocks", found)
        } else {
            let consequence =
                "if a majority loses its data, tokens may be smaller than earlier ones";
            Finding::weak("clocks", found, consequence, "synchronize them with NTP")
        });
        Ok(findings)
    }

    /// Asks all servers, and waits for each. Gives what they say, in their order.
    fn ask_each<'a, T>(
        &'a self,
        key: &Key,
        call: impl Fn() -> Call<'a>,
        deadline: &Deadline,
        read: impl Fn(Value) -> Option<T>,
    ) -> Result<Vec<T>> {
        let calls: Vec<_> = self.nodes.all.iter().map(|_| Some(call())).collect();
        let (mut said, mut abstained, mut failed) = (Vec::new(), 0, None);
        self.nodes.round(&calls, deadline, |at, answer| {
            match answer {
                // That it has nothing is no news.
                Ok(_) if !self.nodes.all[at].votes() => abstained += 1,
                Ok(answer) => said.push((at, read(answer.value))),
                Err(e) => _ = failed.get_or_insert(e.error),
            }
            false
        });
        if said.len() + abstained < self.nodes.majority() || said.is_empty() {
            return Err(self.too_few(key, said.len(), failed));
        }
        said.sort_by_key(|(at, _)| *at);
        let understood = said.into_iter().map(|(_, said)| said);
        understood
            .collect::<Option<_>>()
            .ok_or_else(|| self.scripts().surprised(key))
    }

    /// Page after page of one server after the other: what a majority has is at each majority. Those that are down are
    /// passed over.
    pub(super) fn list(
        &self,
        namespace: &Namespace,
        prefix: &str,
        cursor: Cursor,
        deadline: &Deadline,
    ) -> Result<Page> {
        let Some(node) = self.nodes.all.get(cursor.part) else {
            return Ok(Page::default());
        };
        let (part, at) = (cursor.part, Cursor { part: 0, ..cursor });
        let page = node.scripts.list(namespace, prefix, at, deadline);
        let page = page.or_else(|e| {
            node.failed(&e.to_string());
            let up = self.nodes.all.iter().filter(|node| node.is_up()).count();
            if up < self.nodes.majority() {
                Err(e)
            } else {
                Ok(Page::default())
            }
        })?;
        let next = match page.next {
            Some(next) => Some(Cursor { part, ..next }),
            None => Some(Cursor {
                part: part + 1,
                ..Cursor::default()
            })
            .filter(|next| next.part < self.nodes.all.len()),
        };
        Ok(Page { next, ..page })
    }
}
