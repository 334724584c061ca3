//! Places for the locks of a test: one of each engine, and of each way to a server.

use std::any::Any;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
#[cfg(feature = "redis")]
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crosslock::{Locker, LockerBuilder};

/// Where the locks of one test live, apart from those of all others; the locker that it derefs to has default options.
pub(crate) struct Place {
    locker: Locker,
    pub(crate) url: String,
    namespace: String,
    /// What has to be there for as long as the locker.
    _keep: Box<dyn Any + Send + Sync>,
}

impl Place {
    fn new(url: &str, keep: impl Any + Send + Sync) -> Self {
        // All of memory: is one place, so that tests differ in their namespace.
        static PLACES: AtomicU64 = AtomicU64::new(0);
        let namespace = format!("place-{}", PLACES.fetch_add(1, Relaxed));
        let locker = Locker::builder(url).namespace(&namespace).build().unwrap();
        Place {
            locker,
            url: url.to_owned(),
            namespace,
            _keep: Box::new(keep),
        }
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
        let server = support::RedisServer::builder().password(PASSWORD).start();
        Place::new(&server.url_as(&format!(":{PASSWORD}")), server)
    }

    #[cfg(feature = "redis")]
    pub(crate) fn unix() -> Self {
        let server = support::RedisServer::builder();
        let server = server.password(PASSWORD).unix_socket().start();
        let url = format!("{}?pass={PASSWORD}&db=1", server.unix_url());
        Place::new(&url, server)
    }

    /// Each test finds its master by sentinels, all by TLS if this build has it.
    #[cfg(feature = "redis")]
    pub(crate) fn sentinels() -> Self {
        static SET: Mutex<Weak<support::SentinelSet>> = Mutex::new(Weak::new());
        let set = shared(&SET, || {
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
        static SET: Mutex<Weak<support::Replicated>> = Mutex::new(Weak::new());
        let set = shared(&SET, || {
            support::Setup::new().password(PASSWORD).replicated(1)
        });
        // On a busy machine a replica needs its time.
        let options = "min_replicas=1&replica_timeout=2s&clock_skew=0ms";
        Place::new(&format!("{}?{options}", set.url(0)), set)
    }

    #[cfg(feature = "redis")]
    pub(crate) fn cluster() -> Self {
        static SET: Mutex<Weak<support::Cluster>> = Mutex::new(Weak::new());
        let set = shared(&SET, || {
            support::Setup::new().calm().password(PASSWORD).cluster()
        });
        // The suite knows when leases end.
        Place::new(&format!("{}?clock_skew=0ms", set.url()), set)
    }

    #[cfg(feature = "tls")]
    pub(crate) fn tls() -> Self {
        let server = support::RedisServer::builder().tls().start();
        Place::new(&server.tls_url(), server)
    }
}

/// Servers that all tests share that run at one time: they take seconds to start.
#[cfg(feature = "redis")]
fn shared<T>(servers: &Mutex<Weak<T>>, start: impl FnOnce() -> T) -> Arc<T> {
    let mut shared = servers.lock().unwrap_or_else(PoisonError::into_inner);
    let set = shared.upgrade().unwrap_or_else(|| Arc::new(start()));
    *shared = Arc::downgrade(&set);
    set
}

impl Deref for Place {
    type Target = Locker;

    fn deref(&self) -> &Locker {
        &self.locker
    }
}

/// The password of every server that has one.
pub(crate) const PASSWORD: &str = "swordfish-7c1d";
