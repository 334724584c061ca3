//! Looks at members of etcd or ZooKeeper, one after the other.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use super::{Told, tell_slow, tell_waited};
use crate::delays::Delays;
use crate::history::{ALL, Event, History, now};
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
    told: Told,
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
        told: Told::default(),
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
        tell_slow(self.history, took, LONGEST_LOOK);
        self.tell(&view);
    }

    fn look_at_delays(&mut self, members: &[(SocketAddr, u32)]) {
        let runs = |pid: &u32| members.iter().any(|(_, other)| other == pid);
        self.delays.retain(|pid, _| runs(pid));
        for (_, pid) in members {
            let delays = self.delays.entry(*pid);
            let delay = delays.or_insert_with(|| Delays::of(*pid)).look();
            tell_waited(self.history, delay);
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
        let events = view.lines.iter().flat_map(|line| line.events(at));
        self.told.tell(self.history, events);
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
