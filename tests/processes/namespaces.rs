//! A child that has the process id of its parent: a process in the first place of a PID namespace, and a fork of it in
//! the first place of another.

use rustix::process::geteuid;
use support::helper_in_a_child_of;

use super::places::{Place, in_each_place};
use super::*;

in_each_place! {
    #[cfg(feature = "file")]
    file: fork_with_the_same_process_id_is_another;
    #[cfg(feature = "redis")]
    redis: fork_with_the_same_process_id_is_another;
}

fn fork_with_the_same_process_id_is_another(place: &Place) {
    if !geteuid().is_root() {
        println!("left out: only root can make a namespace");
        return;
    }
    let unshare = ["unshare", "--pid", "--fork", "--kill-child"];
    let mut run = helper_in_a_child_of(&unshare, "forks into a namespace");
    let run = run.env(URL, &place.url).output().unwrap();
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{errors}");
}
