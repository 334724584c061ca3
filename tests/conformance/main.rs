//! Every engine keeps the same promises: one suite, run for each.

mod at_least;
mod break_lock;
mod cancel;
mod close;
#[cfg(feature = "value")]
mod condition;
#[cfg(feature = "value")]
mod coordination;
#[cfg(feature = "delay")]
mod delay;
#[cfg(feature = "delay")]
mod delay_workers;
#[macro_use]
mod engines;
mod exclusion;
mod inspect;
mod kinds;
mod lease;
#[cfg(feature = "value")]
mod mutex;
#[cfg(feature = "value")]
mod mutex_contents;
mod names;
mod place;
mod preferring;
mod release;
mod rwlock;
#[cfg(feature = "value")]
mod rwlock_value;
mod semaphore;
mod several;
mod texts;
mod traits;
mod waiting;

use std::time::Duration;

pub(crate) use place::Place;

/// Far more than anything here takes, even on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

// What every engine can do, and what those can that have delay queues and let readers or writers be preferred. A
// function of the suite that is missing here is dead code, which the compiler tells. `quorum` marks what has only locks
// that one holds at a time, and `ways` what depends on how several servers agree, or on the way to a server.
for_every_engine! {
    {
        exclusion {
            threads_exclude_each_other_in_every_way(ways)
            namespaces_are_apart(quorum)
        }
        kinds {
            guard_tells_of_its_lock_until_it_is_released(quorum)
            each_call_is_served_when_its_lock_is_free(quorum, ways)
            each_call_ends_in_time(quorum)
            each_call_tries_a_given_number_of_times(quorum)
            lease_that_is_not_renewed_is_lost_and_then_the_next_ones(quorum, ways)
            renewal_keeps_each_for_several_ttls(quorum, ways)
            panic_releases_each_and_is_told_of_those_that_are_exclusive(quorum)
            what_can_not_be_downgraded_is_released
            each_is_passed_on_once_with_a_token_above(quorum)
            each_call_that_waits_is_cancelled(quorum, ways)
        }
        waiting {
            longest_timeout_waits_for_the_release(quorum)
        }
        release {
            lock_that_is_taken_while_unwinding_is_released_in_order(quorum)
            guard_outlives_its_thread_and_its_locker(quorum)
        }
        lease {
            every_clone_of_the_channel_learns_of_the_loss(quorum)
            max_hold_ends_renewal(quorum)
            tokens_are_odd_and_increase_from_holder_to_holder(quorum, ways)
            ticket_of_another_namespace_is_refused_and_still_good(quorum)
            ticket_that_nobody_uses_lasts_for_its_ttl(quorum)
        }
        at_least {
            whatever_is_released_early_stays_taken_until_its_time(quorum)
            last_call_counts(quorum)
            panic_frees_it_at_once(quorum)
            reader_keeps_out_writers_and_no_readers
            permits_limit_a_rate
        }
        names {
            odd_names_are_all_different_locks(quorum)
            names_out_of_bounds_are_rejected_by_every_call
            bad_namespaces_are_rejected(quorum)
            values_out_of_range_are_rejected_by_name(quorum)
            shortest_ttl_is_that_of_the_engine(quorum)
            bounds_themselves_are_accepted(quorum)
        }
        texts {
            debug_output_hides_owner_and_password(quorum)
            errors_name_the_lock_and_hide_owner_and_password(quorum, ways)
            diagnosis_has_words_for_each_check_and_leaves_locks_alone(quorum, ways)
        }
        inspect {
            holder_is_seen(quorum)
            kept_lock_is_seen_as_kept_and_listed(quorum)
            all_holders_are_seen_and_listed
            waiters_are_seen_in_their_order_with_what_they_want
            names_in_use_are_listed(quorum)
            prefix_has_no_special_characters(quorum)
            each_of_many_names_is_listed_once(quorum, ways)
        }
        break_lock {
            broken_lock_is_the_next_holders(quorum)
            end_of_its_hold_tells_the_holder
            break_of_a_free_lock_takes_it_from_nobody(quorum)
            break_ends_the_time_that_a_lock_is_kept(quorum)
            break_keeps_the_order_of_those_who_wait(quorum)
        }
        cancel {
            later_call_ends_at_once(quorum)
            pauses_between_attempts_end(quorum)
        }
        close {
            locks_are_free_unless_they_are_kept_and_their_guards_know(quorum)
            waits_end_in_all_namespaces(quorum, ways)
            closed_locker_takes_nothing(quorum)
        }
        #[cfg(feature = "value")]
        mutex {
            value_starts_as_init_and_is_stored_read_and_removed
            value_that_was_not_borrowed_mutably_or_is_discarded_is_not_stored
            panic_discards_the_change_and_is_told
            each_call_takes_it_when_it_is_free_and_none_when_it_is_not
            lost_lease_stores_nothing
            threads_lose_no_change(ways)
            update_stores_what_its_closure_leaves_unless_that_fails
        }
        #[cfg(feature = "value")]
        mutex_contents {
            value_of_another_type_is_corrupt_and_stays
            field_and_type_of_a_value_that_does_not_fit_are_told_and_its_content_is_not
            value_that_can_not_be_written_is_not_stored
            values_come_back_as_they_were
            large_values_come_back(ways)
            guard_hides_no_method_of_its_value
        }
        #[cfg(feature = "value")]
        condition {
            guard_whose_value_fits_returns_at_once_and_stores_nothing
            stored_value_ends_the_wait_of_another_locker
            removal_ends_the_wait_of_a_thread_that_is_handed_an_older_lease
            timed_wait_ends_with_the_lock_held
            condition_that_panics_releases_and_changes_nothing
        }
        #[cfg(feature = "value")]
        coordination {
            work_is_done_with_the_lock_held
            value_is_set_once
            initialiser_that_fails_leaves_it_to_the_next
            latch_opens_when_it_was_counted_down
            threads_meet_again_and_again_and_one_leads
            forgotten_meeting_begins_anew
            one_leads_and_says_so
            change_of_leader_is_observed
        }
        several {
            names_given_twice_are_one(quorum)
            wrong_numbers_and_names_are_rejected(quorum)
            abandoned_set_is_told_to_the_next_holder_of_each(quorum)
        }
        rwlock {
            abandoned_writer_is_told_to_readers_and_the_next_writer
            no_reader_passes_a_writer_that_waits
            writer_has_it_when_the_lease_of_a_dead_reader_ends
            downgraded_writer_reads_with_others
        }
        #[cfg(feature = "value")]
        rwlock_value {
            readers_read_what_a_writer_stored
            update_and_set_store_as_a_writer_and_clones_are_one
            value_is_that_of_the_mutex
            writer_that_changed_nothing_or_discards_stores_nothing
            downgraded_writer_reads_on_what_it_stored
            each_call_takes_it_when_it_is_free_and_none_when_it_is_not
        }
        semaphore {
            there_are_as_many_permits_as_it_has
            numbers_out_of_range_are_rejected
            largest_semaphore_can_be_taken_whole
            permits_and_other_ways_to_hold_a_name_exclude_each_other
        }
    }
    {
        preferring {
            those_are_let_in_first_who_are_preferred
        }
        #[cfg(feature = "delay")]
        delay {
            task_is_taken_when_it_is_due_and_not_before
            tasks_come_in_the_order_of_their_times
            many_are_inserted_together_and_come_in_their_order
            id_is_known_while_it_is_there_and_after_it_is_done
            old_task_is_kept_reset_or_replaced
            task_that_is_dropped_is_tried_again_by_its_backoff
            task_is_buried_after_its_last_try_and_kicked
            task_of_a_vanished_worker_runs_again_when_its_lease_ends
            values_that_do_not_fit_are_refused_or_buried
            queues_and_locks_of_a_name_are_apart
        }
        #[cfg(feature = "delay")]
        delay_workers {
            worker_that_waits_hears_of_an_earlier_task
            as_many_workers_are_called_as_tasks_are_due
            wait_for_a_task_ends_in_time
            wait_for_a_task_is_cancelled
            handler_that_fails_or_panics_is_called_again
            drop_of_workers_waits_for_those_that_work
        }
    }
    {
        preferring {
            nobody_is_preferred_here
        }
        #[cfg(feature = "delay")]
        delay {
            there_are_none_here
        }
    }
}
