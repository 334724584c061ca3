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
    ({ $($all:tt)* } { $($preferring:tt)* }) => {
        mod memory {
            suite!(crate::Place::memory(); $($all)* $($preferring)*);
        }

        #[cfg(feature = "file")]
        mod file {
            suite!(crate::Place::file(); $($all)* $($preferring)*);
        }

        #[cfg(feature = "redis")]
        mod redis {
            suite!(crate::Place::redis(); $($all)* $($preferring)*);
        }

        #[cfg(feature = "redis")]
        mod replicated {
            suite!(crate::Place::replicated(); $($all)* $($preferring)*);
        }

        #[cfg(feature = "redis")]
        mod sentinels {
            suite!(crate::Place::sentinels(); $($all)* $($preferring)*);
        }

        #[cfg(feature = "redis")]
        mod cluster {
            suite!(crate::Place::cluster(); $($all)* $($preferring)*);
        }

        #[cfg(feature = "etcd")]
        mod etcd {
            suite!(crate::Place::etcd(); $($all)*);
        }

        #[cfg(feature = "zookeeper")]
        mod zookeeper {
            suite!(crate::Place::zookeeper(); $($all)*);
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
                threads_lose_no_increment_and_their_tokens_increase
                lockers_opened_separately_exclude_each_other
            }
            waiting {
                every_waiting_thread_is_served
            }
            kinds {
                each_call_is_served_when_its_lock_is_free
                renewal_keeps_each_for_several_ttls
                each_call_that_waits_is_cancelled
            }
            lease {
                tokens_are_odd_and_increase_from_holder_to_holder
                forgotten_guard_ends_with_its_ttl_and_is_told_to_the_next_holder_once
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
            close {
                waits_end_in_all_namespaces
            }
            inspect {
                each_of_many_names_is_listed_once
            }
            texts {
                diagnosis_has_words_for_each_check_and_leaves_locks_alone
                errors_name_the_lock_and_hide_owner_and_password
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

/// Each engine that has delay queues.
#[cfg(feature = "delay")]
macro_rules! for_every_engine_with_queues {
    ($($all:tt)*) => {
        mod memory_queues {
            suite!(crate::Place::memory(); $($all)*);
        }

        #[cfg(feature = "file")]
        mod file_queues {
            suite!(crate::Place::file(); $($all)*);
        }

        #[cfg(feature = "redis")]
        mod redis_queues {
            suite!(crate::Place::redis(); $($all)*);
        }

        #[cfg(feature = "redis")]
        mod replicated_queues {
            suite!(crate::Place::replicated(); $($all)*);
        }

        #[cfg(feature = "redis")]
        mod sentinels_queues {
            suite!(crate::Place::sentinels(); $($all)*);
        }

        #[cfg(feature = "redis")]
        mod cluster_queues {
            suite!(crate::Place::cluster(); $($all)*);
        }
    };
}
