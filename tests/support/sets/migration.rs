//! How slots come from one node to another.

use std::process::Command;

use redis::RedisResult;

use super::PATIENCE;
use super::cluster::Cluster;
use super::member::Member;
use crate::{admin, wait_until};

/// A slot on its way, step by step: each step can be the last that a test takes.
#[derive(Debug)]
pub struct Migration<'a> {
    cluster: &'a Cluster,
    slot: u16,
    from: usize,
    to: usize,
}

impl Cluster {
    /// Returns the steps that bring `slot` from the node that has it to `to`; none is done yet.
    #[track_caller]
    pub fn migration(&self, slot: u16, to: usize) -> Migration<'_> {
        let from = self.owner_of_slot(slot).expect("a node has the slot");
        Migration {
            cluster: self,
            slot,
            from,
            to,
        }
    }

    /// Brings `slot` to the node `to`, and waits until all nodes know.
    #[track_caller]
    pub fn move_slot(&self, slot: u16, to: usize) {
        let migration = self.migration(slot, to);
        migration.import();
        migration.migrate();
        migration.move_keys();
        migration.finish();
        self.wait_until_ok();
    }

    /// Brings the slots from `first` to `last` to the node `to` as Valkey 9 does by itself (`MIGRATESLOTS`), and waits
    /// until all nodes know.
    #[track_caller]
    pub fn migrate_slots(&self, first: u16, last: u16, to: usize) {
        let from = self.owner_of_slot(first).expect("a node has the slot");
        let (id, range) = (self.id(to), [first, last].map(|slot| slot.to_string()));
        let words = [
            "CLUSTER",
            "MIGRATESLOTS",
            "SLOTSRANGE",
            &range[0],
            &range[1],
            "NODE",
            &id,
        ];
        self.node(from).query::<()>(&words);
        wait_until("the slots to be there", PATIENCE, || {
            self.owner_of_slot(first) == Some(to) && self.owner_of_slot(last) == Some(to)
        });
        self.wait_until_ok();
    }

    /// Mends what is left half done, with `redis-cli --cluster fix`, and waits until all nodes agree.
    #[track_caller]
    pub fn fix(&self) {
        let node = self.node(self.running()[0]);
        let mut cli = Command::new("redis-cli");
        cli.args(["--cluster", "fix", &node.public_addr().to_string()]);
        let output = cli.output().expect("run redis-cli");
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{cli:?} failed:\n{told}");
        self.wait_until_ok();
    }
}

impl Migration<'_> {
    /// Tells the new owner that the slot comes (`SETSLOT IMPORTING`).
    pub fn import(&self) {
        self.set_slot(self.to, &["IMPORTING", &self.cluster.id(self.from)]);
    }

    /// Tells the old owner that the slot goes (`SETSLOT MIGRATING`).
    pub fn migrate(&self) {
        self.set_slot(self.from, &["MIGRATING", &self.cluster.id(self.to)]);
    }

    fn keys(&self) -> Vec<String> {
        let slot = self.slot.to_string();
        self.node(self.from)
            .query(&["CLUSTER", "GETKEYSINSLOT", &slot, "1000"])
    }

    #[track_caller]
    pub fn move_key(&self, key: &str) {
        let port = self.node(self.to).public_port().to_string();
        let mut words = vec!["MIGRATE", "127.0.0.1", &port, key, "0", "5000"];
        if self.node(self.from).settings.guarded {
            words.extend(["AUTH2", admin::LOGIN.0, admin::LOGIN.1]);
        }
        // NOKEY if it has expired meanwhile.
        self.node(self.from).query::<String>(&words);
    }

    #[track_caller]
    pub fn move_keys(&self) {
        loop {
            let keys = self.keys();
            if keys.is_empty() {
                return;
            }
            keys.iter().for_each(|key| self.move_key(key));
        }
    }

    /// Tells all masters who has the slot now (`SETSLOT NODE`), the new owner first.
    ///
    /// As `redis-cli` does it, each once: told again, the new owner ends the sharded channels of the slot.
    pub fn finish(&self) {
        let id = self.cluster.id(self.to);
        self.set_slot(self.to, &["NODE", &id]);
        for other in self
            .cluster
            .masters()
            .into_iter()
            .filter(|one| *one != self.to)
        {
            let done = self.try_set_slot(other, &["NODE", &id]);
            // A master whose last slot has gone becomes a replica of the new owner, as soon as it hears of it.
            assert!(done.is_ok() || !self.cluster.is_master(other), "{done:?}");
        }
    }

    fn node(&self, index: usize) -> &Member {
        self.cluster.node(index)
    }

    fn set_slot(&self, node: usize, words: &[&str]) {
        self.try_set_slot(node, words).expect("set a slot");
    }

    fn try_set_slot(&self, node: usize, words: &[&str]) -> RedisResult<()> {
        let slot = self.slot.to_string();
        let command = ["CLUSTER", "SETSLOT", &slot];
        self.node(node).try_query(&[&command[..], words].concat())
    }
}
