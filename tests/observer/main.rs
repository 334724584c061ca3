//! What an observer is told: each event once, with what belongs to it.

mod acting;
mod calls;
mod holds;
mod leases;
#[cfg(feature = "metrics")]
mod metrics;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crosslock::{Event, Locker, LockerBuilder, Observer};
#[cfg(feature = "redis")]
use support::RedisServer;
use support::wait_until;

const PATIENCE: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(50);
const NAMESPACE: &str = "watched";

/// Keeps what it is told, as `Debug` shows it.
#[derive(Default)]
struct Kept(Mutex<Vec<String>>);

impl Observer for Kept {
    fn event(&self, event: &Event<'_>) {
        let told = format!("{event:?}");
        assert_eq!(field(&told, "namespace"), format!("{NAMESPACE:?}"));
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(told);
    }
}

impl Kept {
    /// What is known of a lock, in order.
    fn of(&self, name: &str) -> Vec<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_its = |told: &&String| told.contains(&format!(" name: {name:?}"));
        all.iter().filter(is_its).cloned().collect()
    }

    /// The kinds of these events, with blanks between them.
    fn kinds(&self, name: &str) -> String {
        let told = self.of(name);
        let kinds = told.iter().filter_map(|told| told.split(' ').next());
        kinds.collect::<Vec<_>>().join(" ")
    }

    /// The tokens of these events, where they have one.
    fn tokens(&self, name: &str) -> Vec<u64> {
        let told = self.of(name).into_iter();
        let told = told.filter(|told| told.contains(" token: "));
        told.map(|told| field(&told, "token").parse().unwrap())
            .collect()
    }

    #[track_caller]
    fn wait_for(&self, name: &str, kind: &str) {
        wait_until(kind, PATIENCE, || {
            self.kinds(name).split(' ').any(|one| one == kind)
        });
    }

    /// That a hold began and was lost, and nothing else.
    #[track_caller]
    fn assert_lost(&self, name: &str, reason: &str) {
        assert_eq!(self.kinds(name), "Acquired Lost");
        let tokens = self.tokens(name);
        assert_eq!(tokens[0], tokens[1]);
        assert_eq!(field(&self.of(name)[1], "reason"), reason);
    }
}

/// What a field of an event is.
fn field<'a>(told: &'a str, name: &str) -> &'a str {
    let (_, rest) = told.split_once(&format!(" {name}: ")).expect(name);
    rest.split([',', ' ']).next().expect("a value")
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
