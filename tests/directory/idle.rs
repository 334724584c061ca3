//! Files of idle names are removed while others come to use these names.

use super::*;
use support::Child;

const PLACE: &str = "TEST_PLACE";
const USERS: usize = 2;
const OPENERS: usize = 1;

#[test]
fn removal_of_idle_files_gives_nobody_a_lock_or_a_token_twice() {
    let (directory, elsewhere) = (temp_dir(), temp_dir());
    let (url, place) = (url(directory.path()), elsewhere.path().to_str().unwrap());
    let start = |entry| Child::spawn(entry, &[(URL, &url), (PLACE, place)]);
    let openers: Vec<_> = (0..OPENERS)
        .map(|_| start("opens again and again"))
        .collect();
    let mut users: Vec<_> = (0..USERS).map(|_| start("uses idle names")).collect();
    for user in &mut users {
        user.wait_for("done", 4 * PATIENCE);
    }
    drop(openers);
}
