//! Who leads: the holder of a lock, and what it publishes beside it.
//!
//! A leader stores a record when it has won, and takes it back when it resigns. So whoever watches the value hears of
//! both. A leader that died leaves its record: it counts only while a lease is held whose token isn't above the
//! record's.

use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::acquire::Calls;
use crate::base::limits::{GRACE, RELEASE};
use crate::base::sys::{self, channel, time};
use crate::base::{
    Backoff, Cancel, Claim, Deadline, Error, ErrorChain, Holder, Key, Mode, Party, Result,
};
use crate::core::Core;
use crate::engine::{Engine, Watch};
use crate::{guard::LockGuard, locker::Locker};

use super::watched::LOOK;

impl Locker {
    /// Makes an election: of all the threads that campaign for a name, one leads. Does no I/O.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidName`] when `name` isn't 1 to 512 bytes long.
    /// - [`Error::Unsupported`] on a quorum of Redis servers, which has no values.
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let election = locker.election("election")?;
    /// let leadership = election.campaign()?; // blocks until this thread leads
    /// leadership.publish("http://10.0.0.7:8080")?;
    /// let leader = election.leader()?.expect("there is one");
    /// assert_eq!(leader.value.as_deref(), Some("http://10.0.0.7:8080"));
    /// leadership.resign()?;
    /// assert!(election.leader()?.is_none());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn election(&self, name: &str) -> Result<Election> {
        Ok(Election {
            // Its record is published beside the lock, and isn't told with it.
            claim: Claim {
                has_value: false,
                ..self.claim_with_value(name, Mode::Exclusive)?
            },
            locker: self.clone(),
        })
    }
}

/// Elects one leader for a name. Others can ask who leads, and observe changes.
///
/// [`Locker::election`] makes one. Making and cloning it costs no I/O.
///
/// # Guarantees
///
/// The leader is the thread that holds the [lock](Locker::lock) of the name. Candidates become leader first come, first
/// served. While [`Leadership::is_held`](LockGuard::is_held) is true, nobody else leads. When a leader dies, the next
/// candidate leads once the rest of its ttl is over, or at once on `file:`.
///
/// # What breaks them
///
/// Whatever breaks a [lock](crate#what-a-lease-promises). The published text is stored where a [`Mutex`](crate::Mutex)
/// of the same name has its value: use a name for one or the other.
///
/// # Round trips
///
/// Campaigning takes as many as locking, and one more to record who leads. Resigning takes one, and
/// [`leader`](Self::leader) two.
///
/// # Differences from `std`
///
/// `std` has no election. etcd's election lists its candidates in order; use [`Locker::inspect`] for that.
///
/// # Examples
///
/// ```
/// # let locker = crosslock::Locker::open("memory:")?;
/// let election = locker.election("scheduler")?;
/// if let Some(leadership) = election.try_campaign()? {
///     while leadership.is_held() {
///         // ... what one of all processes does ...
///         # break;
///     }
/// }
/// # Ok::<(), crosslock::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Election {
    locker: Locker,
    claim: Claim,
}

/// Leads until it is dropped or lost.
///
/// It dereferences to the [`LockGuard`] of the election's name, so it has all methods of `LockGuard` that take `&self`.
/// Receive from [`lost`](LockGuard::lost) or check [`is_held`](LockGuard::is_held), and send
/// [`fencing_token`](LockGuard::fencing_token) with each write. Dropping it resigns, and only logs an error.
/// [`resign`](Self::resign) returns the error.
///
/// # Examples
///
/// ```
/// # let locker = crosslock::Locker::open("memory:")?;
/// let leadership = locker.election("leadership")?.campaign()?;
/// assert!(leadership.is_held());
/// # Ok::<(), crosslock::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "a leadership that is dropped at once leads nobody: bind it, `let _leadership = ...`"]
pub struct Leadership {
    guard: LockGuard,
    /// In milliseconds since 1970.
    since: u64,
}

/// Describes a leader.
///
/// Another may lead by the time you read it.
///
/// # Examples
///
/// ```
/// # let locker = crosslock::Locker::open("memory:")?;
/// let election = locker.election("leader")?;
/// let _leadership = election.campaign()?;
/// let leader = election.leader()?.expect("there is one");
/// assert_eq!(leader.pid, std::process::id());
/// # Ok::<(), crosslock::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leader {
    /// The text that its program set with [`LockerBuilder::label`](crate::LockerBuilder::label).
    pub label: Option<String>,
    /// The name of its host; empty for a program that isn't crosslock.
    pub host: String,
    /// Its process id on that host, or in its container.
    pub pid: u32,
    /// When it began to lead, by the clock of its host.
    pub since: SystemTime,
    /// Its fencing token.
    pub token: u64,
    /// What it [published](Leadership::publish) last.
    pub value: Option<String>,
}

/// What a leader stores: its token; `<host>/<pid>/<thread>`, and perhaps `/<label>`; since when it leads, in
/// milliseconds since 1970; and what it published.
type Record = (u64, String, u64, Option<String>);

/// Nobody leads.
const NOBODY: &[u8] = b"null";

impl Election {
    /// Blocks until this thread leads.
    ///
    /// # Errors
    ///
    /// The errors of [`Locker::lock`]. If the leader holds the lock but can't record that it leads, it logs a warning
    /// and leads all the same. Observers find it later.
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let leadership = locker.election("campaign")?.campaign()?;
    /// # drop(leadership);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn campaign(&self) -> Result<Leadership> {
        let guard = self.locker.calls().lock(&self.claim)?;
        Ok(Leadership::of(guard, Duration::MAX))
    }

    /// Leads if nobody else does. Returns `None` without waiting otherwise.
    ///
    /// # Errors
    ///
    /// The errors of [`Locker::try_lock`] and of [`campaign`](Self::campaign).
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let election = locker.election("try-campaign")?;
    /// let _leadership = election.try_campaign()?.expect("nobody leads");
    /// assert!(election.try_campaign()?.is_none());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn try_campaign(&self) -> Result<Option<Leadership>> {
        let guard = self.locker.calls().try_lock(&self.claim)?;
        Ok(guard.map(|guard| Leadership::of(guard, Duration::MAX)))
    }

    /// Waits for at most `timeout` to lead. Returns `None` if the timeout ends first.
    ///
    /// # Errors
    ///
    /// The errors of [`Locker::try_lock_for`] and of [`campaign`](Self::campaign).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let election = locker.election("try-campaign-for")?;
    /// assert!(election.try_campaign_for(Duration::from_secs(1))?.is_some());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn try_campaign_for(&self, timeout: Duration) -> Result<Option<Leadership>> {
        let began = time::now();
        let guard = self.locker.calls().try_lock_for(&self.claim, timeout)?;
        Ok(guard.map(|guard| {
            let left = timeout.saturating_sub(time::since(began));
            Leadership::of(guard, left)
        }))
    }

    /// Waits until `deadline` to lead, as [`try_campaign_for`](Self::try_campaign_for) does.
    ///
    /// # Errors
    ///
    /// The errors of [`try_campaign_for`](Self::try_campaign_for).
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::{Duration, Instant};
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let election = locker.election("try-campaign-until")?;
    /// let deadline = Instant::now() + Duration::from_secs(1);
    /// assert!(election.try_campaign_until(deadline)?.is_some());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn try_campaign_until(&self, deadline: Instant) -> Result<Option<Leadership>> {
        self.try_campaign_for(deadline.saturating_duration_since(time::now()))
    }

    /// Returns the leader, or `None` when nobody leads.
    ///
    /// # Errors
    ///
    /// The errors of [`Locker::inspect`].
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// assert_eq!(locker.election("who-leads")?.leader()?, None);
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn leader(&self) -> Result<Option<Leader>> {
        leader(self.locker.calls(), &self.claim.key)
    }

    /// Returns a channel that receives the current leader, and then each change.
    ///
    /// `None` means that nobody leads. If you receive slowly, you may miss states in between, but never the latest one.
    /// A leader that wins, publishes or resigns sends a message, which arrives at once. If a leader dies and nobody
    /// takes its place, the channel reports it when the lease ends, or within 30 s on `file:`.
    ///
    /// The channel receives nothing while the engine can't be reached. It is closed when the locker is closed or
    /// dropped, when its token is cancelled, or when the server denies this user access. One thread serves the channel.
    /// It ends with the locker, or at the first change after you dropped the receiver. In a child made with `fork` the
    /// channel receives nothing.
    ///
    /// # Errors
    ///
    /// The errors of [`leader`](Self::leader), for the first look; and [`Error::Engine`] when the thread can't be
    /// started.
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let election = locker.election("observe")?;
    /// let leaders = election.observe()?;
    /// assert_eq!(leaders.recv().unwrap(), None);
    /// let _leadership = election.campaign()?;
    /// assert_eq!(leaders.recv().unwrap().unwrap().pid, std::process::id());
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn observe(&self) -> Result<channel::Receiver<Option<Leader>>> {
        let calls = self.locker.calls();
        let (sender, receiver) = channel::bounded(1);
        let mut observer = Observing {
            core: Arc::downgrade(calls.core),
            ended_by: calls.ended_by.clone(),
            key: self.claim.key.clone(),
            watch: calls.core.engine.watch(&self.claim.key)?,
            sender,
            told: None,
        };
        // It begins to watch, and looks then.
        observer
            .watch
            .changed(&Deadline::NEVER.or(calls.ended_by))?;
        let first = holder(calls, &self.claim.key)?;
        let started = sys::spawn("crosslock-observe", move || observer.run(first));
        started.map_err(|e| {
            let (what, limits) = (
                "starting the observing thread",
                "the limits of this process",
            );
            Error::engine(Some(self.claim.key.name()), what, limits, e)
        })?;
        Ok(receiver)
    }
}

impl Leadership {
    /// Says that it leads, within that time.
    fn of(guard: LockGuard, within: Duration) -> Self {
        let since = time::wall().as_millis().try_into().unwrap_or(0);
        let leadership = Leadership { guard, since };
        let by = Deadline::after(within.saturating_add(GRACE)).within(RELEASE);
        if let Err(e) = leadership.tell(None, &by) {
            log::warn!("can't store who leads the election: {}", ErrorChain(&e));
        }
        leadership
    }

    /// Publishes a value, such as the leader's address, in place of the last one: one round trip. Channels of
    /// [`Election::observe`] receive it.
    ///
    /// # Errors
    ///
    /// - [`Error::Lost`] when it doesn't lead any more. If the lease ended during the call, the value may be published.
    /// - [`Error::Unavailable`], [`Error::Denied`], [`Error::Conflict`] and [`Error::Engine`] when the engine fails:
    ///   nobody knows whether it was published.
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// let leadership = locker.election("publish")?.campaign()?;
    /// leadership.publish("10.0.0.7:8080")?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn publish(&self, value: impl Into<String>) -> Result<()> {
        self.tell(Some(value.into()), &Deadline::NEVER)
    }

    /// Ends the leadership: the next one leads. One round trip.
    ///
    /// # Errors
    ///
    /// The errors of [`LockGuard::unlock`].
    ///
    /// # Examples
    ///
    /// ```
    /// # let locker = crosslock::Locker::open("memory:")?;
    /// locker.election("resign")?.campaign()?.resign()?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn resign(mut self) -> Result<()> {
        self.guard.release_storing(Some(NOBODY.into()))
    }

    fn tell(&self, value: Option<String>, by: &Deadline) -> Result<()> {
        let (token, party) = (self.guard.fencing_token(), self.guard.party());
        let record: Record = (token, party.unwrap_or_default(), self.since, value);
        let json = serde_json::to_vec(&record).unwrap_or_default();
        self.guard.store_value(&json, by)
    }
}

impl Deref for Leadership {
    type Target = LockGuard;

    fn deref(&self) -> &LockGuard {
        &self.guard
    }
}

impl Drop for Leadership {
    fn drop(&mut self) {
        // A panic, the end of the lease and a child leave it to the drop of the guard.
        let guard = &self.guard;
        if guard.has_ended() || guard.is_inherited() || guard.is_panicked() {
            return;
        }
        // A logger that panics must not end a process whose thread is unwinding.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            if let Err(e) = self.guard.release_storing(Some(NOBODY.into())) {
                log::warn!(
                    "can't remove the entry of the leader, who may still appear to lead: {}",
                    ErrorChain(&e)
                );
            }
        }));
    }
}

/// Who holds the lock.
fn holder(calls: Calls<'_>, key: &Key) -> Result<Option<Holder>> {
    let seen = calls.ask(key.name(), |engine: &dyn Engine, by| {
        engine.inspect(key, by)
    })?;
    Ok(seen.holders.into_iter().next())
}

/// What a leader has stored last.
fn record(calls: Calls<'_>, key: &Key) -> Result<Option<Record>> {
    let stored = calls.ask(key.name(), |engine: &dyn Engine, by| engine.load(key, by))?;
    let record = stored.and_then(|json| serde_json::from_slice::<Option<Record>>(&json).ok());
    Ok(record.flatten())
}

fn leader(calls: Calls<'_>, key: &Key) -> Result<Option<Leader>> {
    let Some(holder) = holder(calls, key)? else {
        return Ok(None);
    };
    Ok(Some(Leader::of(holder, record(calls, key)?)))
}

impl Leader {
    fn of(holder: Holder, record: Option<Record>) -> Self {
        let token = holder.token.unwrap_or(0);
        // A later leader's record is newer than the look at the lock.
        let record = record.filter(|(of, ..)| *of >= token);
        let held_for = holder.held_for.unwrap_or_default();
        let began = time::wall().saturating_sub(held_for);
        let (token, party, began, value) = match record {
            Some((token, party, since, value)) => {
                let began = Duration::from_millis(since);
                (token, Party::of(&party), began, value)
            }
            None => (token, holder.party, began, None),
        };
        let (label, host, pid) = party.map_or_else(Default::default, |party| {
            (party.label, party.host, party.pid)
        });
        Leader {
            label,
            host,
            pid,
            since: UNIX_EPOCH + began,
            token,
            value,
        }
    }
}

/// The pauses after looks in vain.
const AGAIN: Backoff = Backoff {
    base: Duration::from_millis(10),
    cap: Duration::from_secs(1),
    jitter: 0.5,
};

/// The thread that tells one channel who leads.
struct Observing {
    /// It doesn't keep its locker alive.
    core: Weak<Core>,
    ended_by: Cancel,
    key: Key,
    watch: Box<dyn Watch>,
    sender: channel::Sender<Option<Leader>>,
    /// `None` before the first.
    told: Option<Option<Leader>>,
}

impl Observing {
    fn run(mut self, mut holder: Option<Holder>) {
        loop {
            let left = holder.as_ref().and_then(|holder| holder.remaining);
            let told = self.tell_who_leads(holder);
            // A lease that ends isn't told of.
            let next = told.and_then(|()| self.look_again(left.unwrap_or(LOOK).min(LOOK)));
            let Some(next) = next else {
                return;
            };
            holder = next;
        }
    }

    /// Who leads is known before what it has published. `None`: that is over.
    fn tell_who_leads(&mut self, holder: Option<Holder>) -> Option<()> {
        let Some(holder) = holder else {
            return self.tell(None);
        };
        let last = self.told.as_ref().map(|told| token_of(told.as_ref()));
        if last.is_some_and(|last| last < holder.token) {
            self.tell(Some(Leader::of(holder.clone(), None)))?;
        }
        let record = self.calls(record)?;
        // A failure is met by the next look again.
        record.map_or(Some(()), |record| {
            self.tell(Some(Leader::of(holder, record)))
        })
    }

    /// Blocks until the receiver has room; `None` when there is none any more.
    fn tell(&mut self, mut leader: Option<Leader>) -> Option<()> {
        const PAUSE: Duration = Duration::from_millis(50);
        let told = self.told.as_ref();
        if let (Some(Some(told)), Some(leader)) = (told, &mut leader)
            && told.token == leader.token
        {
            // Of a leader without a record it is reckoned anew each time.
            leader.since = told.since;
        }
        while self.told.as_ref() != Some(&leader) {
            match self.sender.send_timeout(leader.clone(), PAUSE) {
                Ok(()) => self.told = Some(leader.clone()),
                Err(e) if e.is_disconnected() || self.ended_by.is_set() => return None,
                Err(_) => {}
            }
        }
        Some(())
    }

    /// Asks, if the locker is still there, which it doesn't keep alive while it waits.
    fn calls<T>(&self, ask: impl FnOnce(Calls<'_>, &Key) -> Result<T>) -> Option<Result<T>> {
        let core = self.core.upgrade().filter(|_| !self.ended_by.is_set())?;
        let calls = Calls {
            core: &core,
            ended_by: &self.ended_by,
        };
        Some(ask(calls, &self.key))
    }

    /// Looks when something has changed, or after that time. `None`: that is over.
    fn look_again(&mut self, within: Duration) -> Option<Option<Holder>> {
        let mut until = Deadline::after(within).or(&self.ended_by);
        let mut pauses = AGAIN.waits();
        loop {
            let changed = self.watch.changed(&until);
            let looked = self.calls(holder)?;
            match changed.and(looked) {
                Ok(holder) => return Some(holder),
                Err(e @ (Error::Unavailable { .. } | Error::Engine { .. })) => {
                    log::debug!("can't read the leader, retrying: {e}");
                }
                Err(e) => {
                    log::warn!("stopped observing the leader: {}", ErrorChain(&e));
                    return None;
                }
            }
            let pause = pauses.next().unwrap_or(AGAIN.cap);
            Deadline::after(pause).or(&self.ended_by).sleep(pause);
            // It may have missed a change.
            until = Deadline::after(AGAIN.cap).or(&self.ended_by);
        }
    }
}

fn token_of(leader: Option<&Leader>) -> Option<u64> {
    leader.map(|leader| leader.token)
}
