//! The scenes by their names.

use super::*;

pub const SCENES: [(&str, Roles); 31] = [
    ("free", &[lock_twice]),
    ("contended", &[lock_twice, lock_twice, lock_twice]),
    ("renewed", &[lock_for_long, lock_twice]),
    ("timed", &[lock_for_long, wait_too_short]),
    ("shared", &[read, read, write, read]),
    ("permits", &[permits, permits, permits]),
    ("all", &[lock_both, lock_both, lock_twice]),
    ("value", &[count, count, count]),
    ("passed", &[pass_on, lock_twice]),
    ("closed", &[close_while_held, lock_twice]),
    ("kept", &[keep, keep]),
    ("half", &[lock_for_part_of_a_ttl]),
    ("front", &[lock_front, lock_both, try_behind]),
    ("watched", &[keep]),
    (
        "queue",
        &[lock_for_long, order::wait_first, order::wait_second],
    ),
    ("cancelled", &[late::cancel_early]),
    ("broken", &[late::hold_until_broken, late::break_it]),
    (
        "flushed",
        &[late::hold_what_is_lost, late::lock_what_was_lost],
    ),
    (
        "flushed-all",
        &[late::hold_all_that_is_lost, late::lock_what_was_lost],
    ),
    (
        "flushed-reader",
        &[copies::read_what_is_lost, late::lock_what_was_lost],
    ),
    (
        "flushed-value",
        &[copies::store_what_is_lost, copies::store_what_was_lost],
    ),
    (
        "flushed-panic",
        &[copies::release_what_is_lost, copies::abandon_what_was_lost],
    ),
    (
        "queue-lost",
        &[
            order::hold_other,
            order::lock_both_before,
            order::lock_both_behind,
        ],
    ),
    ("kept-twice", &[copies::keep_permits, copies::take_permits]),
    ("by-one", &[majority::hold_by_one]),
    ("heard-late", &[majority::hold_before, majority::hear_late]),
    (
        "late-release",
        &[majority::try_behind_release, majority::release_late],
    ),
    ("cut-off", &[majority::release_cut_off]),
    ("tasks", &[tasks::insert, tasks::work]),
    ("shards", &[tasks::try_each]),
    (
        "line",
        &[tasks::wait_deaf, tasks::wait_behind, tasks::insert_later],
    ),
];
