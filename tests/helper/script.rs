//! A script: orders that a process was told at once, and what each is to answer.
//!
//! A line is an order, which has to succeed, or `ORDER => ANSWER`, with the answer's first or last words. These are
//! more:
//!
//! - `fork` ... `end`: a child does what is between, and inherits all. `join` waits for the children.
//! - `taken a b`: no other can have these locks. `taken-elsewhere a`: nor by a locker of its own.
//! - `sleep MILLIS`; `wait WORD` says the word, and waits for a line of the parent.

use std::thread;

use crosslock::Locker;
use support::{forked, hear, say};

use super::forks::assert_succeeds;
use super::orders::Holder;
use super::*;

pub(crate) fn play(script: &str) {
    let mut player = Player {
        holder: Holder::of(locker()),
        children: Vec::new(),
    };
    player.perform(
        &mut script
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty()),
    );
}

struct Player {
    holder: Holder,
    children: Vec<i32>,
}

impl Player {
    /// What is between a fork and its end is for the child.
    fn perform<'a>(&mut self, lines: &mut impl Iterator<Item = &'a str>) {
        while let Some(line) = lines.next() {
            match line {
                "fork" => {
                    let childs = block(lines);
                    let pid = forked(|| {
                        self.children.clear();
                        self.perform(&mut childs.iter().copied());
                    });
                    self.children.push(pid);
                }
                "join" => self.children.drain(..).for_each(assert_succeeds),
                _ => self.order(line),
            }
        }
    }

    fn order(&mut self, line: &str) {
        let (order, expected) = match line.split_once(" => ") {
            Some((order, expected)) => (order, Some(expected)),
            None => (line, None),
        };
        let (verb, rest) = order.split_once(' ').unwrap_or((order, ""));
        let answer = match verb {
            "sleep" => {
                thread::sleep(Duration::from_millis(rest.parse().expect("a number")));
                return;
            }
            "wait" => {
                say(rest);
                hear();
                return;
            }
            "taken" => return assert_taken(self.holder.lock(), rest),
            "taken-elsewhere" => return assert_taken(&locker(), rest),
            _ => self.holder.obey(order),
        };
        let is_right = match expected {
            Some(expected) => answer.starts_with(expected) || answer.ends_with(expected),
            None => answer == "ok" || answer.starts_with("token"),
        };
        assert!(is_right, "{line}: {answer}");
    }
}

/// The lines up to the end of this block, which has blocks of its own.
fn block<'a>(lines: &mut impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let (mut block, mut depth) = (Vec::new(), 1);
    for line in lines {
        depth = match line {
            "fork" => depth + 1,
            "end" => depth - 1,
            _ => depth,
        };
        if depth == 0 {
            break;
        }
        block.push(line);
    }
    block
}

fn assert_taken(lock: &Locker, names: &str) {
    for name in names.split(' ') {
        assert!(lock.try_lock(name).unwrap().is_none(), "{name} is free");
    }
}
