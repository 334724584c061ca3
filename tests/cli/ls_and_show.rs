//! `ls` and `show`.

use crate::holders::{end, holder, json, pid, shape, wait_for_waiters};
use crate::tool::{Place, Running, on_terminal};

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
fn locks_are_listed_with_tabs_in_a_pipe_in_columns_on_a_terminal_and_as_json() {
    let (_server, place) = Place::with_server();
    let (_busy, pids) = busy(&place);
    let [ls, show] = ["ls", "show deploy"].map(|args| place.tool(args).ends(0).out);
    let expected = "config shared 1 HOST/PID-3 - TIME TIME TOKEN 0\n\
                    deploy exclusive HOST/PID-0 d-4711 TIME TIME TOKEN 2\n\
                    workers permits 1/3 HOST/PID-4 - TIME TIME TOKEN 0";
    assert_eq!(shape(&ls, &pids), expected);
    assert_eq!(ls.matches('\t').count(), 3 * 7, "{ls}");
    let expected = "lock deploy exclusive - TOKEN\n\
                    holder HOST/PID-0 PID-0 d-4711 TIME TIME TOKEN 1\n\
                    waiter HOST/PID-1 PID-1 first - exclusive\n\
                    waiter HOST/PID-2 PID-2 second - exclusive";
    assert_eq!(shape(&show, &pids), expected);

    let [ls, show] = ["$X ls", "$X show deploy"].map(|script| on_terminal(&place, script, "").out);
    let [ls, show] = [ls, show].map(|screen| shape(&screen, &pids));
    let head = "\x1b[1mNAME KIND HOLDER LABEL HELD TTL TOKEN WAITERS\x1b[0m\nconfig shared 1 HOST/PID-3 - ";
    assert!(ls.starts_with(head), "{ls}");
    assert!(ls.contains("\ndeploy exclusive HOST/PID-0 d-4711 "), "{ls}");
    assert!(ls.contains(" TOKEN 2\n"), "{ls}");
    let head = "\x1b[1mdeploy\x1b[0m: exclusive, last token TOKEN\n\n\
                \x1b[1mHOLDER THREAD LABEL HELD TTL TOKEN PERMITS\x1b[0m\nHOST/PID-0 PID-0 d-4711 ";
    assert!(show.starts_with(head), "{show}");
    let end_of_it = "\n\n\x1b[1mWAITER THREAD LABEL WAITED WANTS\x1b[0m\n\
                     HOST/PID-1 PID-1 first - exclusive\nHOST/PID-2 PID-2 second - exclusive";
    assert!(show.ends_with(end_of_it), "{show}");
    let plain = on_terminal(&place, "NO_COLOR=1 $X ls", "").out;
    assert!(!plain.contains('\x1b'), "{plain:?}");

    let locks = place.tool("--json ls").done().out;
    let locks: Vec<_> = locks.lines().map(json).collect();
    let names: Vec<_> = locks.iter().map(|lock| &lock["name"]).collect();
    assert_eq!(names, ["config", "deploy", "workers"]);
    assert_eq!(locks[0]["state"], "shared");
    let permits = (&locks[2]["permits_taken"], &locks[2]["permits"]);
    assert_eq!(permits, (&1.into(), &3.into()));
    let deploy = &locks[1];
    let holder = &deploy["holders"][0];
    assert_eq!(holder["party"]["label"], "d-4711");
    assert_eq!(holder["party"]["pid"], pids[0]);
    assert!(holder["token"].as_u64().unwrap() > 0);
    let labels = [0, 1].map(|index| &deploy["waiters"][index]["party"]["label"]);
    assert_eq!(labels, ["first", "second"]);
    let shown = json(&place.tool("--json show deploy").done().out);
    assert_eq!(shown["name"], "deploy");
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
    let free = place.tool("show none").ends(0);
    assert_eq!(free.out, "lock\tnone\tfree\t-\t-\n");
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
