//! `tasks`.

use std::time::Duration;

use crosslock::{DelayQueue, Locker, Task};
use serde_json::json;

use crate::holders::json as parsed;
use crate::tool::{Place, on_terminal};

type Value = serde_json::Value;

/// A queue with a task in each state but ready: `run`, `later` and `gone`.
fn queue(place: &Place) -> (DelayQueue<Value>, Task<Value>) {
    let locker = Locker::open(place.url()).expect("a server");
    let queue: DelayQueue<Value> = locker.delay_queue("mail").expect("a server");
    queue
        .entry("gone")
        .insert(&json!({"to": "ada"}))
        .expect("a server");
    Task::bury(queue.take().expect("a server"), "no such\nhost").expect("a server");
    queue.entry("run").insert(&json!(1)).expect("a server");
    let running = queue.take().expect("a server");
    let later = queue.entry("later").after(Duration::from_secs(3_600));
    later.insert(&json!(2)).expect("a server");
    (queue, running)
}

#[test]
fn tasks_are_listed_and_shown() {
    let (_server, place) = Place::with_server();
    let (_queue, _running) = queue(&place);
    let done = place.tool("tasks ls mail").ends(0);
    let rows = done.out.lines().map(|row| row.split('\t').collect());
    let rows: Vec<Vec<_>> = rows.collect();
    let shown: Vec<_> = rows.iter().map(|row| [row[0], row[1], row[4]]).collect();
    let expected = [
        ["run", "running", "1"],
        ["later", "delayed", "0"],
        ["gone", "buried", "1"],
    ];
    assert_eq!(shown, expected);
    assert_eq!(rows[2][5], r"no such\nhost");
    let buried = place.tool("--json tasks ls mail --state buried").ends(0);
    let task = parsed(&buried.out);
    let seen = (&task["id"], &task["value"]["to"]);
    assert_eq!(seen, (&json!("gone"), &json!("ada")));
    let due = task["due"]
        .as_str()
        .expect("a point in time, not a duration");
    assert!(due.starts_with('2') && due.ends_with('Z'), "{due}");
    let shown = place.tool("tasks show mail later").ends(0).out;
    assert!(shown.starts_with("later: delayed, due 2"), "{shown}");
    place.tool("tasks show mail later nothing").ends(1);
    let head = on_terminal(&place, "$X tasks ls mail", "").out;
    let counts = "mail: 1 running, 0 ready, 1 delayed, 1 buried";
    assert!(head.contains(counts), "{head}");
    assert!(place.tool("tasks ls other").ends(0).out.is_empty());
}

#[test]
fn buried_tasks_are_kicked_and_others_removed() {
    let place = Place::with_files();
    let (queue, running) = queue(&place);
    let kicked = place.tool("tasks kick mail gone").ends(0).out;
    assert_eq!(kicked, "kicked gone\n");
    place.tool("tasks kick mail gone").ends(1);
    let refused = place.tool("tasks rm mail later run").ends(1).out;
    assert_eq!(refused, "removed later\nnot removed: run\n");
    let counts = queue.counts().unwrap();
    assert_eq!((counts.ready, counts.running, counts.delayed), (1, 1, 0));
    Task::done(running).unwrap();
    place.tool("tasks ls").ends(64);
}
