//! Processes that count under locks, and are killed at any moment.
//!
//! Each adds one to a number in a file, and *acknowledges* it by a line in a file of its own before it releases. A
//! number that was acknowledged must not be lost: nobody acknowledges the same one, and the next holder finds it or a
//! larger one.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::Instant;

use super::*;
use support::{Child, wait_until};

const PLACE: &str = "TEST_PLACE";
const PROCESSES: usize = 4;
const NAMES: [&str; 3] = ["a", "b", "c"];

/// How much is to be done: `STORM=CYCLES,KILLS` for another run than the short one.
fn wanted() -> (usize, usize) {
    let Ok(wanted) = env::var("STORM") else {
        return (1000, 60);
    };
    let (cycles, kills) = wanted.split_once(',').expect("STORM=CYCLES,KILLS");
    (cycles.parse().unwrap(), kills.parse().unwrap())
}

fn number_file(place: &Path, name: &str) -> File {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options.open(place.join(name)).unwrap()
}

fn read(file: &File) -> u64 {
    let mut digits = [0; 20];
    file.read_exact_at(&mut digits, 0).unwrap();
    str::from_utf8(&digits).unwrap().parse().unwrap()
}

#[test]
fn no_kill_loses_an_acknowledged_number_repeats_a_token_or_blocks_a_name() {
    let (cycles, kills) = wanted();
    let (directory, elsewhere) = (temp_dir(), temp_dir());
    for name in NAMES {
        fs::write(elsewhere.path().join(name), format!("{:020}", 0)).unwrap();
    }
    let mut storm = Storm {
        url: url(directory.path()),
        place: elsewhere.path(),
        children: Vec::new(),
    };
    let started = Instant::now();
    storm.children = (0..PROCESSES).map(|_| storm.start()).collect();
    for _ in 0..kills {
        storm.kill_one();
    }
    // On a busy machine most are killed before they have begun.
    wait_until("somebody who held to be killed", PATIENCE, || {
        storm.kill_one();
        acknowledgements(elsewhere.path()).any(|lines| lines.contains(" true\n"))
    });
    storm.await_number(cycles);
    let counted = storm.number();
    storm.children.clear();
    let lock = open(directory.path());
    for name in NAMES {
        drop(
            lock.try_lock_for(name, SOON)
                .unwrap()
                .expect("nobody lives who has it"),
        );
    }
    drop(lock);
    check(elsewhere.path());
    assert_only_files_of(directory.path(), &NAMES);
    println!("{counted} cycles, {kills} kills, {:.1?}", started.elapsed());
}

struct Storm<'a> {
    url: String,
    place: &'a Path,
    children: Vec<Child>,
}

impl Storm<'_> {
    fn start(&self) -> Child {
        let args = [
            (URL, self.url.as_str()),
            (PLACE, self.place.to_str().unwrap()),
        ];
        Child::spawn("counts in a storm", &args)
    }

    /// At a random moment, and another one comes instead.
    fn kill_one(&mut self) {
        let number = self.number();
        thread::sleep(Duration::from_micros(fastrand::u64(..8000)));
        let at = fastrand::usize(..PROCESSES);
        self.children[at].kill();
        self.children[at] = self.start();
        // Those that are left go on: no name is blocked.
        self.await_number(usize::try_from(number).unwrap() + 1);
    }

    /// All that was counted.
    fn number(&self) -> u64 {
        NAMES
            .iter()
            .map(|name| read(&number_file(self.place, name)))
            .sum()
    }

    fn await_number(&self, number: usize) {
        let mut last = self.number();
        while last < number as u64 {
            wait_until("another to be counted", PATIENCE, || self.number() > last);
            last = self.number();
        }
    }
}

/// The lines of each child.
fn acknowledgements(place: &Path) -> impl Iterator<Item = String> {
    let names = names_in(place).into_iter();
    let names = names.filter(|name| name.starts_with("acknowledged-"));
    names.map(|name| fs::read_to_string(place.join(name)).unwrap())
}

fn check(place: &Path) {
    let mut acknowledged = Vec::new();
    for lines in acknowledgements(place) {
        acknowledged.extend(lines.lines().map(Acknowledged::parse));
    }
    acknowledged.sort_unstable();
    for name in NAMES {
        let of: Vec<_> = acknowledged.iter().filter(|of| of.name == name).collect();
        assert!(of.len() > 10, "{name}: {}", of.len());
        for pair in of.windows(2) {
            assert!(pair[0].number < pair[1].number, "lost: {pair:?}");
            assert!(pair[0].token < pair[1].token, "repeated: {pair:?}");
        }
        let last = of.last().unwrap();
        assert!(
            read(&number_file(place, name)) >= last.number,
            "lost: {last:?}"
        );
    }
    let abandoned = acknowledged.iter().filter(|one| one.abandoned).count();
    println!("{abandoned} found their lock abandoned");
}

/// One line of a child.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Acknowledged {
    name: String,
    number: u64,
    token: u64,
    abandoned: bool,
}

impl Acknowledged {
    fn parse(line: &str) -> Self {
        let mut words = line.split(' ');
        let mut next = || words.next().unwrap();
        Acknowledged {
            name: next().to_owned(),
            number: next().parse().unwrap(),
            token: next().parse().unwrap(),
            abandoned: next().parse().unwrap(),
        }
    }
}
