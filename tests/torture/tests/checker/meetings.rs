//! Barriers for two.

use super::*;

#[test]
fn whoever_passes_a_barrier_has_met_another_that_passes() {
    check(
        "one passes",
        "10 1 meet; 50 1 met leader",
        &[
            ("", "C11"),
            ("40 2 meet; 60 2 met follower", ""),
            ("40 2 meet; 60 2 met leader", "C11"),
            ("40 2 meet; 60 2 met none", "C11"),
            // It came later.
            ("51 2 meet; 60 2 met follower", "C11"),
            // It may have passed.
            ("40 2 meet", ""),
            ("40 2 meet; 60 2 met unavailable", ""),
        ],
    );
    check(
        "one leads two",
        "10 1 meet; 50 1 met leader; 11 2 meet; 50 2 met follower; 12 3 meet; 50 3 met follower",
        &[("", "C11"), ("40 4 meet; 60 4 met lost", "")],
    );
}
