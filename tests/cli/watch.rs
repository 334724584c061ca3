//! `watch`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use support::wait_until;

use crate::PATIENCE;
use crate::holders::{end, holder, json, pid, shape, wait_for_waiters};
use crate::tool::{Place, Running, terminal};

#[track_caller]
fn wait_for(watch: &Running, text: &str, count: usize) {
    let shown = support::eventually(PATIENCE, || watch.out().matches(text).count() >= count);
    assert!(shown, "{count} times {text:?}: {}", watch.out());
}

fn events(place: &Place, watch: &Running) -> Vec<u32> {
    wait_for(watch, "holds", 1);
    let next = holder(place, "other", "end-other");
    wait_for(watch, "acquired", 1);
    // For many looks: on a busy machine one may come late.
    let impatient = place.tool("run -w 4s deploy -- true").start();
    wait_for(watch, "waiting", 1);
    let pids = vec![pid(&next), pid(&impatient)];
    impatient.ends(75);
    wait_for(watch, "left", 1);
    end(place, "end-other");
    wait_for(watch, "released", 1);
    next.ends(0);
    pids
}

#[test]
fn events_are_lines_in_a_pipe_of_json_if_that_is_asked_for() {
    let (_server, place) = Place::with_server();
    let first = holder(&place, "--label first deploy", "end");
    let programs = place.tool("--json watch --interval 20ms").start();
    wait_for(&programs, "holds", 1);
    let watch = place.tool("watch --interval 20ms").start();
    let mut pids = vec![pid(&first)];
    pids.extend(events(&place, &watch));
    watch.signal(Signal::INT);
    let done = watch.ends(0);
    let expected = "TIME holds deploy HOST/PID-0 first TOKEN\n\
                    TIME acquired other HOST/PID-1 - TOKEN\n\
                    TIME waiting deploy HOST/PID-2 - -\n\
                    TIME left deploy HOST/PID-2 - -\n\
                    TIME released other HOST/PID-1 - TOKEN";
    assert_eq!((&*shape(&done.out, &pids), &*done.err), (expected, ""));

    wait_for(&programs, "released", 1);
    programs.signal(Signal::TERM);
    let out = programs.ends(143).out;
    let events: Vec<_> = out.lines().map(json).collect();
    let words: Vec<_> = events.iter().map(|event| &event["event"]).collect();
    let expected = ["holds", "acquired", "waiting", "left", "released"];
    assert_eq!(words, expected, "{out}");
    assert_eq!(events[0]["party"]["label"], "first");
    assert_eq!(events[0]["party"]["pid"], pid(&first));
    assert_eq!(events[0]["name"], "deploy");
    assert!(events[0]["token"].as_u64().is_some());
    assert!(events[0]["time"].as_str().unwrap().ends_with('Z'));
    end(&place, "end");
}

#[test]
fn one_lock_is_watched_by_its_name_and_for_as_long_as_asked() {
    let (_server, place) = Place::with_server();
    let _holders = ["deploy", "other"].map(|name| holder(&place, name, "end"));
    let done = place.tool("watch deploy --for 300ms").ends(0);
    assert!(done.out.contains("\tholds\tdeploy\t"), "{}", done.out);
    assert_eq!(done.out.lines().count(), 1, "{}", done.out);
    end(&place, "end");
}

#[test]
fn reader_that_goes_ends_it_without_a_word() {
    let (_server, place) = Place::with_server();
    let holder = holder(&place, "deploy", "end");
    for verb in ["watch", "leader --follow deploy"] {
        let mut tool = place.tool(verb);
        let command = tool.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("start the tool");
        let mut line = String::new();
        let mut reader = BufReader::new(process.stdout.take().expect("it is piped"));
        reader.read_line(&mut line).expect("read a line");
        assert!(line.contains(&format!("/{}\t", pid(&holder))), "{line}");
        // Nothing happens to the lock that there would be to write.
        drop(reader);
        wait_until("the tool to end", PATIENCE, || {
            process.try_wait().expect("wait for the tool").is_some()
        });
        let output = process.wait_with_output().expect("it has ended");
        assert_eq!((output.status.code(), &*output.stderr), (Some(0), &b""[..]));
    }
    end(&place, "end");
}

#[test]
fn outage_is_told_and_survived() {
    let (server, place) = Place::with_server();
    let _before = holder(&place, "before", "end");
    let watch = place.tool("watch --interval 50ms").start();
    wait_for(&watch, "\tholds\tbefore\t", 1);
    server.kill();
    wait_for(&watch, "\tunreachable\t-\t", 1);
    server.restart();
    wait_for(&watch, "\treachable\t-\t", 1);
    watch.signal(Signal::INT);
    assert_eq!(watch.done().out.matches("unreachable").count(), 1);
}

#[test]
fn terminal_shows_who_has_it_and_gets_its_screen_back() {
    let (_server, place) = Place::with_server();
    let first = holder(&place, "--label first deploy", "end");
    let _second = place.tool("run --label second deploy -- true").start();
    wait_for_waiters(&place, "deploy", 1);
    for (signal, status) in [(Signal::INT, 0), (Signal::TERM, 143)] {
        let watch = terminal(&place, "echo $$ > pid; exec $X watch --interval 20ms").start();
        let pid_of_watch = place.wait_for("pid");
        wait_for(&watch, "waiting: ", 3);
        let out = watch.out();
        assert!(out.starts_with("\x1b[?1049h\x1b[?25l"), "{out:?}");
        let holder = format!("/{}  first", pid(&first));
        for part in ["1 taken, 1 waiting, 0.0/s hand-offs", &holder, "\"second\""] {
            assert!(out.contains(part), "{out:?}");
        }
        let watched = pid_of_watch.trim().parse().ok().and_then(Pid::from_raw);
        kill_process(watched.expect("a number"), signal).expect("signal it");
        let done = watch.ends(status);
        assert!(done.out.ends_with("\x1b[?25h\x1b[?1049l"), "{:?}", done.out);
        std::fs::remove_file(place.path("pid")).expect("remove it");
    }
    end(&place, "end");
}
