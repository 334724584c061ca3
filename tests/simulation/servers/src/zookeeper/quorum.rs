//! Who leads whom. There are no votes: of those that reach one another, the one that knows most is made the leader.

use std::time::Duration;

use crosslock_world::service::{Connection, Host, Io};

use super::member::{FromLeader, Leadership, Role};
use super::{SYNC_LIMIT, ZooKeeper};

impl ZooKeeper {
    pub(super) fn reaches(&self, one: Host, other: Host) -> bool {
        let is_there = |at: Host| self.members[at].health.is_there();
        one == other || (is_there(one) && is_there(other))
    }

    /// Those that haven't left it, whether it reaches them or not.
    pub(super) fn followers(&self, leader: Host) -> Vec<Host> {
        let epoch = self.members[leader].epoch;
        let members = self.members.iter().enumerate();
        let follows = members.filter(|(_, member)| {
            matches!(member.role, Role::Following(whom) if whom == leader) && member.epoch == epoch
        });
        follows.map(|(place, _)| place).collect()
    }

    fn is_majority(&self, count: usize) -> bool {
        count > self.members.len() / 2
    }

    pub(super) fn has_majority(&self, leader: Host) -> bool {
        let followers = self.followers(leader).into_iter();
        let reached = followers.filter(|follower| self.reaches(leader, *follower));
        self.is_majority(1 + reached.count())
    }

    /// The leader that another can join: no other has come after it, and it doesn't give up.
    fn leader(&self) -> Option<Host> {
        let members = self.members.iter().enumerate();
        let leads = members.filter(|(_, member)| {
            let well =
                matches!(&member.role, Role::Leading(leadership) if leadership.quits_at.is_none());
            well && member.health.is_there()
        });
        leads
            .max_by_key(|(_, member)| member.epoch)
            .map(|(place, _)| place)
    }

    /// Whose nodes count.
    pub(super) fn newest(&self) -> Host {
        let places = 0..self.members.len();
        let newest = places.max_by_key(|place| self.members[*place].tree.zxid);
        newest.expect("there is one")
    }

    /// Looks who has lost whom, and who has found whom. Returns whether anything has changed.
    pub(super) fn review(&mut self, io: &mut Io<'_>) -> bool {
        let mut changed = false;
        for at in 0..self.members.len() {
            if !self.members[at].health.is_at_work() {
                continue;
            }
            changed |= match self.members[at].role {
                Role::Following(leader) => self.follow(io, at, leader),
                Role::Leading(_) => self.count_followers(io, at),
                Role::Looking => self.seek(io, at),
            };
        }
        self.hold_election(io) || changed
    }

    fn follow(&mut self, io: &mut Io<'_>, at: Host, leader: Host) -> bool {
        let hears = !self.members[at].health.is_cut && !self.members[leader].health.is_cut;
        let is_left = hears && !self.followers_of(leader).contains(&at);
        let reaches = self.reaches(at, leader);
        let member = &mut self.members[at];
        if is_left || member.leaves_at.is_some_and(|time| time <= io.now) {
            self.leave(io, at);
            return true;
        }
        if reaches {
            member.leaves_at = None;
        } else if member.leaves_at.is_none() {
            // It has heard the last ping within half a tick.
            let since = self.tick.mul_f64(io.random.f64() / 2.0);
            member.leaves_at = Some(io.now + self.tick * SYNC_LIMIT - since);
        }
        false
    }

    /// None, if it doesn't lead.
    fn followers_of(&self, leader: Host) -> Vec<Host> {
        match self.members[leader].role {
            Role::Leading(_) => self.followers(leader),
            _ => Vec::new(),
        }
    }

    fn count_followers(&mut self, io: &mut Io<'_>, at: Host) -> bool {
        let (has_majority, tick) = (self.has_majority(at), self.tick);
        let limit = tick * SYNC_LIMIT;
        let is_left = !self.is_majority(1 + self.followers(at).len());
        let Some(leadership) = self.members[at].leadership() else {
            return false;
        };
        if leadership.quits_at.is_some_and(|time| time <= io.now) {
            self.leave(io, at);
            return true;
        }
        let within = tick.mul_f64(io.random.f64());
        if has_majority {
            (leadership.quits_at, leadership.is_left) = (None, false);
        } else if is_left && !leadership.is_left {
            // It looks once a tick.
            leadership.is_left = true;
            let soon = io.now + within;
            leadership.quits_at = Some(leadership.quits_at.unwrap_or(soon).min(soon));
        } else if leadership.quits_at.is_none() {
            // It counts from what it was answered last, and looks once a tick.
            let since = tick.mul_f64(io.random.f64() / 2.0);
            leadership.quits_at = Some(io.now + limit - since + within);
        }
        false
    }

    fn seek(&mut self, io: &mut Io<'_>, at: Host) -> bool {
        let leader = self.leader().filter(|leader| self.reaches(at, *leader));
        let Some(leader) = leader else {
            self.members[at].joins_at = None;
            return false;
        };
        let soon = io.now + Duration::from_millis(io.random.u64(100..600));
        let joins_at = *self.members[at].joins_at.get_or_insert(soon);
        if joins_at > io.now {
            return false;
        }
        let (tree, epoch) = (self.members[leader].copy(), self.members[leader].epoch);
        let member = &mut self.members[at];
        (member.tree, member.epoch) = (tree, epoch);
        (member.role, member.joins_at) = (Role::Following(leader), None);
        io.log(format!("ZooKeeper: {at} follows {leader}"));
        true
    }

    /// It leads and follows nobody any more. All that was committed is on its disk.
    pub(super) fn leave(&mut self, io: &mut Io<'_>, at: Host) {
        for connection in self.clients_of(at) {
            self.hang_up(io, connection);
        }
        self.look_for_leader(at);
        io.log(format!("ZooKeeper: {at} looks for a leader"));
    }

    pub(super) fn clients_of(&self, at: Host) -> Vec<Connection> {
        let clients = self.clients.iter().filter(|(_, client)| client.at == at);
        clients.map(|(connection, _)| *connection).collect()
    }

    /// The same of one without clients.
    pub(super) fn look_for_leader(&mut self, at: Host) {
        let member = &mut self.members[at];
        member.tree.zxid = member.last();
        member.role = Role::Looking;
        (member.leaves_at, member.joins_at) = (None, None);
        member.to_leader.clear();
        member.touched.clear();
        for (_, message) in std::mem::take(&mut member.from_leader) {
            if let FromLeader::Commit(committed) = message {
                let _ = member.tree.apply(&committed);
            }
        }
    }

    fn hold_election(&mut self, io: &mut Io<'_>) -> bool {
        let places = 0..self.members.len();
        let may_vote = |at: &Host| {
            let member = &self.members[*at];
            matches!(member.role, Role::Looking) && member.health.is_there()
        };
        let voters: Vec<_> = places.filter(may_vote).collect();
        if self.leader().is_some() || !self.is_majority(voters.len()) {
            self.elects_at = None;
            return false;
        }
        let soon = io.now + Duration::from_millis(io.random.u64(200..2_000));
        if *self.elects_at.get_or_insert(soon) > io.now {
            return false;
        }
        self.elects_at = None;
        let avoided = self.avoided.take();
        let key = |at: &&Host| (self.members[**at].tree.zxid, avoided != Some(**at), **at);
        let leader = *voters.iter().max_by_key(key).expect("a majority");
        self.make_leader(io.now, leader);
        let (tree, epoch) = (self.members[leader].copy(), self.members[leader].epoch);
        for at in voters.into_iter().filter(|at| *at != leader) {
            let member = &mut self.members[at];
            (member.tree, member.epoch) = (tree.clone(), epoch);
            (member.role, member.joins_at) = (Role::Following(leader), None);
        }
        io.log(format!("ZooKeeper: {leader} leads, with epoch {epoch}"));
        true
    }

    pub(super) fn make_leader(&mut self, now: Duration, leader: Host) {
        let epochs = self.members.iter().map(|member| member.epoch);
        let epoch = epochs.max().unwrap_or(0) + 1;
        let member = &mut self.members[leader];
        let leadership = Leadership::new(&member.tree, now, self.tick);
        (member.epoch, member.tree.zxid) = (epoch, epoch << 32);
        (member.role, member.joins_at) = (Role::Leading(leadership), None);
    }
}
