//! Every engine keeps the same promises: one suite, run for each.

mod at_least;
mod at_least_shared;
mod break_lock;
mod break_shared;
mod cancel;
#[cfg(feature = "value")]
mod cancelled_values;
mod close;
mod diagnosis;
mod downgrade;
#[macro_use]
mod engines;
mod exclusion;
mod inspect;
mod inspect_shared;
mod lease;
mod list;
#[cfg(feature = "value")]
mod mutex;
#[cfg(feature = "value")]
mod mutex_contents;
mod names;
mod offers;
#[cfg(feature = "value")]
mod operated_values;
mod options;
mod passing;
mod passing_shared;
mod place;
mod preferring;
mod release;
mod rwlock;
#[cfg(feature = "value")]
mod rwlock_value;
mod semaphore;
mod several;
mod texts;
mod tokens;
#[cfg(feature = "value")]
mod value_methods;
mod waiters;
mod waiting;

use std::time::Duration;

pub(crate) use place::Place;

/// Far more than anything here takes, even on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

// What every engine can do, what those can on which many may hold a name, and what those can of them that let readers
// or writers be preferred. A function of the suite that is missing here is dead code, which the compiler tells.
for_every_engine! {
    {
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
            panic_releases_and_is_told_to_the_next_holder_once
            panic_is_told_to_the_thread_that_waits
            lock_that_is_taken_while_unwinding_is_released_in_order
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
        diagnosis {
            each_finding_has_a_check_of_its_own_and_words
            looking_at_the_place_leaves_its_locks_alone
        }
        at_least {
            lock_released_early_stays_taken_until_its_time
            each_call_finds_it_taken
            drop_leaves_it_taken_also_without_a_locker
            last_call_counts
            longer_hold_changes_nothing
            time_begins_with_each_guard_anew
            panic_frees_it_at_once
            waiters_get_it_when_its_time_is_over
            waiter_that_gives_up_leaves_it_taken
            lost_guard_keeps_nothing
            several_stay_taken_together
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
            shortest_ttl_is_that_of_the_engine
            bounds_themselves_are_accepted
        }
        texts {
            debug_output_hides_owner_and_password
            errors_hide_owner_and_password
            errors_name_the_lock
        }
        inspect {
            free_lock_is_seen_as_free
            holder_is_seen
            label_is_seen
            owners_secret_is_not_seen
            look_takes_nothing
            tokens_go_on_from_the_last_that_is_seen
            lease_that_ran_out_is_not_seen
            kept_lock_is_seen_as_kept
            each_of_several_names_is_seen
            names_and_namespaces_are_told_apart
        }
        list {
            names_in_use_are_listed
            prefix_has_no_special_characters
            namespaces_are_listed_apart
            each_of_many_names_is_listed_once
            kept_lock_is_listed
            several_names_of_one_guard_are_listed
        }
        break_lock {
            broken_lock_is_the_next_holders
            next_renewal_tells_the_holder
            unlock_tells_the_holder
            token_of_a_broken_lock_is_counted_up
            break_of_a_free_lock_takes_it_from_nobody
            break_leaves_other_locks_alone
            break_ends_the_time_that_a_lock_is_kept
            break_lets_in_who_waits
            broken_thread_leaves_the_lock_to_another_of_its_locker
            holders_that_break_each_other_exclude_each_other
            broken_name_of_several_ends_their_guard
        }
        cancel {
            call_that_waits_ends
            timed_call_ends_with_the_error
            call_for_several_names_ends
            thread_behind_another_ends
            later_call_ends_at_once
            wrong_arguments_are_told_first
            pauses_between_attempts_end
        }
        close {
            locks_are_free_and_their_guards_know
            waits_end_in_all_namespaces
            closed_locker_takes_nothing
            waiters_of_others_are_served
            lock_that_is_kept_stays_taken
            nothing_stays_taken_whatever_meets_the_close
        }
        passing {
            lease_goes_on_with_a_token_above
            ticket_is_used_once
            ticket_is_used_once_by_many_threads
            adopted_lease_is_renewed
            threads_that_wait_are_not_disturbed
            several_names_are_passed_on_together
            lost_guard_gives_no_ticket
            lease_that_was_broken_is_not_adopted
            ticket_of_another_namespace_is_refused_and_still_good
            closed_locker_adopts_nothing_and_leaves_the_ticket
        }
        #[cfg(feature = "value")]
        operated_values {
            value_that_nobody_locks_is_not_listed
            broken_guard_stores_nothing
            update_tells_a_holder_that_its_lock_was_broken
        }
        #[cfg(feature = "value")]
        value_methods {
            mutex_guard_hides_none
        }
        #[cfg(feature = "value")]
        cancelled_values {
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
            mutex_is_held_until_a_given_moment
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
            names_of_values_are_checked
        }
        several {
            all_are_taken_or_none
            one_guard_tells_of_all
            tokens_increase_over_all_names
            names_given_twice_are_one
            wrong_numbers_and_names_are_rejected
            names_are_texts_of_any_type
            each_call_waits_in_its_way
            single_locks_wait_for_all
            overlapping_sets_in_any_order_make_progress_and_exclude
            all_are_renewed_for_several_ttls
            several_are_held_until_a_given_moment
            abandoned_set_is_told_to_the_next_holder_of_each
            several_are_tried_a_given_number_of_times
            several_can_not_be_downgraded_and_are_released
            panic_releases_all_and_is_told_of_each
        }
    }
    {
        passing_shared {
            readers_and_permits_are_passed_on
            ticket_that_nobody_uses_lasts_for_its_ttl
        }
        inspect_shared {
            readers_are_seen
            permits_are_seen
            waiters_are_seen_in_their_order
            what_waiters_want_is_seen
            waiter_that_gave_up_is_not_seen
        }
        break_shared {
            names_that_many_hold_are_listed
            break_keeps_the_order_of_those_who_wait
            downgrade_tells_the_holder
            broken_readers_let_in_a_writer
            broken_permits_come_back
            downgrade_tells_a_holder_that_its_lock_was_broken
            break_frees_what_a_waiter_for_several_names_has
        }
        at_least_shared {
            reader_keeps_out_writers_and_no_readers
            writer_gets_in_when_the_readers_time_is_over
            downgraded_guard_keeps_its_time
            permits_limit_a_rate
            permits_stay_out
        }
        rwlock {
            readers_are_inside_together_and_a_writer_alone
            lock_keeps_out_readers_and_writers
            threads_read_together_and_write_alone
            each_call_takes_it_when_it_is_free_and_none_when_it_is_not
            waiting_calls_are_served_by_a_release
            writer_that_gives_up_lets_readers_in
            guard_of_a_reader_tells_what_others_do
            panic_of_a_reader_releases_and_is_nobodys_concern
            reader_that_is_not_renewed_is_lost
            dead_reader_does_not_live_on_through_others
            short_lease_shortens_no_other
            reader_is_held_until_a_given_moment
            reader_and_writer_try_a_given_number_of_times
            abandoned_writer_is_told_to_readers_and_the_next_writer
            nobody_starves_where_nobody_is_preferred
            names_to_read_and_write_are_checked
        }
        downgrade {
            downgraded_writer_reads_with_others
            downgraded_lease_is_renewed
            downgrade_lets_in_those_that_wait_to_read
            downgrade_lets_in_no_writer
            lost_writer_can_not_downgrade
            reader_can_not_downgrade_and_is_released
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
            value_of_another_type_is_corrupt_and_stays
            guards_tell_what_that_of_a_lock_does
            guards_hide_no_method_of_their_value
        }
        semaphore {
            there_are_as_many_permits_as_it_has
            many_are_taken_and_given_back_together
            threads_never_have_more_than_there_are
            waiting_calls_are_served_when_permits_come_back
            timed_calls_end_in_time
            large_request_is_not_passed_by_small_ones
            large_request_that_gives_up_lets_small_ones_in
            numbers_out_of_range_are_rejected
            largest_semaphore_can_be_taken_whole
            guard_of_a_permit_tells_what_others_do
            permit_is_held_until_a_given_moment
            forgotten_permit_comes_back_although_others_are_held
            permit_is_tried_a_given_number_of_times
            permits_and_other_ways_to_hold_a_name_exclude_each_other
            permit_can_not_be_downgraded_and_is_given_back
            panic_gives_permits_back
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
}

#[cfg(feature = "zookeeper")]
#[test]
fn nobody_is_preferred_in_zookeeper() {
    let place = Place::zookeeper();
    preferring::nobody_is_preferred_here(&place);
    preferring::kept_lock_goes_to_the_first_here(&place);
}
