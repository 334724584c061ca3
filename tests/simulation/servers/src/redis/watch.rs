//! What sentinels see and do: they miss a master, agree on that, and have a replica take its place.
//!
//! Each knows a master and the epoch of the failover by which it became one. A sentinel that is behind learns of a
//! newer one from another that it reaches. What is not as in reality: they agree without messages, but only with those
//! that they reach, and an epoch has one leader.

use std::time::Duration;

use crosslock_world::service::{Host, Io};

use super::group::Group;
use super::reply::{Outcome, Reply, Words};
use super::state::{Address, State};

/// What a sentinel tells of the master.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    address: Address,
    epoch: u64,
}

pub(super) struct Watch {
    pub(super) members: usize,
    sentinels: Vec<Sentinel>,
    /// When servers are told to copy the master that don't.
    told_at: Vec<Option<Duration>>,
    /// The failover that was the last.
    epoch: u64,
}

#[derive(Clone, Default)]
struct Sentinel {
    master: Host,
    epoch: u64,
    /// When it has a replica take the master's place.
    elects_at: Option<Duration>,
    /// Until when it leaves that to another, for which it has voted.
    has_voted_until: Duration,
}

/// By which the sentinels know the master.
const NAME: &str = "mymaster";
const QUORUM: usize = 2;

/// How long a leader's election takes, in milliseconds.
const ELECTION: std::ops::Range<u64> = 50..800;
/// How long who has voted for a leader leaves the failover to it.
const VOTE: Duration = Duration::from_secs(3);
/// After how long a server is told whom to copy: one that takes itself for the master, and another.
const DEMOTION: std::ops::Range<u64> = 1_000..8_000;
const REORDER: std::ops::Range<u64> = 50..2_000;

fn millis(io: &mut Io<'_>, range: std::ops::Range<u64>) -> Duration {
    Duration::from_millis(io.random.u64(range))
}

impl Watch {
    pub(super) fn new(members: usize, sentinels: usize) -> Self {
        Watch {
            members,
            sentinels: vec![Sentinel::default(); sentinels],
            told_at: vec![None; members],
            epoch: 0,
        }
    }

    /// A sentinel that stood still, or wasn't there.
    pub(super) fn begin_anew(&mut self, host: Host) {
        if let Some(at) = host.checked_sub(self.members) {
            self.sentinels[at].elects_at = None;
        }
    }

    pub(super) fn newest_master(&self) -> Host {
        let newest = self.sentinels.iter().max_by_key(|one| one.epoch);
        newest.map_or(0, |one| one.master)
    }

    /// Has each sentinel answer by what it knows.
    pub(super) fn tell(&self, group: &mut Group) {
        for (host, sentinel) in (self.members..).zip(&self.sentinels) {
            let (address, epoch) = (group.address(sentinel.master), sentinel.epoch);
            group.nodes[host].state.watched = Some(Watched { address, epoch });
        }
    }

    /// Looks at all servers, and does what is due. Says whether anything is amiss still.
    pub(super) fn look(&mut self, group: &mut Group, io: &mut Io<'_>) -> bool {
        for at in 0..self.sentinels.len() {
            let host = self.members + at;
            if !group.is_at_work(host) {
                continue;
            }
            self.listen(at, group, io);
            let has_voted = self.sentinels[at].has_voted_until > io.now;
            if !has_voted && self.misses_master(at, group, io.now) {
                self.elect(at, group, io);
            } else {
                self.sentinels[at].elects_at = None;
            }
        }
        self.set_right(group, io);
        let is_settled = self.sentinels.iter().all(|one| one.epoch == self.epoch);
        let are_right = (0..self.members).all(|member| self.is_right(member, group));
        !(group.is_sound() && is_settled && are_right)
    }

    /// Hears of servers, and of what other sentinels know.
    fn listen(&mut self, at: usize, group: &mut Group, io: &mut Io<'_>) {
        let host = self.members + at;
        group.listen(host, io.now);
        for other in 0..self.sentinels.len() {
            let (master, epoch) = (self.sentinels[other].master, self.sentinels[other].epoch);
            let is_news = epoch > self.sentinels[at].epoch;
            if is_news && group.hears(host, self.members + other) && io.random.u8(..4) == 0 {
                let sentinel = &mut self.sentinels[at];
                (sentinel.master, sentinel.epoch) = (master, epoch);
            }
        }
    }

    /// Whether enough sentinels miss the master, and enough are there to elect one of them.
    fn misses_master(&self, at: usize, group: &Group, now: Duration) -> bool {
        let master = self.sentinels[at].master;
        let others = 0..self.sentinels.len();
        let others = others.filter(|other| group.hears(self.members + at, self.members + other));
        let others: Vec<_> = others.collect();
        let is_down = |at: usize| group.misses(self.members + at, master, now);
        let misses = |other: &&usize| self.sentinels[**other].master == master && is_down(**other);
        let agree = others.iter().filter(misses).count();
        is_down(at) && agree >= QUORUM && others.len() > self.sentinels.len() / 2
    }

    fn elect(&mut self, at: usize, group: &mut Group, io: &mut Io<'_>) {
        match self.sentinels[at].elects_at {
            None => self.sentinels[at].elects_at = Some(io.now + millis(io, ELECTION)),
            Some(time) if time > io.now => {}
            Some(_) => {
                self.sentinels[at].elects_at = None;
                self.fail_over(at, group, io);
            }
        }
    }

    /// The replica with the most data that a sentinel reaches takes the master's place.
    fn fail_over(&mut self, at: usize, group: &mut Group, io: &mut Io<'_>) {
        let (host, before) = (self.members + at, self.sentinels[at].master);
        let fit = |member: &Host| {
            *member != before && group.hears(host, *member) && group.master_of(*member).is_some()
        };
        let best = (0..self.members)
            .rev()
            .filter(fit)
            .max_by_key(|member| group.has(*member));
        let Some(best) = best else { return };
        let voters = 0..self.sentinels.len();
        for voter in voters.filter(|voter| group.hears(host, self.members + voter)) {
            self.sentinels[voter].has_voted_until = io.now + VOTE;
        }
        self.epoch += 1;
        let sentinel = &mut self.sentinels[at];
        (sentinel.master, sentinel.epoch) = (best, self.epoch);
        io.log(format!(
            "sentinel {host}: {best} is the master instead of {before}, epoch {}",
            self.epoch
        ));
        group.promote(best);
        group.nodes[best].close_clients();
    }

    /// SENTINEL FAILOVER, sent to one of those that know most.
    pub(super) fn fail_over_by_hand(&mut self, group: &mut Group, io: &mut Io<'_>) {
        let knows = |at: &usize| {
            self.sentinels[*at].epoch == self.epoch && group.is_at_work(self.members + at)
        };
        let at = (0..self.sentinels.len()).find(knows);
        if let Some(at) = at {
            self.fail_over(at, group, io);
        }
    }

    /// Whether a server copies the newest master, or is it.
    fn is_right(&self, member: Host, group: &Group) -> bool {
        let master = self.newest_master();
        group.master_of(member) == (member != master).then_some(master)
    }

    /// Has servers copy the newest master that a sentinel which knows it reaches.
    fn set_right(&mut self, group: &mut Group, io: &mut Io<'_>) {
        let master = self.newest_master();
        for member in 0..self.members {
            let knows = |at: usize| self.sentinels[at].epoch == self.epoch;
            let mut sentinels = (0..self.sentinels.len()).filter(|at| knows(*at));
            let is_seen = sentinels.any(|at| group.hears(self.members + at, member));
            if self.is_right(member, group) || !is_seen {
                self.told_at[member] = None;
                continue;
            }
            let wait = if group.master_of(member).is_none() {
                DEMOTION
            } else {
                REORDER
            };
            let due = *self.told_at[member].get_or_insert_with(|| io.now + millis(io, wait));
            if due <= io.now {
                self.told_at[member] = None;
                if member == master {
                    group.promote(member);
                } else {
                    group.follow(member, master);
                }
                group.nodes[member].close_clients();
            }
        }
    }
}

/// SENTINEL MASTER and GET-MASTER-ADDR-BY-NAME.
pub(super) fn ask(state: &mut State, words: &Words) -> Outcome {
    let refused = || Reply::error("ERR unknown command");
    let Watched { address, epoch } = state.watched.as_ref().ok_or_else(refused)?;
    let (host, port, epoch) = (&address.0, address.1.to_string(), epoch.to_string());
    match words[1].as_slice() {
        _ if words[2] != NAME.as_bytes() => Err(Reply::error("ERR No such master with that name")),
        b"MASTER" => Ok(Reply::texts(["name", NAME, "config-epoch", &epoch])),
        b"GET-MASTER-ADDR-BY-NAME" => Ok(Reply::texts([host.clone(), port])),
        _ => Err(refused()),
    }
}
