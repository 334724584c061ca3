//! Places for the locks of a test: one of each engine, and of each way to a server.

use std::any::Any;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
#[cfg(any(feature = "redis", feature = "etcd", feature = "zookeeper"))]
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crosslock::{Locker, LockerBuilder};

/// Those that other tests have started, or others of this type.
#[cfg(any(feature = "redis", feature = "etcd", feature = "zookeeper"))]
macro_rules! shared {
    ($servers:ident, $start:expr) => {{
        static SERVERS: Mutex<Weak<support::$servers>> = Mutex::new(Weak::new());
        shared(&SERVERS, || $start)
    }};
}

/// Where the locks of one test live, apart from those of all others; the locker that it derefs to has default options.
pub(crate) struct Place {
    locker: Locker,
    pub(crate) url: String,
    namespace: String,
    pub(crate) leases: Leases,
    /// What has to be there for as long as the locker.
    _keep: Box<dyn Any + Send + Sync>,
}

/// What leases are like at a place.
#[derive(Clone, Copy)]
pub(crate) struct Leases {
    /// The engine has no shorter ttl.
    pub(crate) shortest: Duration,
    /// The suite uses no shorter ttl, and only multiples of it, so that whatever is longer for one engine is for all.
    unit: Duration,
    /// A lease may begin by such a part of its ttl before it is granted.
    early: f64,
    /// So much later than its ttl the engine may take notice of its end.
    late: Duration,
    /// There are only locks that one holds at a time.
    pub(crate) only_exclusive: bool,
    /// So many names can be had at once.
    pub(crate) most_names: usize,
    /// A value may have so many bytes.
    #[cfg_attr(not(feature = "value"), allow(dead_code))]
    pub(crate) largest_value: usize,
}

impl Leases {
    const EXACT: Self = Self {
        shortest: Duration::from_millis(100),
        unit: Duration::from_millis(50),
        early: 0.0,
        late: Duration::ZERO,
        only_exclusive: false,
        most_names: 100,
        largest_value: 2_800_000,
    };
    /// An unused lease serves another lock, and the server looks twice a second which have ended.
    #[cfg(feature = "etcd")]
    const ETCD: Self = Self {
        shortest: Duration::from_secs(1),
        unit: Duration::from_secs(2),
        early: 0.5,
        late: Duration::from_secs(1),
        only_exclusive: false,
        most_names: 40,
        largest_value: 700_000,
    };
    /// A session is as old as its last proof, and servers count ticks.
    #[cfg(feature = "zookeeper")]
    const ZOOKEEPER: Self = Self {
        shortest: Duration::from_millis(400),
        unit: Duration::from_millis(600),
        early: 0.5,
        late: Duration::from_millis(400),
        only_exclusive: false,
        most_names: 100,
        // Servers hang up on a request of 1 MB.
        largest_value: 1_000_000,
    };
}

/// All of memory: is one place, so that tests differ in their namespace; servers that all share have a root for each.
fn next_number() -> u64 {
    static PLACES: AtomicU64 = AtomicU64::new(0);
    PLACES.fetch_add(1, Relaxed)
}

impl Place {
    fn new(url: &str, keep: impl Any + Send + Sync) -> Self {
        Self::with(Leases::EXACT, url, keep)
    }

    fn with(leases: Leases, url: &str, keep: impl Any + Send + Sync) -> Self {
        let namespace = format!("place-{}", next_number());
        let locker = Locker::builder(url).namespace(&namespace).build().unwrap();
        Place {
            locker,
            url: url.to_owned(),
            namespace,
            leases,
            _keep: Box::new(keep),
        }
    }

    /// Returns a ttl for what the suite would have end after `wanted`: that, or the next which the engine has.
    pub(crate) fn ttl(&self, wanted: Duration) -> Duration {
        let unit = self.leases.unit;
        let units = wanted.as_millis().div_ceil(unit.as_millis());
        unit * u32::try_from(units).expect("the suite isn't that patient")
    }

    /// How long a lease of that ttl lasts at least, from before it was asked for.
    pub(crate) fn least(&self, ttl: Duration) -> Duration {
        // An allowance for clocks that differ.
        let margin = ttl / 100 + Duration::from_millis(2);
        (ttl - margin).mul_f64(1.0 - self.leases.early)
    }

    /// How soon another has the lock, at most, after a lease of that ttl was asked for that isn't renewed.
    pub(crate) fn most(&self, ttl: Duration) -> Duration {
        ttl + self.leases.late
    }

    /// A ttl whose end is waited for.
    pub(crate) fn brief(&self) -> Duration {
        self.ttl(Duration::from_millis(150))
    }

    /// Another locker of this place, as another process would have it.
    pub(crate) fn other(&self) -> Locker {
        self.builder().build().unwrap()
    }

    /// Another locker, whose leases end after the ttl [`brief`](Self::brief).
    pub(crate) fn careless(&self) -> Locker {
        self.careless_after(self.brief())
    }

    /// Another locker, whose leases end after that ttl.
    pub(crate) fn careless_after(&self, ttl: Duration) -> Locker {
        self.builder().ttl(ttl).renew(false).build().unwrap()
    }

    /// Options for another locker of this place.
    pub(crate) fn builder(&self) -> LockerBuilder {
        Locker::builder(&self.url).namespace(&self.namespace)
    }

    pub(crate) fn memory() -> Self {
        Place::new("memory:", ())
    }

    #[cfg(feature = "file")]
    pub(crate) fn file() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Place::new(&format!("file://{}", dir.path().display()), dir)
    }

    #[cfg(feature = "redis")]
    pub(crate) fn redis() -> Self {
        let server = shared!(
            RedisServer,
            support::RedisServer::builder().password(PASSWORD).start()
        );
        Place::new(&server.url_as(&format!(":{PASSWORD}")), server)
    }

    #[cfg(feature = "redis")]
    pub(crate) fn unix() -> Self {
        let server = shared!(RedisServer, {
            let server = support::RedisServer::builder();
            server.password(PASSWORD).unix_socket().start()
        });
        let url = format!("{}?pass={PASSWORD}&db=1", server.unix_url());
        Place::new(&url, server)
    }

    /// Each test finds its master by sentinels, all by TLS if this build has it.
    #[cfg(feature = "redis")]
    pub(crate) fn sentinels() -> Self {
        let set = shared!(SentinelSet, {
            let setup = support::Setup::new().calm().password(PASSWORD);
            #[cfg(feature = "tls")]
            let setup = setup.tls();
            setup.sentinels()
        });
        Place::new(&set.url(), set)
    }

    /// What is written there is on a replica, too, before it counts.
    #[cfg(feature = "redis")]
    pub(crate) fn replicated() -> Self {
        let set = shared!(
            Replicated,
            support::Setup::new().password(PASSWORD).replicated(1)
        );
        // On a busy machine a replica needs its time.
        let options = "min_replicas=1&replica_timeout=2s&clock_skew=0ms";
        Place::new(&format!("{}?{options}", set.url(0)), set)
    }

    #[cfg(feature = "redis")]
    pub(crate) fn cluster() -> Self {
        let set = shared!(
            Cluster,
            support::Setup::new().calm().password(PASSWORD).cluster()
        );
        // The suite knows when leases end.
        Place::new(&format!("{}?clock_skew=0ms", set.url()), set)
    }

    /// Its servers are never started anew.
    #[cfg(feature = "redis")]
    pub(crate) fn quorum() -> Self {
        let set = shared!(Quorum, support::Setup::new().password(PASSWORD).quorum(3));
        let leases = Leases {
            only_exclusive: true,
            ..Leases::EXACT
        };
        Place::with(leases, &format!("{}&clock_skew=0ms", set.url("0s")), set)
    }

    /// All use one server, each below a root of its own.
    #[cfg(feature = "etcd")]
    pub(crate) fn etcd() -> Self {
        let server = shared!(Etcd, support::Etcd::setup().login().start());
        let url = server.url_at(&format!("root-{}", next_number()));
        Place::with(Leases::ETCD, &url, server)
    }

    #[cfg(feature = "etcd")]
    pub(crate) fn etcd3() -> Self {
        let cluster = shared!(EtcdCluster, {
            // The longest with leases of two seconds: nobody takes over only because a busy machine stood still.
            let setup = support::Etcd::setup().flag("election-timeout", "1300");
            setup.cluster(3)
        });
        let url = cluster.url_at(&format!("root-{}", next_number()));
        Place::with(Leases::ETCD, &url, cluster)
    }

    /// All use one server, each below a root of its own.
    #[cfg(feature = "zookeeper")]
    pub(crate) fn zookeeper() -> Self {
        let server = shared!(ZooKeeper, patient().start());
        let url = server.url_at(&format!("root-{}", next_number()));
        // Its longest session isn't of 20 ticks, by which crosslock would find out how long they are.
        let url = format!("{url}?tick=100ms&auth=digest:locker:{PASSWORD}");
        Place::with(Leases::ZOOKEEPER, &url, server)
    }

    #[cfg(feature = "zookeeper")]
    pub(crate) fn zookeeper3() -> Self {
        let ensemble = shared!(Ensemble, patient().config("syncLimit", "100").ensemble(3));
        let url = ensemble.url_at(&format!("root-{}?tick=100ms", next_number()));
        Place::with(Leases::ZOOKEEPER, &url, ensemble)
    }

    #[cfg(feature = "tls")]
    pub(crate) fn tls() -> Self {
        let server = shared!(RedisServer, support::RedisServer::builder().tls().start());
        Place::new(&server.tls_url(), server)
    }
}

/// Sessions of the suite's ttls, and values of its size.
#[cfg(feature = "zookeeper")]
fn patient() -> support::ZooKeeperSetup {
    let day = (24 * 3600 * 1000).to_string();
    support::ZooKeeper::setup().config("maxSessionTimeout", &day)
}

/// Servers that tests share which run one after the other or at one time: they take seconds to start.
#[cfg(any(feature = "redis", feature = "etcd", feature = "zookeeper"))]
struct Shared<T>(Arc<T>);

#[cfg(any(feature = "redis", feature = "etcd", feature = "zookeeper"))]
fn shared<T>(servers: &Mutex<Weak<T>>, start: impl FnOnce() -> T) -> Shared<T> {
    let mut shared = servers.lock().unwrap_or_else(PoisonError::into_inner);
    let set = shared.upgrade().unwrap_or_else(|| Arc::new(start()));
    *shared = Arc::downgrade(&set);
    Shared(set)
}

#[cfg(any(feature = "redis", feature = "etcd", feature = "zookeeper"))]
impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

#[cfg(any(feature = "redis", feature = "etcd", feature = "zookeeper"))]
impl<T> Drop for Shared<T> {
    /// The last of the tests that run waits for a moment for the next one to begin, on another thread: so the servers
    /// aren't started anew between two of them.
    fn drop(&mut self) {
        const NEXT_BEGINS_WITHIN: Duration = Duration::from_millis(300);
        support::eventually(NEXT_BEGINS_WITHIN, || Arc::strong_count(&self.0) > 1);
    }
}

impl Deref for Place {
    type Target = Locker;

    fn deref(&self) -> &Locker {
        &self.locker
    }
}

/// The password of every server that has one.
pub(crate) const PASSWORD: &str = "swordfish-7c1d";
