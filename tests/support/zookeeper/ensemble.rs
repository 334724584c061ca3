//! Several servers of ZooKeeper that are one.

use std::time::Duration;

use super::{ZooKeeper, ZooKeeperSetup};
use crate::{Fault, eventually};

const SETTLES_WITHIN: Duration = Duration::from_secs(60);

/// An ensemble; dropping it kills all its servers.
#[derive(Debug)]
pub struct Ensemble {
    members: Vec<ZooKeeper>,
}

impl Ensemble {
    /// Starts so many servers.
    pub fn of(members: usize) -> Self {
        ZooKeeperSetup::new().ensemble(members)
    }

    pub(super) fn of_members(members: Vec<ZooKeeper>) -> Self {
        Self { members }
    }

    /// Returns the URL with all hosts.
    pub fn url(&self) -> String {
        self.url_at("")
    }

    /// Returns the URL of all locks below `chroot`.
    pub fn url_at(&self, chroot: &str) -> String {
        let hosts = self.members.iter().map(|member| member.addr().to_string());
        let hosts: Vec<_> = hosts.collect();
        format!("zk://{}/{chroot}", hosts.join(","))
    }

    /// Returns all servers.
    pub fn members(&self) -> &[ZooKeeper] {
        &self.members
    }

    /// Returns the server `index`, counted from 0.
    pub fn member(&self, index: usize) -> &ZooKeeper {
        &self.members[index]
    }

    /// Kills one with SIGKILL.
    pub fn kill(&self, index: usize) {
        self.members[index].kill();
    }

    /// Stops one with SIGSTOP.
    pub fn stop(&self, index: usize) {
        self.members[index].stop();
    }

    /// Continues one after [`Ensemble::stop`].
    pub fn go_on(&self, index: usize) {
        self.members[index].go_on();
    }

    /// Starts one again, and waits until it has a leader.
    pub fn restart(&self, index: usize) {
        self.members[index].restart();
    }

    /// Waits until one says that it leads, and most others that they follow; returns which.
    ///
    /// # Panics
    ///
    /// If none does within a minute.
    #[track_caller]
    pub fn leader(&self) -> usize {
        let mut leader = None;
        eventually(SETTLES_WITHIN, || {
            leader = self.leader_now();
            leader.is_some()
        });
        leader.expect("a leader within a minute")
    }

    /// Waits until another than `old` leads; returns which.
    ///
    /// # Panics
    ///
    /// If none does within a minute.
    #[track_caller]
    pub fn wait_for_other_leader(&self, old: usize) -> usize {
        let mut leader = None;
        eventually(SETTLES_WITHIN, || {
            leader = self.leader_now().filter(|new| *new != old);
            leader.is_some()
        });
        leader.expect("another leader within a minute")
    }

    fn leader_now(&self) -> Option<usize> {
        let modes: Vec<_> = self.members.iter().map(ZooKeeper::mode).collect();
        let are = |mode: &str| {
            let modes = modes.iter().flatten();
            modes.filter(|one| *one == mode).count()
        };
        let most = are("leader") == 1 && 1 + are("follower") > modes.len() / 2;
        let is_leader = |mode: &Option<String>| mode.as_deref() == Some("leader");
        modes.iter().position(is_leader).filter(|_| most)
    }

    /// Cuts two off from each other: neither hears anything of the other any more, but who votes for whom. Clients aren't
    /// touched.
    ///
    /// # Panics
    ///
    /// If it was started without [`ZooKeeperSetup::proxies`].
    #[track_caller]
    pub fn cut(&self, one: usize, other: usize) {
        self.link(one, other, Fault::BlackHole);
    }

    /// Takes back [`Ensemble::cut`].
    #[track_caller]
    pub fn join(&self, one: usize, other: usize) {
        self.link(one, other, Fault::None);
    }

    /// Cuts one off from all others.
    #[track_caller]
    pub fn isolate(&self, index: usize) {
        self.others(index).for_each(|other| self.cut(index, other));
    }

    /// Takes back [`Ensemble::isolate`].
    #[track_caller]
    pub fn take_back(&self, index: usize) {
        self.others(index).for_each(|other| self.join(index, other));
    }

    fn others(&self, index: usize) -> impl Iterator<Item = usize> {
        (0..self.members.len()).filter(move |other| *other != index)
    }

    fn link(&self, one: usize, other: usize, fault: Fault) {
        let (one, other) = (&self.members[one], &self.members[other]);
        one.hears(other, fault);
        other.hears(one, fault);
    }
}
