//! Prints a span for each wait and each hold, by `tracing`, through the same trait that metrics use.
//!
//! ```text
//! cargo run -p crosslock-observe --bin spans
//! ```
//!
//! A wait's span is inside of that of the work which waits. `time.idle` of its last line says how long it took.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use crosslock::{Event, Locker, Observer};
use tracing::{Span, info, info_span, warn};
use tracing_subscriber::fmt::format::FmtSpan;

/// The spans that are open.
#[derive(Default)]
struct Spans(Mutex<Open>);

#[derive(Default)]
struct Open {
    /// A call waits on its own thread, for one lock at a time.
    waits: HashMap<ThreadId, Span>,
    /// A guard may be released by another thread than that which took it.
    holds: HashMap<Hold, Span>,
}

/// Namespace, name and token: no other hold has the same.
type Hold = (String, String, u64);

impl Observer for Spans {
    #[allow(clippy::too_many_lines, reason = "a table")]
    fn event(&self, event: &Event<'_>) {
        match *event {
            Event::Waiting { name, .. } => self.wait(info_span!("wait", lock = name)),
            Event::Acquired {
                namespace,
                name,
                token,
                handed_over,
                abandoned,
                ..
            } => {
                self.end_wait();
                let span = info_span!("hold", lock = name, token, handed_over);
                if abandoned {
                    span.in_scope(|| warn!("the holder before never released it"));
                }
                self.hold(hold(namespace, name, token), span);
            }
            Event::GaveUp { error, .. } => {
                if let Some(span) = self.end_wait() {
                    span.in_scope(|| info!(error = error.map(tracing::field::display), "gave up"));
                }
            }
            Event::Released {
                namespace,
                name,
                token,
                ..
            } => drop(self.end_hold(&hold(namespace, name, token))),
            Event::Lost {
                namespace,
                name,
                token,
                reason,
                ..
            } => {
                if let Some(span) = self.end_hold(&hold(namespace, name, token)) {
                    span.in_scope(|| warn!(%reason, "lost"));
                }
            }
            Event::OutageBegan { engine, error, .. } => warn!(engine, %error, "outage"),
            Event::OutageEnded { engine, lasted, .. } => info!(engine, ?lasted, "answers again"),
            _ => {}
        }
    }
}

fn hold(namespace: &str, name: &str, token: u64) -> Hold {
    (namespace.to_owned(), name.to_owned(), token)
}

impl Spans {
    fn with<T>(&self, change: impl FnOnce(&mut Open) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn wait(&self, span: Span) {
        self.with(|open| open.waits.insert(thread::current().id(), span));
    }

    fn end_wait(&self) -> Option<Span> {
        self.with(|open| open.waits.remove(&thread::current().id()))
    }

    fn hold(&self, hold: Hold, span: Span) {
        self.with(|open| open.holds.insert(hold, span));
    }

    fn end_hold(&self, hold: &Hold) -> Option<Span> {
        self.with(|open| open.holds.remove(hold))
    }
}

fn main() -> crosslock::Result<()> {
    tracing_subscriber::fmt()
        .with_span_events(FmtSpan::NEW | FmtSpan::CLOSE)
        .with_timer(tracing_subscriber::fmt::time::uptime())
        .with_target(false)
        .init();
    let short = Duration::from_millis(200);
    let builder = Locker::builder("memory:").observer(Arc::new(Spans::default()));
    let locker = builder.ttl(short).renew(false).build()?;
    thread::scope(|scope| {
        let workers = [1, 2].map(|number| {
            let locker = &locker;
            scope.spawn(move || {
                let _work = info_span!("work", number).entered();
                let _guard = locker.lock("job")?;
                thread::sleep(short / 4);
                crosslock::Result::Ok(())
            })
        });
        workers
            .into_iter()
            .try_for_each(|one| one.join().expect("a worker doesn't panic"))
    })?;
    let guard = locker.lock("job")?;
    // It gives up: another has the lock.
    assert!(locker.try_lock_for("job", short / 4)?.is_none());
    // This one is lost, because nothing renews it.
    let _ = guard.lost().recv();
    assert!(guard.unlock().is_err());
    Ok(())
}
