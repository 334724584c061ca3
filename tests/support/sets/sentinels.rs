//! A master, its replicas, and the sentinels that watch them.

use std::collections::HashMap;
use std::time::Duration;

use super::PATIENCE;
use super::member::Member;
use super::replicated::{wait_until_caught_up, wait_until_master};
use super::setup::{Setup, hosts};
use crate::{eventually, wait_until};

const NAME: &str = "mymaster";
const REPLICAS: usize = 2;
const SENTINELS: usize = 3;
const TRIED_FOR: Duration = Duration::from_secs(2);

type State = HashMap<String, String>;

/// Three servers, of which 0 is the first master, and three sentinels, to which it is `mymaster`; dropping it kills
/// all.
#[derive(Debug)]
pub struct SentinelSet {
    setup: Setup,
    members: Vec<Member>,
    sentinels: Vec<Member>,
}

impl SentinelSet {
    pub fn start() -> Self {
        Setup::new().sentinels()
    }

    pub(super) fn start_with(setup: Setup) -> Self {
        let members = setup.servers(REPLICAS);
        let port = members[0].public_port();
        // A sentinel asks a master for its replicas at once, and then not for ten seconds.
        wait_until_caught_up(&members);
        let sentinels = (0..SENTINELS).map(|index| setup.sentinel(index, port));
        let sentinels = sentinels.collect();
        let set = Self {
            setup,
            members,
            sentinels,
        };
        // After a pause of two seconds, as on a busy machine, a sentinel would do nothing for 30 s.
        set.set_time("tilt-period", "2000");
        set.wait_until_settled();
        set
    }

    /// Returns the server `index`; 0 was started as the master.
    pub fn member(&self, index: usize) -> &Member {
        &self.members[index]
    }

    pub fn members(&self) -> &[Member] {
        &self.members
    }

    pub fn sentinel(&self, index: usize) -> &Member {
        &self.sentinels[index]
    }

    pub fn sentinels(&self) -> &[Member] {
        &self.sentinels
    }

    pub fn url(&self) -> String {
        let (scheme, hosts) = (self.setup.scheme("+sentinel"), hosts(&self.sentinels));
        let parameters = self.setup.parameters(&self.members[0]);
        format!("{scheme}{hosts}/{NAME}{parameters}")
    }

    pub fn hosts(&self) -> String {
        hosts(&self.sentinels)
    }

    /// Returns which server the sentinels that run take for the master: what the one with the highest epoch says.
    #[track_caller]
    pub fn master(&self) -> usize {
        let views = self.running().filter_map(|sentinel| self.view(sentinel));
        let newest = views.max_by_key(|(epoch, _)| *epoch);
        newest.expect("a sentinel knows the master").1
    }

    #[track_caller]
    pub fn failover(&self) -> usize {
        let old = self.master();
        // A failover may be under way. A sentinel gives one up when it finds no replica good enough, as on a busy
        // machine, where it hasn't heard of any for too long.
        wait_until("a failover", PATIENCE, || {
            self.master() != old || {
                self.running().any(begin_failover);
                eventually(TRIED_FOR, || self.master() != old)
            }
        });
        self.wait_for_other_master(old)
    }

    /// Waits until all sentinels that run take one and the same server but `old` for the master, and until that one
    /// says so itself; returns it.
    #[track_caller]
    pub fn wait_for_other_master(&self, old: usize) -> usize {
        let mut new = None;
        wait_until("the sentinels to have another master", PATIENCE, || {
            new = self.agreed();
            new.is_some_and(|new| new != old)
        });
        let new = new.expect("it was there");
        wait_until_master(&self.members[new]);
        new
    }

    /// Waits until all sentinels that run know each other, and take all servers that run for reachable, and until the
    /// replicas have caught up.
    #[track_caller]
    pub fn wait_until_settled(&self) {
        wait_until("the sentinels to agree", PATIENCE, || {
            self.agreed().is_some()
        });
        // A sentinel looks that often, and makes a master that comes back a replica after four times as long as it
        // tells the others of itself: one that hasn't heard of the new master would take that one for it.
        self.set_time("publish-period", "100");
        self.set_time("info-period", "500");
        wait_until("the sentinels to know all", PATIENCE, || {
            self.agreed().is_some() && self.running().all(|sentinel| self.knows_all(sentinel))
        });
        wait_until_caught_up(&self.members);
        self.set_time("publish-period", "2000");
        self.set_time("info-period", "10000");
    }

    fn running(&self) -> impl Iterator<Item = &Member> {
        self.sentinels
            .iter()
            .filter(|sentinel| sentinel.is_running())
    }

    fn view(&self, sentinel: &Member) -> Option<(u64, usize)> {
        let ask = ["SENTINEL", "MASTER", NAME];
        let state: State = sentinel.try_query(&ask).ok()?;
        let epoch = state.get("config-epoch")?.parse().ok()?;
        let ask = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME];
        let addr: (String, u16) = sentinel.try_query(&ask).ok()?;
        Some((epoch, self.at(addr.1)?))
    }

    fn at(&self, port: u16) -> Option<usize> {
        let mut members = self.members.iter();
        members.position(|member| member.public_port() == port)
    }

    /// Returns the master if all sentinels that run have the same.
    fn agreed(&self) -> Option<usize> {
        let views: Option<Vec<_>> = self.running().map(|sentinel| self.view(sentinel)).collect();
        let views = views?;
        let first = views.first()?.1;
        views.iter().all(|view| view.1 == first).then_some(first)
    }

    fn knows_all(&self, sentinel: &Member) -> bool {
        let ask = |what| sentinel.try_query::<Vec<State>>(&["SENTINEL", what, NAME]);
        let master = sentinel.try_query::<State>(&["SENTINEL", "MASTER", NAME]);
        let (Ok(master), Ok(replicas), Ok(sentinels)) = (master, ask("REPLICAS"), ask("SENTINELS"))
        else {
            return false;
        };
        let good = |state: &&State| {
            let flags = state.get("flags").map_or("", String::as_str);
            // A sentinel may be `master_down` for long: so it called the master when it was asked last.
            let bad = ["s_down", "o_down", "disconnected"];
            !flags.split(',').any(|flag| bad.contains(&flag))
        };
        let running = self.members.iter().filter(|member| member.is_running());
        let linked = |state: &&State| {
            state
                .get("master-link-status")
                .is_some_and(|status| status == "ok")
        };
        good(&&master)
            && replicas.iter().filter(good).filter(linked).count() + 1 == running.count()
            && sentinels.iter().filter(good).count() + 1 == self.running().count()
    }

    fn set_time(&self, name: &str, value: &str) {
        for sentinel in &self.sentinels {
            // Before Redis 7 it can't be set, and everything takes longer.
            let _ = sentinel.try_query::<()>(&["SENTINEL", "DEBUG", name, value]);
        }
    }
}

fn begin_failover(sentinel: &Member) -> bool {
    sentinel
        .try_query::<()>(&["SENTINEL", "FAILOVER", NAME])
        .is_ok()
}
