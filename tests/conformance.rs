//! Every engine keeps the same promises: one suite, run for each.

// A test that unwraps fails with the error, which is what it is for.
#![allow(clippy::unwrap_used)]

mod support;

mod conformance {
    pub(crate) mod exclusion;
    pub(crate) mod lease;
    pub(crate) mod names;
    pub(crate) mod options;
    pub(crate) mod release;
    pub(crate) mod texts;
    pub(crate) mod tokens;
    pub(crate) mod waiting;
}

use std::any::Any;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crosslock::{Locker, LockerBuilder};

/// Far more than anything here takes, even on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// What a loaded machine may add to a time that is asserted from above.
pub(crate) const SLACK: Duration = Duration::from_secs(1);

/// Where the locks of one test live, apart from those of all others; the locker that it derefs to has default options.
pub(crate) struct Place {
    locker: Locker,
    url: String,
    namespace: String,
    /// What has to be there for as long as the locker.
    _keep: Box<dyn Any>,
}

impl Place {
    fn new(url: &str, keep: impl Any) -> Self {
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

    fn memory() -> Self {
        Place::new("memory:", ())
    }

    #[cfg(feature = "file")]
    fn file() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Place::new(&format!("file://{}", dir.path().display()), dir)
    }

    #[cfg(feature = "redis")]
    fn redis() -> Self {
        let server = support::RedisServer::builder().password(PASSWORD).start();
        Place::new(&server.url_as(&format!(":{PASSWORD}")), server)
    }

    #[cfg(feature = "redis")]
    fn unix() -> Self {
        let server = support::RedisServer::builder();
        let server = server.password(PASSWORD).unix_socket().start();
        let url = format!("{}?pass={PASSWORD}&db=1", server.unix_url());
        Place::new(&url, server)
    }

    #[cfg(feature = "tls")]
    fn tls() -> Self {
        let server = support::RedisServer::builder().tls().start();
        Place::new(&server.tls_url(), server)
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

macro_rules! suite {
    ($place:expr; $($topic:ident { $($test:ident)* })*) => {
        $(
            mod $topic {
                $(
                    #[test]
                    fn $test() {
                        crate::conformance::$topic::$test(&$place);
                    }
                )*
            }
        )*
    };
}

macro_rules! for_every_engine {
    ($($topic:ident { $($test:ident)* })*) => {
        mod memory {
            suite!(crate::Place::memory(); $($topic { $($test)* })*);
        }

        #[cfg(feature = "file")]
        mod file {
            suite!(crate::Place::file(); $($topic { $($test)* })*);
        }

        #[cfg(feature = "redis")]
        mod redis {
            suite!(crate::Place::redis(); $($topic { $($test)* })*);
        }

        #[cfg(feature = "redis")]
        mod unix {
            suite!(crate::Place::unix(); $($topic { $($test)* })*);
        }

        #[cfg(feature = "tls")]
        mod tls {
            suite!(crate::Place::tls(); $($topic { $($test)* })*);
        }
    };
}

// A function of the suite that is missing here is dead code, which the compiler tells.
for_every_engine! {
    exclusion {
        threads_lose_no_increment
        taken_lock_is_none_and_free_lock_is_some
        clones_exclude_each_other
        lockers_opened_separately_exclude_each_other
        names_do_not_block_each_other
        namespaces_are_apart
        empty_namespace_is_one_like_any_other
        cycles_in_a_tight_loop_always_find_the_lock_free
    }
    waiting {
        waiting_thread_is_served_when_the_guard_is_dropped
        every_waiting_thread_is_served
        timed_wait_ends_after_its_timeout
        timed_wait_gets_a_lock_that_is_released_meanwhile
        deadline_ends_a_wait
        deadline_in_the_past_tries_once
        zero_timeout_tries_once
        longest_timeout_waits_for_the_release
        attempts_end_in_busy
        attempts_end_timed_calls_with_none
        attempts_do_not_matter_when_the_lock_is_free
    }
    release {
        drop_releases
        unlock_releases
        panic_releases
        another_thread_can_release
        guard_stays_held_across_threads
        guard_outlives_its_locker
        clone_outlives_the_original
        released_guard_closes_its_channel_without_a_message
        abandoned_waiting_call_leaves_nothing
    }
    lease {
        fresh_guard_is_held_and_verified
        renewal_keeps_a_lock_for_several_ttls
        lease_that_is_not_renewed_is_lost
        lost_lease_can_be_taken_by_another_who_keeps_it
        every_clone_of_the_channel_learns_of_the_loss
        max_hold_ends_renewal
        forgotten_guard_ends_with_its_ttl_and_is_told_to_the_next_holder_once
        clean_release_is_no_abandonment
    }
    tokens {
        tokens_are_odd_and_increase_from_holder_to_holder
        tokens_increase_over_threads
        tokens_increase_in_each_namespace
        tokens_increase_after_an_abandonment
    }
    names {
        odd_names_are_all_different_locks
        longest_name_is_accepted
        names_out_of_bounds_are_rejected_by_every_call
        bad_namespaces_are_rejected
    }
    options {
        values_out_of_range_are_rejected_by_name
        bounds_themselves_are_accepted
    }
    texts {
        debug_output_hides_owner_and_password
        errors_hide_owner_and_password
        errors_name_the_lock
    }
}

#[cfg(feature = "redis")]
#[test]
fn errors_of_a_server_hide_the_password() {
    conformance::texts::errors_of_a_server_hide_the_password();
}
