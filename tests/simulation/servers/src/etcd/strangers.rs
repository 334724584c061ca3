//! Programs that aren't crosslock, and stand in the line of a name as `etcdctl lock` does.

use std::collections::BTreeSet;
use std::sync::Arc;

use crosslock_world::service::Io;

use super::Etcd;
use super::request::{Command, Lease, Op, Put, Txn};

/// What comes behind as many comes behind many.
const MANY: usize = 17;
/// What their keys end with, and a number.
const NAME: &str = "/w/other-";

impl Etcd {
    /// So many come into a line, and stay until their leases end, whose numbers the servers choose.
    pub(super) fn let_strangers_in(&mut self, io: &mut Io<'_>) {
        let Some(leader) = self.leader.filter(|_| self.is_healthy()) else {
            return;
        };
        let keys = self.members[leader].state.all();
        let keys: Vec<_> = keys.map(|one| String::from_utf8_lossy(&one.key)).collect();
        let lines = keys.iter().filter_map(|key| Some(key.split_once("/w/")?.0));
        let lines: BTreeSet<_> = lines.map(|line| format!("{line}{NAME}")).collect();
        let lines: Vec<_> = lines.into_iter().collect();
        let Some(line) = io.random.choice(&lines) else {
            return;
        };
        let first = self.number();
        io.log(format!("strangers come: {line}"));
        // The last stays longer than the others.
        let (most, last) = (io.random.i64(2..8), io.random.i64(4..15));
        for (names, ttl) in [(0..MANY - 1, most), (MANY - 1..MANY, last)] {
            let id = io.random.i64(1..);
            let put = |nth: usize| {
                Op::Put(Put {
                    key: format!("{line}{first}-{nth}").into_bytes(),
                    value: Vec::new(),
                    lease: id,
                })
            };
            let txn = Txn {
                success: names.map(put).collect(),
                ..Txn::default()
            };
            for command in [Command::Grant(Lease { id, ttl }), Command::Txn(txn)] {
                let number = self.number();
                self.agree(io, number, Arc::new(command));
            }
        }
    }
}

/// Whether that is the key of one of them.
pub(super) fn is_stranger(key: &[u8]) -> bool {
    String::from_utf8_lossy(key).contains(NAME)
}
