//! What a locker asks of servers that take each other's place.

use std::time::Duration;

use super::LockerBuilder;

impl LockerBuilder {
    /// Sets how many replicas must have a lease before it is granted or renewed, on Redis. 0 and up, default: 0.
    ///
    /// With as many as there are replicas, a failover loses no lease. With fewer it may: see `docs/replicas.md`. A lease that
    /// too few replicas confirm isn't granted, and isn't renewed. `?min_replicas=N` in the URL goes before this.
    ///
    /// # Examples
    ///
    /// ```
    /// let locker = crosslock::Locker::builder("memory:").min_replicas(1).build()?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn min_replicas(mut self, replicas: u32) -> Self {
        self.options.min_replicas = replicas;
        self
    }

    /// Sets how long the server waits for those replicas. 10 ms to 60 s, default: 500 ms.
    ///
    /// It waits for half of the time that the call has left, if that is less. `?replica_timeout=500ms` in the URL goes before
    /// this.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let builder = crosslock::Locker::builder("memory:").min_replicas(1);
    /// let locker = builder.replica_timeout(Duration::from_millis(200)).build()?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn replica_timeout(mut self, timeout: Duration) -> Self {
        self.options.replica_timeout = timeout;
        self
    }

    /// Sets by how much the clocks of servers may differ that take each other's place. 0 to ttl / 4, default: 10 ms where
    /// servers do that, with Sentinel, in a cluster and with [`min_replicas`](Self::min_replicas).
    ///
    /// A lease is valid for as much less than its ttl. `?clock_skew=10ms` in the URL goes before this.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let builder = crosslock::Locker::builder("memory:");
    /// let locker = builder.clock_skew(Duration::from_millis(50)).build()?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn clock_skew(mut self, skew: Duration) -> Self {
        self.options.clock_skew = Some(skew);
        self
    }
}
