//! Looks at members of etcd or ZooKeeper, one after the other.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use crate::delays::Delays;
use crate::history::{ALL, Event, History, LATE, SERVER, TRIED, WAITED, now};
use crate::kinds::ELECTION;
use crate::looks::{Look, Open, View};
use crate::servers::Watched;

/// A commit of several, where nothing is in its way.
const LONGEST_LOOK: Duration = Duration::from_millis(15);
/// Faults of the driver have smaller numbers.
const FIRST_ELECTION: u64 = 1 << 40;

/// What is known of the members.
struct Watch<'a> {
    history: &'a History,
    open: Open,
    /// The one that answers.
    asked: Option<(SocketAddr, Box<dyn Look>)>,
    delays: HashMap<u32, Delays>,
    /// What was told last of each line.
    last: HashMap<String, Event>,
    /// Of the last look, and when it was over.
    term: u64,
    seen: u64,
}

pub(super) fn watch(servers: &Watched, open: Open, history: &History, ended: &AtomicBool) {
    const PAUSE: Duration = Duration::from_millis(12);
    let mut watch = Watch {
        history,
        open,
        asked: None,
        delays: HashMap::new(),
        last: HashMap::new(),
        term: 0,
        seen: now(),
    };
    while !ended.load(Relaxed) {
        thread::sleep(PAUSE);
        let members = servers.get().members;
        watch.look_at_delays(&members);
        watch.ask(&members);
    }
}

impl Watch<'_> {
    /// Asks the one that has answered before; another, if that one doesn't.
    fn ask(&mut self, members: &[(SocketAddr, u32)]) {
        let (addr, mut look) = match self.asked.take() {
            Some(asked) => asked,
            None => match members.get(fastrand::usize(..members.len().max(1))) {
                Some((addr, _)) => (*addr, (self.open)(*addr)),
                None => return,
            },
        };
        let before = now();
        let Some(view) = look.look() else {
            return;
        };
        self.asked = Some((addr, look));
        let took = Duration::from_nanos(now() - before);
        if took > LONGEST_LOOK + LATE {
            self.history
                .tell_late_of(SERVER, TRIED, took - LONGEST_LOOK);
        }
        self.tell(&view);
    }

    fn look_at_delays(&mut self, members: &[(SocketAddr, u32)]) {
        let runs = |pid: &u32| members.iter().any(|(_, other)| other == pid);
        self.delays.retain(|pid, _| runs(pid));
        for (_, pid) in members {
            let delays = self.delays.entry(*pid);
            let delay = delays.or_insert_with(|| Delays::of(*pid)).look();
            if delay >= LATE {
                self.history.tell_late_of(SERVER, WAITED, delay);
            }
        }
    }

    fn tell(&mut self, view: &View) {
        let at = now();
        if self.term != 0 && self.term != view.term {
            self.tell_election(view.term, at);
        }
        (self.term, self.seen) = (view.term, at);
        for key in &view.bare {
            self.history.tell(&Event {
                name: key.clone(),
                ..Event::now("bare")
            });
        }
        for event in view.lines.iter().flat_map(|line| line.events(at)) {
            let last = self.last.entry(event.op.clone() + &event.name);
            let last = last.or_default();
            let is_same = last.detail == event.detail && last.token == event.token;
            if last.op.is_empty() || !is_same {
                self.history.tell(&event);
                *last = event;
            }
        }
    }

    /// Also of one that a fault has caused.
    fn tell_election(&self, term: u64, until: u64) {
        let told = Event {
            at: self.seen,
            op: "fault".to_owned(),
            process: ALL,
            id: FIRST_ELECTION + term,
            detail: ELECTION.to_owned(),
            ..Event::default()
        };
        self.history.tell(&told);
        self.history.tell(&Event {
            at: until,
            op: "faulted".to_owned(),
            ..told
        });
    }
}
