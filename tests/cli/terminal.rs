//! Job control, on a terminal that script(1) makes.

use std::fs;
use std::io::Write;
use std::process::{Child, Stdio};
use std::time::Duration;

use support::{RedisServer, Stopwatch, wait_until};

use crate::PATIENCE;
use crate::holders::{end, holder, pid};
use crate::tool::{Place, heeding_signals, is_running, parent_of, program, stat, wait_until_state};

/// A terminal with a shell, which has job control as that of a person.
struct Terminal<'a> {
    place: &'a Place,
    script: Child,
}

impl<'a> Terminal<'a> {
    fn open(place: &'a Place) -> Self {
        let screen = fs::File::create(place.path("screen")).expect("make a file");
        let shell = "bash --norc --noprofile --noediting -i";
        let script = heeding_signals("script")
            .args(["-q", "-f", "-c", shell, "/dev/null"])
            .current_dir(place.dir())
            .env("CROSSLOCK_URL", place.url())
            .env("X", program())
            .stdin(Stdio::piped())
            .stdout(screen.try_clone().expect("copy a descriptor"))
            .stderr(screen)
            .spawn()
            .expect("start script(1)");
        let mut terminal = Terminal { place, script };
        // No echo of what is typed, so that the screen has only what programs say.
        terminal.types("stty -echo; PS1=\n");
        terminal.types("echo $((1 + 1))done\n");
        terminal.shows("2done");
        terminal
    }

    fn types(&mut self, text: &str) {
        let stdin = self.script.stdin.as_mut().expect("it is piped");
        let typed = stdin.write_all(text.as_bytes());
        typed.expect("the terminal reads");
    }

    fn screen(&self) -> String {
        let screen = fs::read(self.place.path("screen")).unwrap_or_default();
        String::from_utf8_lossy(&screen).into_owned()
    }

    #[track_caller]
    fn shows(&self, text: &str) {
        let shown = support::eventually(PATIENCE, || self.screen().contains(text));
        assert!(shown, "{text:?} isn't shown: {}", self.screen());
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        // The shell ends with its terminal.
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}

#[test]
fn command_reads_from_the_terminal_but_not_before_another_of_its_pipeline() {
    const READS: &str = "sh -c 'echo > runs; read x; echo got $x'";
    const WAITS: &str = "sh -c 'echo > runs; while ! test -e read; do sleep 0.02; done'";
    const READS_BEHIND: &str = "sh -c 'read x < /dev/tty; echo got $x; echo > read; cat'";
    for (command, behind) in [
        (READS, ""),
        // The terminal is another program's, so the command gets it only when it asks.
        (READS, "| cat"),
        (WAITS, &*format!("| {READS_BEHIND}")),
    ] {
        let place = Place::with_files();
        let mut terminal = Terminal::open(&place);
        terminal.types(&format!("$X run a -- {command} {behind}; echo status $?\n"));
        place.wait_for("runs");
        terminal.types("typed\n");
        terminal.shows("got typed");
        terminal.shows("status 0");
    }
}

#[test]
fn ctrl_c_ends_the_command_and_the_script_around_it() {
    let place = Place::with_files();
    let mut terminal = Terminal::open(&place);
    let run = "$X run a -- sh -c 'echo $$ > pid; exec sleep 60'";
    fs::write(place.path("script"), format!("{run}\necho went on\n")).expect("write a script");
    for line in [run, "sh script"] {
        terminal.types(&format!("{line}; echo status $?\n"));
        let command = place.wait_for("pid");
        terminal.types("\x03");
        wait_until("the command to be dead", PATIENCE, || !is_running(&command));
        fs::remove_file(place.path("pid")).expect("remove it");
    }
    terminal.types("echo $((2 + 2))later\n");
    terminal.shows("4later");
    let screen = terminal.screen();
    assert!(screen.contains("status 130"), "{screen}");
    assert!(!screen.contains("went on"), "{screen}");
}

#[test]
fn ctrl_z_stops_the_command_and_fg_continues_it() {
    let server = RedisServer::start();
    for place in [Place::with_files(), Place::with_locks_at(&server.url())] {
        let mut terminal = Terminal::open(&place);
        terminal.types("$X run a -- sh -c 'echo $$ > pid; read x; echo got $x'; echo status $?\n");
        let command = place.wait_for("pid");
        wait_until_state(&command, "S");
        terminal.types("\x1a");
        terminal.shows("Stopped");
        wait_until_state(&command, "T");
        // The shell has the terminal.
        terminal.types("echo $((3 + 3))shell\n");
        terminal.shows("6shell");
        terminal.types("fg\n");
        wait_until_state(&command, "S");
        terminal.types("typed\n");
        terminal.shows("got typed");
        place.tool("run a -w 30s -- true").ends(0);
    }
}

#[test]
fn command_that_was_stopped_for_longer_than_its_lease_doesnt_go_on() {
    let (_server, place) = Place::with_server();
    let mut terminal = Terminal::open(&place);
    // The watchdog, which kills the command, has the last 400 ms of the lease for a machine that is late.
    let run = "$X run a --ttl 8s --kill-after 200ms";
    terminal.types(&format!(
        "{run} -- sh -c 'echo $$ > pid; read x; echo > went'\n"
    ));
    let command = place.wait_for("pid");
    wait_until_state(&command, "S");
    terminal.types("\x1a");
    terminal.shows("Stopped");
    let watch = Stopwatch::start();
    place.run("a", "exit 5").ends(5);
    if is_running(&command) {
        let found = format!("the command still runs: {:?}", stat(&command));
        watch.assert_late(Duration::from_millis(400), Duration::from_secs(8), found);
        wait_until("the command to be dead", PATIENCE, || !is_running(&command));
    }
    terminal.types("fg; echo then $?\n");
    terminal.shows("then 76");
    assert!(!place.path("went").exists());
}

#[test]
fn background_command_stops_when_it_reads_and_goes_on_in_the_foreground() {
    let place = Place::with_files();
    let mut terminal = Terminal::open(&place);
    terminal.types("$X run a -- sh -c 'echo $$ > pid; read x; echo got $x; echo > end' &\n");
    let command = place.wait_for("pid");
    wait_until_state(&command, "T");
    wait_until_state(&parent_of(&command), "T");
    // The shell hears of it only when all threads are stopped. Before that, `fg` would continue nothing.
    terminal.types("until test -n \"$(jobs -s)\"; do sleep 0.02; done; fg\n");
    wait_until_state(&command, "S");
    terminal.types("typed\n");
    place.wait_for("end");
    terminal.shows("got typed");
}

#[test]
fn terminal_is_as_before_when_a_command_is_killed() {
    let place = Place::with_files();
    let mut terminal = Terminal::open(&place);
    terminal.types("stty -a > before; $X run a -- sh -c 'stty raw; kill -9 $$'; stty -a > after; echo $((4 + 4))end\n");
    terminal.shows("8end");
    assert_eq!(place.read("before"), place.read("after"));
    assert!(!place.read("before").is_empty());
}

#[test]
fn waiting_line_tells_who_has_the_lock_and_is_cleared() {
    let (_server, place) = Place::with_server();
    let holder = holder(&place, "a --label deploy", "end");
    let mut terminal = Terminal::open(&place);
    terminal.types("$X run a -- echo entered; echo status $?\n");
    terminal.shows("waiting for a: ");
    terminal.shows(&format!("/{} \"deploy\" for ", pid(&holder)));
    end(&place, "end");
    terminal.shows("\r\x1b[Kentered");
}
