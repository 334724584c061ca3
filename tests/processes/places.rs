//! Where processes lock, and what is expected of them in every place.

use super::*;
use support::Child;
use support::puppet::SCRIPT;

/// Short, so that what children hold is renewed several times.
const LEASE: Duration = Duration::from_millis(400);
/// Where it matters that none ends, however busy the machine is.
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
const LASTING: Duration = Duration::from_secs(20);

/// A place of a test's own, for as long as this is there.
pub(super) struct Place {
    pub(super) url: String,
    /// How short leases may be there, and how long they are where one that ends on a busy machine would be the test's
    /// end.
    pub(super) lease: Duration,
    lasting: Duration,
    forks: u32,
    /// What is stored there of those that hold a lock or wait for it.
    line: Box<dyn Fn() -> Vec<String>>,
}

impl Place {
    fn of(url: String, line: impl Fn() -> Vec<String> + 'static) -> Self {
        Place {
            url,
            lease: LEASE,
            lasting: LEASE,
            forks: 150,
            line: Box::new(line),
        }
    }

    pub(super) fn memory() -> Self {
        Place::of("memory:".to_owned(), Vec::new)
    }

    pub(super) fn named_memory() -> Self {
        Place::of("memory:forked".to_owned(), Vec::new)
    }

    #[cfg(feature = "file")]
    pub(super) fn file() -> Self {
        let dir = temp_dir();
        Place::of(file_url(&dir), move || {
            let _kept = &dir;
            Vec::new()
        })
    }

    #[cfg(feature = "redis")]
    pub(super) fn redis() -> Self {
        let server = support::RedisServer::start();
        let url = server.url();
        Place::of(url, move || but_counters(server.keys()))
    }

    #[cfg(feature = "redis")]
    pub(super) fn sentinel() -> Self {
        let set = support::SentinelSet::start();
        let url = set.url();
        let keys = move || but_counters(set.member(set.master()).keys());
        Place::of(url, keys)
    }

    #[cfg(feature = "redis")]
    pub(super) fn cluster() -> Self {
        let cluster = support::Setup::new().calm().cluster();
        let url = cluster.url();
        let keys = move || but_counters((0..3).flat_map(|node| cluster.node(node).keys()));
        // A renewal asks the nodes who has the slot, too.
        Place {
            lease: 4 * LEASE,
            lasting: 4 * LEASE,
            ..Place::of(url, keys)
        }
    }

    /// Where leases are whole seconds, or ticks, and each takes its time.
    #[cfg(any(feature = "etcd", feature = "zookeeper"))]
    fn slow(url: String, line: impl Fn() -> Vec<String> + 'static) -> Self {
        Place {
            lease: Duration::from_secs(2),
            lasting: LASTING,
            forks: 40,
            ..Place::of(url, line)
        }
    }

    #[cfg(feature = "etcd")]
    pub(super) fn etcd() -> Self {
        let server = support::Etcd::start();
        Place::slow(server.url(), move || {
            let mut keys = server.keys("");
            keys.retain(|key| key.contains("/w/"));
            keys
        })
    }

    /// Sessions may last as long as leases do by default. The longest isn't of 20 ticks, by which crosslock would find
    /// out how long they are.
    #[cfg(feature = "zookeeper")]
    pub(super) fn zookeeper() -> Self {
        let setup = support::ZooKeeper::setup();
        let server = setup.config("maxSessionTimeout", "60000").start();
        Place::slow(format!("{}?tick=100ms", server.url()), move || {
            let mut nodes = server.nodes();
            nodes.retain(|node| node.contains("/x-"));
            nodes
        })
    }

    pub(super) fn succeeds(&self, role: &str) {
        self.succeeds_with(role, self.lasting);
    }

    pub(super) fn succeeds_with(&self, role: &str, lease: Duration) {
        self.run(role, lease, &[]);
    }

    pub(super) fn plays(&self, script: &str) {
        self.run("script", self.lease, &[(SCRIPT, script)]);
    }

    pub(super) fn plays_with_lasting_leases(&self, script: &str) {
        self.run("script", self.lasting, &[(SCRIPT, script)]);
    }

    fn run(&self, role: &str, ttl: Duration, more: &[(&str, &str)]) {
        let (ttl, forks) = (ttl.as_millis().to_string(), self.forks.to_string());
        let args = [(URL, &*self.url), (TTL, &*ttl), (COUNT, &*forks)];
        let mut child = Child::spawn(role, &[&args, more].concat());
        // Many forks may take long; a child that hangs is found by itself.
        assert!(child.wait(10 * PATIENCE).success());
        self.assert_nothing_is_left();
    }

    #[track_caller]
    fn assert_nothing_is_left(&self) {
        assert_eq!((self.line)(), [""; 0]);
    }
}

#[cfg(feature = "redis")]
fn but_counters(keys: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut keys: Vec<_> = keys.into_iter().collect();
    keys.retain(|key| !key.ends_with(":fence"));
    keys
}

/// Runs these tests in a place of their own each.
macro_rules! in_each_place {
    ($($(#[$cfg:meta])* $place:ident: $($test:ident)*;)*) => {
        $($(#[$cfg])* mod $place {
            $(#[test] fn $test() {
                super::$test(&$crate::places::Place::$place());
            })*
        })*
    };
}
pub(super) use in_each_place;
