//! Processes that take and release a lock, and others that break it all the time.
//!
//! Each tells what it does in one file, to which all append, so that its lines are in the order of what was done:
//! `asks <who>` before it asks, `enters <who> <token>` when it has the lock, and `leaves <who> <token> <how>` before it
//! releases, unless it finds that its lock was broken.

use std::collections::HashMap;
use std::fs;

use support::Child;

use super::*;

const URL: &str = "TEST_URL";
const LOG: &str = "TEST_LOG";
/// Of each, as the helper has it.
const TURNS: u32 = 400;

#[test]
fn tokens_increase_and_unbroken_holders_exclude_each_other() {
    let (directory, _) = place();
    let log = directory.path().join("log");
    fs::write(&log, "").unwrap();
    let url = format!("file://{}", directory.path().display());
    let arg = |pause| {
        [
            (URL, url.as_str()),
            (LOG, log.to_str().unwrap()),
            ("TEST_PAUSE", pause),
        ]
    };
    let mut workers = [(); 3].map(|()| Child::spawn("takes turns", &arg("")));
    let breakers = ["100", "700"].map(|pause| Child::spawn("breaks again and again", &arg(pause)));
    for worker in &mut workers {
        assert!(worker.wait(4 * PATIENCE).success());
    }
    drop(breakers);
    let log = fs::read_to_string(&log).unwrap();
    let [kept, lost] = ["kept", "lost"].map(|how| log.matches(&format!("{how} ")).count());
    println!("{kept} kept their lock, {lost} lost it");
    assert_eq!(kept + lost, 3 * TURNS as usize);
    assert!(kept > 0 && lost > 0, "{kept} {lost}");
    check(&log);
    assert!(open(directory.path()).lock("a").is_ok());
}

fn check(log: &str) {
    let kept = log.lines().filter_map(|line| line.strip_prefix("kept "));
    let kept: Vec<_> = kept.collect();
    // The largest token of those that had entered when somebody asked, by who asked.
    let mut asked = HashMap::new();
    let (mut largest, mut last_kept, mut inside) = (0, 0, None);
    for line in log.lines() {
        let (verb, rest) = line.split_once(' ').unwrap();
        let (who, token) = rest.split_once(' ').unwrap_or((rest, "0"));
        let token: u64 = token.parse().unwrap();
        let was_kept = kept.contains(&rest);
        match verb {
            "asks" => _ = asked.insert(who, largest),
            "enters" => {
                assert!(token > asked[who], "{line}: after {}", asked[who]);
                largest = largest.max(token);
                if was_kept {
                    assert_eq!(inside.replace(rest), None, "{line}");
                    assert!(token > last_kept, "{line}: after {last_kept}");
                    last_kept = token;
                }
            }
            "leaves" if was_kept => assert_eq!(inside.take(), Some(rest), "{line}"),
            _ => {}
        }
    }
}
