//! One look-up: all sentinels are asked at once, and whoever needs the answer waits for it within its own deadline.
//!
//! No caller leads it, so none that gives up ends it for others. It is decided as soon as one of these is so:
//!
//! - all sentinels have answered, or failed;
//! - a majority of them has answered, and the first answer is 10 ms old: what is left is most likely silent;
//! - the first answer is 100 ms old, or as old as the caller allows.
//!
//! Of the answers the one with the highest epoch counts.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::question::{NoView, Question, View};
use crate::base::clock::Deadline;
use crate::base::sys::sync::{Condvar, Mutex};
use crate::base::sys::time;
use crate::engine::net::address::Endpoint;
use crate::engine::net::limits::CANCEL_LATENESS;
use crate::engine::redis::failure::Failure;
use crate::engine::redis::server::{Manner, Server};
use crate::engine::redis::servers::ask_all::{Answers, ask_all};

/// How long to wait for a majority after the first answer, where the caller doesn't allow less.
pub(super) const AFTER_FIRST: Duration = Duration::from_millis(100);

/// How long to wait for all, once there is a majority: shortly after a failover only one sentinel may know of it.
const WITH_MAJORITY: Duration = Duration::from_millis(10);

/// All sentinels, asked at once. Its threads end when it is dropped.
#[derive(Debug)]
pub(super) struct Lookup {
    /// Before the first of them was asked.
    pub(super) began: Instant,
    /// No answer comes later.
    ends: Deadline,
    shared: Arc<Shared>,
    _asking: Answers<()>,
}

#[derive(Debug)]
struct Shared {
    heard: Mutex<Heard>,
    changed: Condvar,
}

/// What the sentinels have said so far.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    /// How many are asked.
    asked: usize,
    pub(super) views: Vec<View>,
    first: Option<Instant>,
    pub(super) silent: Vec<(Arc<Server>, Arc<NoView>)>,
}

impl Lookup {
    pub(super) fn start(sentinels: &[Arc<Server>], question: &Question) -> Self {
        let began = time::now();
        let shared = Arc::new(Shared {
            heard: Mutex::new(Heard::nothing(sentinels.len())),
            changed: Condvar::new(),
        });
        let settings = sentinels[0].settings();
        let ends = Deadline::after(settings.connect_timeout + settings.io_timeout);
        let (question, tell) = (question.clone(), shared.clone());
        let ask = move |sentinel: &Arc<Server>, deadline: &Deadline| {
            let answer = sentinel.call(&question, Manner::Plain, deadline);
            let answer = answer.map_err(|e| sentinel.suspecting_tls(e.error).into());
            tell.add(
                sentinel,
                answer.and_then(|answer| question.view(answer.value)),
            );
            Ok(())
        };
        Lookup {
            began,
            _asking: ask_all(sentinels, &ends, ask),
            ends,
            shared,
        }
    }

    /// Whether more may be heard that counts.
    pub(super) fn is_undecided(&self) -> bool {
        !self.ends.is_over() && self.shared.heard.lock().patience(AFTER_FIRST).is_some()
    }

    /// What is heard when it is decided, or `until` is over.
    pub(super) fn wait(&self, after_first: Duration, until: &Deadline) -> Heard {
        let mut heard = self.shared.heard.lock();
        while let Some(patience) = heard.patience(after_first) {
            let patience = patience.min(until.remaining()).min(self.ends.remaining());
            if patience.is_zero() {
                break;
            }
            let patience = patience.min(CANCEL_LATENESS);
            heard = self.shared.changed.wait_for(heard, patience);
        }
        // A copy: who believes it locks more, and others look into this with that locked.
        heard.clone()
    }
}

impl Shared {
    fn add(&self, sentinel: &Arc<Server>, said: Result<View, NoView>) {
        let mut heard = self.heard.lock();
        match said {
            Ok(view) => {
                heard.first.get_or_insert_with(time::now);
                heard.views.push(view);
            }
            Err(why) => heard.silent.push((sentinel.clone(), Arc::new(why))),
        }
        self.changed.notify_all();
    }
}

impl Heard {
    fn nothing(asked: usize) -> Self {
        Heard {
            asked,
            views: Vec::new(),
            first: None,
            silent: Vec::new(),
        }
    }

    /// For how long to wait for more; `None`: it is decided.
    fn patience(&self, after_first: Duration) -> Option<Duration> {
        if self.views.len() + self.silent.len() >= self.asked {
            return None;
        }
        let Some(first) = self.first else {
            return Some(Duration::MAX);
        };
        let longest = if self.views.len() > self.asked / 2 {
            WITH_MAJORITY
        } else {
            AFTER_FIRST
        };
        let left = longest.min(after_first).checked_sub(time::since(first))?;
        (!left.is_zero()).then_some(left)
    }

    /// The newest of the views; of several the one that more sentinels have.
    pub(super) fn newest(&self) -> Option<&View> {
        let votes = |view: &View| self.views.iter().filter(|other| *other == view).count();
        self.views
            .iter()
            .max_by_key(|view| (view.epoch, votes(view)))
    }

    pub(super) fn is_of_all(&self) -> bool {
        self.views.len() == self.asked
    }

    pub(super) fn is_of_majority(&self) -> bool {
        self.views.len() > self.asked / 2
    }

    /// Why there is no view: a refusal, if it is one of all of them.
    pub(super) fn failure(&self) -> Failure {
        let is_denied = |(_, why): &(_, Arc<NoView>)| matches!(**why, NoView::Denied(_));
        let are_denied = self.silent.len() == self.asked && self.silent.iter().all(is_denied);
        let mut text = "no sentinel tells where the master is".to_owned();
        for (at, (sentinel, why)) in self.silent.iter().enumerate() {
            let before = if at == 0 { ": " } else { "; " };
            let _ = write!(text, "{before}{}: {why}", place(sentinel));
        }
        match self.asked - self.silent.len() - self.views.len() {
            0 => {}
            rest => _ = write!(text, "; {rest} don't answer in time"),
        }
        if are_denied {
            Failure::Denied(text.into())
        } else {
            Failure::Closed(text.into())
        }
    }
}

/// For how long a look-up waits for other sentinels when one has answered. A lease that ends soon has no time for that; what
/// an operator does, within zero, has.
pub(super) fn after_first(within: Duration) -> Duration {
    if within.is_zero() {
        return AFTER_FIRST;
    }
    AFTER_FIRST.min(within / 2)
}

/// Where a server is, for a text.
pub(super) fn place(server: &Server) -> String {
    match server.endpoint() {
        Endpoint::Tcp(at) => at.to_string(),
        Endpoint::Unix(path) => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::net::address::HostPort;

    fn heard(asked: usize, views: &[(u64, u16)]) -> Heard {
        let host = || "h".to_owned();
        let view = |&(epoch, port): &(u64, u16)| View {
            epoch,
            at: HostPort { host: host(), port },
        };
        Heard {
            first: (!views.is_empty()).then(Instant::now),
            views: views.iter().map(view).collect(),
            ..Heard::nothing(asked)
        }
    }

    #[test]
    fn highest_epoch_wins_and_then_the_most_votes() {
        for (views, port) in [
            (&[(1, 1), (1, 1), (2, 2)][..], 2),
            (&[(3, 3), (2, 2), (2, 2)], 3),
            (&[(2, 1), (2, 2), (2, 2)], 2),
            (&[(2, 2), (2, 2), (2, 1)], 2),
        ] {
            assert_eq!(heard(3, views).newest().unwrap().at.port, port, "{views:?}");
        }
        assert_eq!(heard(3, &[]).newest(), None);
    }

    #[test]
    fn fewer_answers_are_waited_for_longer() {
        let patience = |views: &[_]| heard(3, views).patience(AFTER_FIRST);
        assert_eq!(patience(&[]), Some(Duration::MAX));
        let one = patience(&[(1, 1)]).unwrap();
        assert!(one > WITH_MAJORITY && one <= AFTER_FIRST);
        let two = patience(&[(1, 1), (1, 1)]);
        assert!(two.is_none_or(|two| two <= WITH_MAJORITY));
        assert_eq!(patience(&[(1, 1), (1, 1), (1, 1)]), None);
        assert_eq!(heard(3, &[(1, 1)]).patience(Duration::ZERO), None);
    }
}
