//! Members of etcd or ZooKeeper, of which a majority keeps the locks and elects who leads.

use std::net::SocketAddr;
use std::time::Duration;

use crate::looks::{self, EtcdLook, ZooKeeperLook};
use crate::topology::Topology;
use support::{Ensemble, EtcdCluster, EtcdSetup, Protocol, Proxy, ZooKeeperSetup, eventually};

const PATIENCE: Duration = Duration::from_secs(180);
pub(crate) const MEMBERS: usize = 3;
/// So many of each member are shown, if one doesn't answer any more.
const LINES_OF_LOG: usize = 40;

/// The members of a run.
#[derive(Debug)]
pub(crate) enum Members {
    Etcd(EtcdCluster),
    ZooKeeper(Ensemble),
}

/// Does the same with either.
macro_rules! of_either {
    ($members:expr, $all:ident => $done:expr) => {
        match $members {
            Members::Etcd($all) => $done,
            Members::ZooKeeper($all) => $done,
        }
    };
}

impl Members {
    /// So that a member that is late on a busy machine isn't taken for one that is gone, it may be late for a second.
    pub(super) fn start(topology: Topology) -> Self {
        match topology {
            Topology::Etcd => {
                let setup = EtcdSetup::new().proxies().flag("election-timeout", "1000");
                Members::Etcd(setup.cluster(MEMBERS))
            }
            _ => {
                let setup = ZooKeeperSetup::new().proxies().config("syncLimit", "10");
                Members::ZooKeeper(setup.ensemble(MEMBERS))
            }
        }
    }

    /// Where clients reach them.
    pub(crate) fn addrs(&self) -> Vec<SocketAddr> {
        (0..MEMBERS).map(|index| self.addr(index)).collect()
    }

    fn addr(&self, index: usize) -> SocketAddr {
        of_either!(self, all => all.member(index).own_addr())
    }

    /// Those that run, with the ids of their processes.
    pub(super) fn running(&self) -> Vec<(SocketAddr, u32)> {
        let running = (0..MEMBERS).filter(|index| self.is_running(*index));
        running
            .map(|index| {
                let pid = of_either!(self, all => all.member(index).pid());
                (self.addr(index), pid)
            })
            .collect()
    }

    fn is_running(&self, index: usize) -> bool {
        of_either!(self, all => all.member(index).is_running())
    }

    pub(super) fn proxy_to(&self, addr: SocketAddr) -> Proxy {
        let protocol = match self {
            Members::Etcd(_) => Protocol::Http,
            Members::ZooKeeper(_) => Protocol::ZooKeeper,
        };
        Proxy::speaking(protocol, addr)
    }

    pub(super) fn url_by(&self, addrs: &[SocketAddr]) -> String {
        let hosts: Vec<_> = addrs.iter().map(SocketAddr::to_string).collect();
        let (scheme, parameters) = match self {
            Members::Etcd(_) => ("etcd", ""),
            Members::ZooKeeper(_) => ("zk", "?tick=100ms"),
        };
        format!("{scheme}://{}/{parameters}", hosts.join(","))
    }

    /// What a request has in it whose reply is to be lost.
    pub(crate) fn request(&self, fault: &str) -> &'static str {
        match (self, fault) {
            (Members::Etcd(_), "lose reply to acquire") => "request_put",
            (Members::Etcd(_), "lose reply to renew") => "/v3/lease/keepalive",
            (Members::Etcd(_), _) => "request_delete_range",
            (Members::ZooKeeper(_), "lose reply to acquire") => "/x-",
            // The numbers of `sync` and `multi`.
            (Members::ZooKeeper(_), "lose reply to renew") => "\0\0\0\u{9}",
            (Members::ZooKeeper(_), _) => "\0\0\0\u{e}",
        }
    }

    /// What looks at one of them.
    pub(crate) fn look(&self) -> looks::Open {
        match self {
            Members::Etcd(_) => EtcdLook::open,
            Members::ZooKeeper(_) => ZooKeeperLook::open,
        }
    }

    pub(crate) fn leader(&self) -> usize {
        of_either!(self, all => all.leader())
    }

    pub(crate) fn wait_for_other_leader(&self, old: usize) {
        of_either!(self, all => drop(all.wait_for_other_leader(old)));
    }

    pub(crate) fn kill(&self, index: usize) {
        of_either!(self, all => all.kill(index));
    }

    /// Starts one that was killed, and waits for nothing.
    pub(crate) fn launch_again(&self, index: usize) {
        of_either!(self, all => all.member(index).launch_again());
    }

    pub(crate) fn stop(&self, index: usize) {
        of_either!(self, all => all.stop(index));
    }

    pub(crate) fn go_on(&self, index: usize) {
        of_either!(self, all => all.go_on(index));
    }

    /// Cuts one off from all others. Clients reach it as before.
    pub(crate) fn cut_off(&self, index: usize) {
        of_either!(self, all => all.isolate(index));
    }

    /// Takes that back.
    pub(crate) fn join(&self, index: usize) {
        of_either!(self, all => all.take_back(index));
    }

    /// Waits until each of them has answered for a majority.
    pub(super) fn mend(&self) {
        let mut silent: Vec<_> = (0..MEMBERS).collect();
        let all_answer = eventually(PATIENCE, || {
            silent.retain(|index| self.look()(self.addr(*index)).look().is_none());
            silent.is_empty()
        });
        assert!(all_answer, "{}", self.logs_of(&silent));
    }

    /// The ends of their logs.
    fn logs_of(&self, silent: &[usize]) -> String {
        let logs = (0..MEMBERS).map(|index| {
            let log = of_either!(self, all => all.member(index).log());
            let lines: Vec<_> = log.lines().rev().take(LINES_OF_LOG).collect();
            let lines: Vec<_> = lines.into_iter().rev().collect();
            format!("member {index}:\n{}\n", lines.join("\n"))
        });
        format!(
            "members {silent:?} don't answer\n{}",
            logs.collect::<String>()
        )
    }

    /// What is there that should not be, when all clients have ended.
    pub(super) fn left(&self) -> Option<String> {
        let clients = match self {
            Members::Etcd(all) => looks::short_leases(all.member(0).own_addr()).ok()?,
            Members::ZooKeeper(all) => {
                let sessions = all.members().iter().flat_map(support::ZooKeeper::sessions);
                sessions.map(|id| format!("{id:x}")).collect()
            }
        };
        let view = self.look()(self.addr(0)).look();
        let owned = view.map_or_else(|| vec!["unknown".to_owned()], |view| view.owned);
        let is_clean = clients.is_empty() && owned.is_empty();
        (!is_clean).then(|| format!("keys {owned:?}, and leases or sessions {clients:?}"))
    }

    /// The number that is stored for a name.
    pub(super) fn stored(&self, name: &str) -> u64 {
        let mut stored = None;
        eventually(PATIENCE, || {
            stored = match self {
                Members::Etcd(_) => looks::value_at(self.addr(0), name).ok(),
                Members::ZooKeeper(_) => ZooKeeperLook::at(self.addr(0)).value(name).ok(),
            };
            stored.is_some()
        });
        stored.expect("it answers")
    }
}
