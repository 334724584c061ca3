//! What an observer is told: each event once, with what belongs to it.

mod acting;
mod calls;
mod holds;
mod leases;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "redis")]
mod outages;
mod storms;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crosslock::{Event, Locker, LockerBuilder, LostReason, Observer};
#[cfg(feature = "redis")]
use support::RedisServer;
use support::wait_until;

const PATIENCE: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(50);
const NAMESPACE: &str = "watched";

/// An event, to be looked at later. Errors are their texts.
#[derive(Clone, Debug, PartialEq)]
enum Told {
    Waiting,
    Acquired {
        token: u64,
        waited: Duration,
        was_waiting: bool,
        handed_over: bool,
        abandoned: bool,
    },
    GaveUp {
        waited: Duration,
        error: Option<String>,
    },
    Released {
        token: u64,
        held: Duration,
    },
    Renewed {
        token: u64,
    },
    RenewalFailed {
        remaining: Duration,
        error: String,
    },
    Lost {
        token: u64,
        held: Duration,
        reason: LostReason,
    },
    OutageBegan {
        engine: String,
        error: String,
    },
    OutageEnded {
        engine: String,
        lasted: Duration,
    },
    Broken {
        holders: usize,
    },
}

/// Keeps what it is told, with the names of the locks.
#[derive(Default)]
struct Kept(Mutex<Vec<(String, Told)>>);

impl Observer for Kept {
    fn event(&self, event: &Event<'_>) {
        assert_eq!(text_of(event, "namespace"), NAMESPACE);
        let told = (text_of(event, " name"), kept(event));
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(told);
    }
}

impl Kept {
    /// What is known of a lock, in order.
    fn of(&self, name: &str) -> Vec<Told> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = all.iter().filter(|(one, _)| one == name);
        own.map(|(_, told)| told.clone()).collect()
    }

    fn count(&self, name: &str, is: impl Fn(&Told) -> bool) -> usize {
        self.of(name).iter().filter(|told| is(told)).count()
    }

    #[track_caller]
    fn wait_for(&self, what: &str, name: &str, is: impl Fn(&Told) -> bool) {
        wait_until(what, PATIENCE, || self.count(name, &is) > 0);
    }
}

#[allow(clippy::too_many_lines, reason = "a table")]
fn kept(event: &Event<'_>) -> Told {
    let shown = |error: &crosslock::Error| format!("{error:?}");
    match *event {
        Event::Waiting { .. } => Told::Waiting,
        Event::Acquired {
            token,
            waited,
            was_waiting,
            handed_over,
            abandoned,
            ..
        } => Told::Acquired {
            token,
            waited,
            was_waiting,
            handed_over,
            abandoned,
        },
        Event::GaveUp { waited, error, .. } => {
            let error = error.map(shown);
            Told::GaveUp { waited, error }
        }
        Event::Released { token, held, .. } => Told::Released { token, held },
        Event::Renewed { token, .. } => Told::Renewed { token },
        Event::RenewalFailed {
            remaining, error, ..
        } => Told::RenewalFailed {
            remaining,
            error: shown(error),
        },
        Event::Lost {
            token,
            held,
            reason,
            ..
        } => Told::Lost {
            token,
            held,
            reason,
        },
        Event::OutageBegan { engine, error, .. } => Told::OutageBegan {
            engine: engine.to_owned(),
            error: shown(error),
        },
        Event::OutageEnded { engine, lasted, .. } => Told::OutageEnded {
            engine: engine.to_owned(),
            lasted,
        },
        Event::Broken { holders, .. } => Told::Broken { holders },
        ref other => panic!("what is it? {other:?}"),
    }
}

/// A text that each event has, as its `Debug` shows it.
fn text_of(event: &Event<'_>, field: &str) -> String {
    let shown = format!("{event:?}");
    let (_, rest) = shown.split_once(&format!("{field}: \"")).expect(field);
    rest.split('"').next().expect("a text").to_owned()
}

/// A locker, and what its observer keeps.
fn observed(url: &str, set: impl FnOnce(LockerBuilder) -> LockerBuilder) -> (Locker, Arc<Kept>) {
    let kept = Arc::new(Kept::default());
    let builder = Locker::builder(url).namespace(NAMESPACE);
    let locker = set(builder.observer(kept.clone())).build().unwrap();
    (locker, kept)
}

/// With a place where locks live, for each engine.
fn each_url(test: impl Fn(&str)) {
    test("memory:");
    #[cfg(feature = "file")]
    {
        let dir = tempfile::tempdir().unwrap();
        test(&format!("file://{}", dir.path().display()));
    }
    #[cfg(feature = "redis")]
    test(&RedisServer::start().url());
}

/// Asserts that a hold began and was lost, and nothing else; and returns how long it was.
#[track_caller]
fn assert_lost(told: &[Told], why: LostReason, url: &str) -> Duration {
    let [
        Told::Acquired { token, .. },
        Told::Lost {
            token: lost,
            held,
            reason,
        },
    ] = *told
    else {
        panic!("{url}: {told:?}")
    };
    assert_eq!((lost, reason), (token, why), "{url}");
    held
}

fn is_waiting(told: &Told) -> bool {
    matches!(told, Told::Waiting)
}
