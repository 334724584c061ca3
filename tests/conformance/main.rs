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
mod offers;
#[cfg(feature = "value")]
mod operated_values;
mod passing;
mod place;
mod preferring;
mod release;
mod rwlock;
#[cfg(feature = "value")]
mod rwlock_value;
mod semaphore;
mod several;
mod texts;
mod waiting;

use std::time::Duration;

pub(crate) use place::Place;

/// Far more than anything here takes, even on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

// What every engine can do, and what those can that let readers or writers be preferred. A function of the suite that
// is missing here is dead code, which the compiler tells.
for_every_engine! {
    {
        exclusion {
            threads_lose_no_increment_and_their_tokens_increase
            lockers_opened_separately_exclude_each_other
            names_do_not_block_each_other
            namespaces_are_apart
            empty_namespace_is_one_like_any_other
            cycles_in_a_tight_loop_always_find_the_lock_free
        }
        kinds {
            guard_tells_of_its_lock_until_it_is_released
            each_call_is_served_when_its_lock_is_free
            each_call_ends_in_time
            each_call_tries_a_given_number_of_times
            lease_that_is_not_renewed_is_lost
            lock_is_the_next_ones_when_its_lease_is_over
            renewal_keeps_each_for_several_ttls
            panic_releases_each_and_is_told_of_those_that_are_exclusive
            what_can_not_be_downgraded_is_released
            each_is_passed_on_once_with_a_token_above
            each_call_that_waits_is_cancelled
        }
        waiting {
            every_waiting_thread_is_served
            timed_wait_ends_after_its_timeout
            call_without_time_tries_once
            longest_timeout_waits_for_the_release
        }
        release {
            panic_releases_and_is_told_to_the_next_holder_once
            panic_is_told_to_the_thread_that_waits
            lock_that_is_taken_while_unwinding_is_released_in_order
            another_thread_can_release
            guard_outlives_its_thread_and_its_locker
            clone_outlives_the_original
            abandoned_waiting_call_leaves_nothing
        }
        lease {
            late_drop_takes_nothing_from_the_next_holder
            every_clone_of_the_channel_learns_of_the_loss
            max_hold_ends_renewal
            forgotten_guard_ends_with_its_ttl_and_is_told_to_the_next_holder_once
            tokens_are_odd_and_increase_from_holder_to_holder
            tokens_increase_in_each_namespace
        }
        offers {
            threads_that_take_a_lease_exclude_each_other
            thread_that_waits_beside_those_that_loop_has_its_turn
            calls_that_give_up_beside_threads_that_loop_leave_nothing
            another_locker_has_its_turn_beside_threads_that_loop
        }
        at_least {
            whatever_is_released_early_stays_taken_until_its_time
            each_call_finds_it_taken
            last_call_counts
            longer_hold_changes_nothing
            time_begins_with_each_guard_anew
            panic_frees_it_at_once
            waiters_get_it_when_its_time_is_over
            waiter_that_gives_up_leaves_it_taken
            lost_guard_keeps_nothing
            reader_keeps_out_writers_and_no_readers
            downgraded_guard_keeps_its_time
            permits_limit_a_rate
            permits_stay_out
        }
        names {
            odd_names_are_all_different_locks
            names_out_of_bounds_are_rejected_by_every_call
            bad_namespaces_are_rejected
            values_out_of_range_are_rejected_by_name
            shortest_ttl_is_that_of_the_engine
            bounds_themselves_are_accepted
        }
        texts {
            debug_output_hides_owner_and_password
            errors_name_the_lock_and_hide_owner_and_password
            diagnosis_has_words_for_each_check_and_leaves_locks_alone
        }
        inspect {
            free_lock_is_seen_as_free
            holder_is_seen
            label_is_seen
            look_takes_nothing
            tokens_go_on_from_the_last_that_is_seen
            lease_that_ran_out_is_not_seen
            kept_lock_is_seen_as_kept_and_listed
            each_of_several_names_is_seen_and_listed
            names_and_namespaces_are_told_apart
            readers_are_seen
            permits_are_seen
            waiters_are_seen_in_their_order
            what_waiters_want_is_seen
            waiter_that_gave_up_is_not_seen
            names_in_use_are_listed
            prefix_has_no_special_characters
            namespaces_are_listed_apart
            each_of_many_names_is_listed_once
        }
        break_lock {
            broken_lock_is_the_next_holders
            next_renewal_tells_the_holder
            end_of_its_hold_tells_the_holder
            token_of_a_broken_lock_is_counted_up
            break_of_a_free_lock_takes_it_from_nobody
            break_leaves_other_locks_alone
            break_ends_the_time_that_a_lock_is_kept
            break_lets_in_who_waits
            broken_thread_leaves_the_lock_to_another_of_its_locker
            holders_that_break_each_other_exclude_each_other
            names_that_many_hold_are_listed
            break_keeps_the_order_of_those_who_wait
            break_frees_what_a_waiter_for_several_names_has
        }
        cancel {
            thread_behind_another_ends
            later_call_ends_at_once
            pauses_between_attempts_end
        }
        close {
            locks_are_free_unless_they_are_kept_and_their_guards_know
            waits_end_in_all_namespaces
            closed_locker_takes_nothing
            waiters_of_others_are_served
            nothing_stays_taken_whatever_meets_the_close
        }
        passing {
            ticket_is_used_once_by_many_threads
            threads_that_wait_are_not_disturbed
            lost_guard_gives_no_ticket
            lease_that_was_broken_is_not_adopted
            ticket_of_another_namespace_is_refused_and_still_good
            closed_locker_adopts_nothing_and_leaves_the_ticket
            ticket_that_nobody_uses_lasts_for_its_ttl
        }
        #[cfg(feature = "value")]
        operated_values {
            value_that_nobody_locks_is_not_listed
            broken_guard_stores_nothing
            update_tells_a_holder_that_its_lock_was_broken
            lock_with_a_value_ends
        }
        #[cfg(feature = "value")]
        mutex {
            value_starts_as_init_and_is_stored_by_unlock_and_by_drop
            value_that_was_not_borrowed_mutably_is_not_stored
            discarded_change_is_not_stored
            panic_discards_the_change_and_is_told
            change_that_is_made_while_unwinding_is_stored
            value_is_read_and_removed_without_locking
            values_of_names_and_namespaces_are_apart
            each_call_takes_it_when_it_is_free_and_none_when_it_is_not
            waiter_reads_what_the_one_before_it_stored
            guard_tells_what_that_of_a_lock_does
            lock_and_mutex_of_a_name_exclude_each_other
            lost_lease_stores_nothing
            lost_lease_stores_nothing_although_nobody_came
            mutex_is_tried_a_given_number_of_times
            renewal_keeps_a_value_for_several_ttls
            threads_lose_no_change
            update_stores_and_gives_what_its_closure_does
            update_of_a_lock_that_is_lost_meanwhile_says_so
            update_that_fails_changes_nothing_and_abandons_nothing
            update_that_panics_changes_nothing_and_is_told
            clones_are_one_lock_and_value
            value_is_stored_at_once_by_a_release_that_leaves_the_lock_taken
        }
        #[cfg(feature = "value")]
        mutex_contents {
            value_of_another_type_is_corrupt_and_stays
            field_and_type_of_a_value_that_does_not_fit_are_told_and_its_content_is_not
            value_of_another_type_is_not_updated
            value_that_can_not_be_written_is_not_stored
            float_that_is_no_number_is_not_stored
            values_come_back_as_they_were
            numbers_come_back_exactly
            large_values_come_back
            value_may_have_the_longest_name
            mutex_guard_hides_none
        }
        #[cfg(feature = "value")]
        condition {
            guard_whose_value_fits_returns_at_once_and_stores_nothing
            stored_value_ends_the_wait_of_another_locker
            value_is_stored_that_is_changed_before_a_wait
            values_go_back_and_forth_and_none_is_missed
            all_that_wait_are_woken
            change_by_a_condition_does_not_wake_its_own_thread
            removed_value_ends_a_wait
            value_that_comes_with_a_hand_off_ends_a_wait
            timed_wait_ends_with_the_lock_held
            wait_is_cancelled
            condition_that_panics_releases_and_changes_nothing
        }
        #[cfg(feature = "value")]
        coordination {
            work_is_done_with_the_lock_held
            value_is_set_once
            one_of_many_initialises
            initialiser_that_fails_leaves_it_to_the_next
            value_that_is_set_ends_waits
            latch_opens_when_it_was_counted_down
            threads_meet_again_and_again_and_one_leads
            thread_that_gives_up_does_not_count
            thread_whose_lease_is_over_does_not_count
            thread_that_is_gone_without_a_word_does_not_count
            one_leads_and_says_so
            change_of_leader_is_observed
            leader_that_is_gone_is_observed
            record_of_a_leader_before_is_not_that_of_the_holder
            observer_ends_with_its_locker
        }
        several {
            all_are_taken_or_none
            tokens_increase_over_all_names
            names_given_twice_are_one
            wrong_numbers_and_names_are_rejected
            names_are_texts_of_any_type
            all_wait_for_whichever_is_held
            single_locks_wait_for_all
            overlapping_sets_in_any_order_make_progress_and_exclude
            abandoned_set_is_told_to_the_next_holder_of_each
        }
        rwlock {
            readers_are_inside_together_and_a_writer_alone
            threads_read_together_and_write_alone
            writer_that_gives_up_lets_readers_in
            who_only_tries_keeps_nobody_out
            dead_reader_does_not_live_on_through_others
            short_lease_shortens_no_other
            abandoned_writer_is_told_to_readers_and_the_next_writer
            nobody_starves_where_nobody_is_preferred
            downgraded_writer_reads_with_others
            downgrade_lets_in_those_that_wait_to_read
            downgrade_lets_in_no_writer
            lost_writer_can_not_downgrade
        }
        #[cfg(feature = "value")]
        rwlock_value {
            readers_read_what_a_writer_stored
            update_and_set_store_as_a_writer_and_clones_are_one
            value_is_that_of_the_mutex
            writer_that_changed_nothing_or_discards_stores_nothing
            downgraded_writer_reads_on_what_it_stored
            lost_writer_stores_nothing
            each_call_takes_it_when_it_is_free_and_none_when_it_is_not
            waiter_reads_what_the_one_before_it_stored
            readers_never_see_a_change_that_is_undone_or_half
            guards_tell_what_that_of_a_lock_does
            guards_hide_no_method_of_their_value
        }
        semaphore {
            there_are_as_many_permits_as_it_has
            many_are_taken_and_given_back_together
            threads_never_have_more_than_there_are
            large_request_is_not_passed_by_small_ones
            large_request_that_gives_up_lets_small_ones_in
            numbers_out_of_range_are_rejected
            largest_semaphore_can_be_taken_whole
            forgotten_permit_comes_back_although_others_are_held
            permits_and_other_ways_to_hold_a_name_exclude_each_other
        }
    }
    {
        preferring {
            writer_starves_where_readers_are_preferred_and_only_there
            reader_starves_where_writers_are_preferred_and_only_there
            kept_lock_goes_to_those_whom_its_writer_would_let_in
        }
    }
}

#[cfg(feature = "delay")]
for_every_engine_with_queues! {
    delay {
        task_is_taken_when_it_is_due_and_not_before
        tasks_come_in_the_order_of_their_times
        many_are_inserted_together_and_come_in_their_order
        time_of_a_wall_clock_counts
        id_is_known_while_it_is_there_and_after_it_is_done
        old_task_is_kept_reset_or_replaced
        only_what_is_not_running_is_reset_and_removed
        task_that_is_dropped_is_tried_again_by_its_backoff
        task_is_tried_again_when_its_worker_says
        task_is_buried_after_its_last_try_and_kicked
        task_of_a_vanished_worker_runs_again_when_its_lease_ends
        vanished_worker_of_the_last_try_buries_its_task
        lease_is_renewed_for_several_ttls
        tokens_increase_from_task_to_task
        values_that_do_not_fit_are_refused_or_buried
        queues_and_locks_of_a_name_are_apart
    }
    delay_workers {
        worker_that_waits_hears_of_an_earlier_task
        worker_that_waits_hears_of_a_task_that_is_due_at_once
        workers_are_served_in_their_order
        as_many_workers_are_called_as_tasks_are_due
        each_of_many_tasks_is_done_once_by_many_workers
        wait_for_a_task_ends_in_time
        wait_for_a_task_is_cancelled
        handler_that_fails_or_panics_is_called_again
        drop_of_workers_waits_for_those_that_work
    }
}

#[cfg(feature = "redis")]
mod unix {
    suite_in_part!(crate::Place::unix());
}

#[cfg(feature = "tls")]
mod tls {
    suite_in_part!(crate::Place::tls());
}

#[cfg(feature = "etcd")]
mod etcd3 {
    suite_in_part!(crate::Place::etcd3());
}

#[cfg(feature = "zookeeper")]
mod zookeeper3 {
    suite_in_part!(crate::Place::zookeeper3());
}

#[cfg(feature = "redis")]
#[test]
fn errors_of_a_server_hide_the_password() {
    texts::errors_of_a_server_hide_the_password();
}

#[cfg(feature = "etcd")]
#[test]
fn nobody_is_preferred_in_etcd() {
    let place = Place::etcd();
    preferring::nobody_is_preferred_here(&place);
    preferring::kept_lock_goes_to_the_first_here(&place);
    #[cfg(feature = "delay")]
    delay::there_are_none_here(&place);
}

#[cfg(feature = "zookeeper")]
#[test]
fn nobody_is_preferred_in_zookeeper() {
    let place = Place::zookeeper();
    preferring::nobody_is_preferred_here(&place);
    preferring::kept_lock_goes_to_the_first_here(&place);
    #[cfg(feature = "delay")]
    delay::there_are_none_here(&place);
}
