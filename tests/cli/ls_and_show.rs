//! `ls` and `show`.

use support::RedisServer;

use crate::golden::assert_golden;
use crate::holders::{end, holder, json, pid, wait_for_waiters};
use crate::tool::{Place, Running, on_terminal};

/// One lock with a label and two that wait, one of readers, and one of which a permit is out.
fn busy(place: &Place) -> (Vec<Running>, Vec<u32>) {
    let waiting = |label: &str| {
        let args = ["run", "--label", label, "deploy", "--", "true"];
        place.tool_with(&args).start()
    };
    let mut all = vec![holder(place, "--label d-4711 deploy", "end")];
    all.push(waiting("first"));
    wait_for_waiters(place, "deploy", 1);
    all.push(waiting("second"));
    wait_for_waiters(place, "deploy", 2);
    all.push(holder(place, "--shared config", "end"));
    all.push(holder(place, "-p 1/3 workers", "end"));
    let pids = all.iter().map(pid).collect();
    (all, pids)
}

#[test]
fn locks_are_listed_with_tabs_in_a_pipe_and_in_columns_on_a_terminal() {
    let (_server, place) = Place::with_server();
    let (_busy, pids) = busy(&place);
    let done = place.tool("ls").ends(0);
    assert_golden("ls.pipe", &done.out, &pids);
    assert_golden("show.pipe", &place.tool("show deploy").done().out, &pids);
    assert_golden("ls.terminal", &on_terminal(&place, "$X ls", "").out, &pids);
    let shown = on_terminal(&place, "$X show deploy", "");
    assert_golden("show.terminal", &shown.out, &pids);
    let plain = on_terminal(&place, "NO_COLOR=1 $X ls", "").out;
    assert!(!plain.contains('\x1b'), "{plain:?}");
    end(&place, "end");
}

#[test]
fn json_has_a_line_for_each_lock() {
    let (_server, place) = Place::with_server();
    let (_busy, pids) = busy(&place);
    let done = place.tool("--json ls").done();
    let locks: Vec<_> = done.out.lines().map(json).collect();
    let names: Vec<_> = locks
        .iter()
        .map(|lock| lock["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["config", "deploy", "workers"]);
    assert_eq!(locks[0]["state"], "shared");
    assert_eq!(
        (&locks[2]["permits_taken"], &locks[2]["permits"]),
        (&1.into(), &3.into())
    );
    let deploy = &locks[1];
    assert_eq!(deploy["holders"][0]["party"]["label"], "d-4711");
    assert_eq!(deploy["holders"][0]["party"]["pid"], pids[0]);
    assert!(deploy["holders"][0]["token"].as_u64().unwrap() > 0);
    let waiters: Vec<_> = deploy["waiters"].as_array().unwrap().iter().collect();
    let labels: Vec<_> = waiters
        .iter()
        .map(|waiter| &waiter["party"]["label"])
        .collect();
    assert_eq!(labels, ["first", "second"]);
    assert_eq!(
        json(&place.tool("--json show deploy").done().out)["name"],
        "deploy"
    );
    end(&place, "end");
}

#[test]
fn prefix_chooses_and_nothing_is_nothing() {
    let (_server, place) = Place::with_server();
    let _holders = ["app-1", "app-2", "other"].map(|name| holder(&place, name, "end"));
    let names = |args: &str| {
        let out = place.tool(args).done().out;
        let names = out.lines().filter_map(|line| line.split('\t').next());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(names("ls app-"), ["app-1", "app-2"]);
    assert_eq!(names("ls"), ["app-1", "app-2", "other"]);
    assert!(names("ls none").is_empty());
    assert!(names("--namespace elsewhere ls").is_empty());
    let free = place.tool("show none").done();
    assert_eq!((free.code(), &*free.out), (0, "lock\tnone\tfree\t-\t-\n"));
    end(&place, "end");
}

#[test]
fn control_characters_do_not_reach_a_terminal_or_break_a_line() {
    let (_server, place) = Place::with_server();
    let name = "a\x1b[2J\tb\n\u{202e}c";
    let args = ["run", name, "--", "sh", "-c", "echo > began; sleep 60"];
    let _holder = place.tool_with(&args).start();
    place.wait_for("began");
    const SHOWN: &str = r"a\u{1b}[2J\tb\n\u{202e}c";
    let out = place.tool("ls").done().out;
    assert!(out.starts_with(&format!("{SHOWN}\texclusive\t")), "{out:?}");
    assert_eq!(out.lines().count(), 1);
    let screen = on_terminal(&place, "$X ls; $X watch --for 100ms", "").out;
    assert!(screen.contains(SHOWN), "{screen:?}");
    assert!(
        !screen.contains("\x1b[2J") && !screen.contains('\u{202e}'),
        "{screen:?}"
    );
    assert_eq!(json(&place.tool("--json ls").done().out)["name"], name);
}

/// Anything may stand in the key that a foreign program has written.
#[test]
fn holder_steers_no_terminal_by_what_run_says() {
    let (server, place) = Place::with_server();
    let owner = "52ba0d04-7209-4675-a9af-9beb645dd8c5/h\x1b[2J/1/2/\u{202e}label";
    let _: String = server.query(&["SET", "{crosslock:a}", owner]);
    let done = place.tool("run a -n -- true").done();
    assert!(done.err.contains(r"h\u{1b}[2J/1"), "{:?}", done.err);
    let screen = on_terminal(&place, "$X run a -w 2s -- true", "").out;
    assert!(screen.contains("waiting for a: held by h"), "{screen:?}");
    for text in [&done.err, &screen] {
        assert!(
            !text.contains("\x1b[2J") && !text.contains('\u{202e}'),
            "{text:?}"
        );
    }
}

#[test]
fn server_that_is_gone_or_refuses_has_its_status() {
    let server = RedisServer::builder()
        .acl(&["user few on >pw ~* +ping"])
        .start();
    let place = Place::with_locks_at(&server.url_as("few:pw"));
    for verb in ["ls", "show a", "break --yes a"] {
        let done = place.tool(verb).ends(77);
        assert!(!done.err.contains("pw"), "{}", done.err);
    }
    drop(server);
    for verb in ["ls", "show a", "break --yes a", "watch", "doctor", "bench"] {
        let done = place.tool(verb).ends(69);
        assert!(done.err.starts_with("crosslock: "), "{}", done.err);
    }
}
