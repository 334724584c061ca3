//! Has each test of the suite run for each engine, in a place of its own.

macro_rules! suite {
    ($place:expr; $($(#[$only:meta])? $topic:ident { $($test:ident)* })*) => {
        $(
            $(#[$only])?
            mod $topic {
                $(
                    #[test]
                    fn $test() {
                        crate::$topic::$test(&$place);
                    }
                )*
            }
        )*
    };
}

macro_rules! for_every_engine {
    ({ $($all:tt)* } { $($sharing:tt)* } { $($preferring:tt)* }) => {
        mod memory {
            suite!(crate::Place::memory(); $($all)* $($sharing)* $($preferring)*);
        }

        #[cfg(feature = "file")]
        mod file {
            suite!(crate::Place::file(); $($all)* $($sharing)* $($preferring)*);
        }

        #[cfg(feature = "redis")]
        mod redis {
            suite!(crate::Place::redis(); $($all)* $($sharing)* $($preferring)*);
        }

        #[cfg(feature = "redis")]
        mod replicated {
            suite!(crate::Place::replicated(); $($all)* $($sharing)* $($preferring)*);
        }

        #[cfg(feature = "redis")]
        mod sentinels {
            suite!(crate::Place::sentinels(); $($all)* $($sharing)* $($preferring)*);
        }

        #[cfg(feature = "redis")]
        mod cluster {
            suite!(crate::Place::cluster(); $($all)* $($sharing)* $($preferring)*);
        }

        #[cfg(feature = "etcd")]
        mod etcd {
            suite!(crate::Place::etcd(); $($all)* $($sharing)*);
        }

        #[cfg(feature = "zookeeper")]
        mod zookeeper {
            suite!(crate::Place::zookeeper(); $($all)* $($sharing)*);
        }
    };
}

/// What depends on how several servers agree, or on the way to a server. The whole suite runs on one server of each
/// engine.
#[cfg(any(feature = "redis", feature = "etcd", feature = "zookeeper"))]
macro_rules! suite_in_part {
    ($place:expr) => {
        suite! { $place;
            exclusion {
                threads_lose_no_increment
                lockers_opened_separately_exclude_each_other
            }
            waiting {
                waiting_thread_is_served_when_the_guard_is_dropped
                every_waiting_thread_is_served
            }
            lease {
                renewal_keeps_a_lock_for_several_ttls
                forgotten_guard_ends_with_its_ttl_and_is_told_to_the_next_holder_once
            }
            tokens {
                tokens_are_odd_and_increase_from_holder_to_holder
            }
            rwlock {
                threads_read_together_and_write_alone
            }
            semaphore {
                threads_never_have_more_than_there_are
            }
            several {
                overlapping_sets_in_any_order_make_progress_and_exclude
            }
            break_lock {
                holders_that_break_each_other_exclude_each_other
            }
            cancel {
                call_that_waits_ends
            }
            close {
                waits_end_in_all_namespaces
            }
            list {
                each_of_many_names_is_listed_once
            }
            diagnosis {
                each_finding_has_a_check_of_its_own_and_words
            }
            texts {
                errors_hide_owner_and_password
            }
            #[cfg(feature = "value")]
            mutex {
                threads_lose_no_change
            }
            #[cfg(feature = "value")]
            mutex_contents {
                large_values_come_back
            }
        }
    };
}
