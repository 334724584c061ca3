//! What a queue in memory keeps its times in: an ordered set, as the rules of tasks have it, a heap, and a hierarchical
//! wheel.
//!
//! ```text
//! cargo bench --bench timers [-- TIMERS]
//! ```
//!
//! Each row has TIMERS (1,000,000) timers, which are due at random within an hour: it inserts all, removes each second
//! one, and takes the others when they are due, millisecond by millisecond. Rounds of the rows take turns.
//!
//! How to read it: nanoseconds for each timer. The set gives timers in the order of their microseconds and counts those
//! that are due; so does the heap, which finds what was removed when that is due, and can't count. The wheel knows
//! milliseconds, and neither the order within one nor when the next timer is due.

mod support;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::time::Instant;

use support::{Column, P50, Round, Subject, Table, column, ratio};

const COLUMNS: [Column; 4] = [
    column("insert ns", "insert ns", P50, 0),
    column("remove ns", "remove ns", P50, 0),
    column("take ns", "take ns", P50, 0),
    ratio("take ns"),
];
/// In microseconds.
const SPAN: u64 = 3_600_000_000;
const TICK: u64 = 1_000;

trait Timers {
    fn insert(&mut self, id: u32, due: u64);
    fn remove(&mut self, id: u32);
    /// Takes those that are due, and gives how many.
    fn take(&mut self, now: u64) -> usize;
}

/// Its times by id, too.
#[derive(Default)]
struct Ordered(BTreeSet<(u64, u32)>, HashMap<u32, u64>);

impl Timers for Ordered {
    fn insert(&mut self, id: u32, due: u64) {
        self.0.insert((due, id));
        self.1.insert(id, due);
    }

    fn remove(&mut self, id: u32) {
        if let Some(due) = self.1.remove(&id) {
            self.0.remove(&(due, id));
        }
    }

    fn take(&mut self, now: u64) -> usize {
        let mut taken = 0;
        while self.0.first().is_some_and(|(due, _)| *due <= now) {
            if let Some((_, id)) = self.0.pop_first() {
                self.1.remove(&id);
                taken += 1;
            }
        }
        taken
    }
}

#[derive(Default)]
struct Heap(BinaryHeap<Reverse<(u64, u32)>>, HashMap<u32, u64>);

impl Timers for Heap {
    fn insert(&mut self, id: u32, due: u64) {
        self.0.push(Reverse((due, id)));
        self.1.insert(id, due);
    }

    fn remove(&mut self, id: u32) {
        self.1.remove(&id);
    }

    fn take(&mut self, now: u64) -> usize {
        let mut taken = 0;
        while self.0.peek().is_some_and(|Reverse((due, _))| *due <= now) {
            if let Some(Reverse((due, id))) = self.0.pop()
                && self.1.get(&id) == Some(&due)
            {
                self.1.remove(&id);
                taken += 1;
            }
        }
        taken
    }
}

/// Levels of 64 slots: a slot of one is as long as all slots of the level below.
struct Wheel {
    levels: Vec<Vec<Vec<(u64, u32)>>>,
    due: HashMap<u32, u64>,
    /// In ticks.
    now: u64,
}

const LEVELS: u32 = 5;
const BITS: u32 = 6;

impl Default for Wheel {
    fn default() -> Self {
        let level = || vec![Vec::new(); 1 << BITS];
        Wheel {
            levels: (0..LEVELS).map(|_| level()).collect(),
            due: HashMap::new(),
            now: 0,
        }
    }
}

fn index(number: u64) -> usize {
    number.try_into().expect("there are few")
}

impl Wheel {
    fn put(&mut self, due: u64, id: u32) {
        let differ = (due ^ self.now) | 1;
        let level = (differ.ilog2() / BITS).min(LEVELS - 1);
        let slot = due >> (level * BITS) & ((1 << BITS) - 1);
        self.levels[index(level.into())][index(slot)].push((due, id));
    }
}

impl Timers for Wheel {
    fn insert(&mut self, id: u32, due: u64) {
        let due = due.div_ceil(TICK);
        self.due.insert(id, due);
        self.put(due, id);
    }

    fn remove(&mut self, id: u32) {
        self.due.remove(&id);
    }

    fn take(&mut self, now: u64) -> usize {
        let mut taken = 0;
        while self.now < now / TICK {
            self.now += 1;
            // What a higher level has for the time that begins now goes down.
            for level in (1..LEVELS).rev() {
                let (shift, mask) = (level * BITS, (1 << BITS) - 1);
                if self.now & ((1 << shift) - 1) == 0 {
                    let slot =
                        &mut self.levels[index(level.into())][index(self.now >> shift & mask)];
                    for (due, id) in std::mem::take(slot) {
                        self.put(due, id);
                    }
                }
            }
            let slot = &mut self.levels[0][index(self.now & ((1 << BITS) - 1))];
            for (due, id) in std::mem::take(slot) {
                if self.due.get(&id) == Some(&due) {
                    self.due.remove(&id);
                    taken += 1;
                }
            }
        }
        taken
    }
}

fn main() {
    let count: u32 = support::argument().unwrap_or(1_000_000);
    let table = Table::new(&["timers"], &COLUMNS, 5);
    table.run(vec![
        Subject::new("ordered set", move || round(Ordered::default(), count)),
        Subject::new("heap", move || round(Heap::default(), count)).to("ordered set"),
        Subject::new("wheel", move || round(Wheel::default(), count)).to("ordered set"),
    ]);
}

fn round(mut timers: impl Timers, count: u32) -> Round {
    let mut random = fastrand::Rng::with_seed(7);
    let each = |began: Instant, timers: u32| began.elapsed().as_nanos() as f64 / f64::from(timers);
    let began = Instant::now();
    for id in 0..count {
        timers.insert(id, random.u64(1..SPAN));
    }
    let insert = each(began, count);
    let began = Instant::now();
    for id in (0..count).step_by(2) {
        timers.remove(id);
    }
    let remove = each(began, count / 2);
    let began = Instant::now();
    let taken: usize = (0..=SPAN / TICK).map(|tick| timers.take(tick * TICK)).sum();
    assert_eq!(Ok(taken), (count / 2).try_into());
    let round = Round::default().with("insert ns", insert);
    round
        .with("remove ns", remove)
        .with("take ns", each(began, count / 2))
}
