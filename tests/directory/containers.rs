//! Containers that share a directory with their host, and have a boot id of their own, or another time since boot.

use crosslock::LeaseTicket;
use rustix::time::{ClockId, clock_gettime};

use super::puppet::Puppet;
use super::*;

const DAY: i64 = 86_400;
/// Far longer than any test runs, so that nothing ends by itself.
const LONG: Duration = Duration::from_secs(3600);

/// What a container's clocks and files say.
#[derive(Debug)]
struct Container {
    has_own_boot_id: bool,
    ahead: i64,
}

const CONTAINERS: [Container; 4] = [
    Container::of(true, 0),
    Container::of(false, DAY),
    Container::of(true, DAY),
    Container::of(true, -60),
];

impl Container {
    const fn of(has_own_boot_id: bool, ahead: i64) -> Self {
        Container {
            has_own_boot_id,
            ahead,
        }
    }

    fn start(&self, directory: &Path) -> Puppet {
        let boot_id = directory.join("boot_id");
        fs::write(&boot_id, "00000000-0000-4000-8000-000000000000\n").unwrap();
        let mount = format!(
            "mount --bind {} /proc/sys/kernel/random/boot_id && ",
            boot_id.display()
        );
        let mount = if self.has_own_boot_id { &mount } else { "" };
        let (offset, script) = (
            format!("--boottime={}", self.ahead),
            format!("{mount}exec \"$@\""),
        );
        let mut program = vec!["unshare", "-m", "-T", &offset, "sh", "-c", &script, "sh"];
        if self.ahead == 0 {
            program.drain(2..4);
        }
        let mut started = Puppet::start_under(&program, &url(directory));
        let up: i64 = started.ask("up").parse().unwrap();
        let ahead = up - clock_gettime(ClockId::Boottime).tv_sec;
        assert!(
            (ahead - self.ahead).abs() < 30,
            "it isn't so far ahead: {ahead}"
        );
        started
    }
}

/// What a host's process and a container's do with the same locks.
fn shared(check: impl Fn(&Path, &Locker, &mut Puppet)) {
    if !may("make a container") {
        return;
    }
    for container in CONTAINERS {
        println!("{container:?}");
        let directory = temp_dir();
        let lock = Locker::builder(&url(directory.path())).ttl(LONG).build();
        let mut puppet = container.start(directory.path());
        check(directory.path(), &lock.unwrap(), &mut puppet);
    }
}

#[test]
fn lock_that_stays_taken_does_so_for_containers_and_for_their_host() {
    shared(|_, lock, container| {
        let guard = lock.lock("a").unwrap();
        guard.at_least_for(LONG);
        guard.unlock().unwrap();
        assert_eq!(container.ask("try a"), "taken");
        assert_eq!(container.ask("keep b"), "ok");
        assert!(lock.try_lock("b").unwrap().is_none());
        // Whoever wrote it last.
        assert_eq!(container.ask("try b"), "taken");
        assert!(lock.try_lock("a").unwrap().is_none());
        assert_eq!(container.ask("keep-a-second c"), "ok");
        assert!(lock.try_lock_for("c", PATIENCE).unwrap().is_some());
    });
}

#[test]
fn tickets_pass_between_containers_and_their_host() {
    shared(|_, lock, container| {
        let secret = lock
            .lock("a")
            .unwrap()
            .into_ticket()
            .expect("a ticket")
            .to_secret();
        assert_eq!(container.ask("try a"), "taken");
        let adopted = container.ask(&format!("adopt {secret}"));
        assert!(adopted.starts_with("token"), "{adopted}");
        assert!(lock.try_lock("a").unwrap().is_none());
        assert_eq!(container.ask("unlock"), "ok");
        assert!(container.ask("lock b").starts_with("token"));
        // A living owner's part is that of this boot, whatever the ids say.
        let seen = lock.inspect("b").unwrap();
        let held = seen.holders[0].held_for.expect("it is known here");
        assert!(held < PATIENCE, "{held:?}");
        let ticket: LeaseTicket = container.ask("give b").parse().unwrap();
        assert!(lock.try_lock("b").unwrap().is_none());
        let guard = lock.adopt(&ticket).unwrap();
        assert_eq!(container.ask("try b"), "taken");
        guard.unlock().unwrap();
    });
}
