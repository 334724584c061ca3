//! What operators do: look at locks, list them, free them.

use std::collections::VecDeque;

use super::Locker;
use crate::base::sys::collections::HashSet;
use crate::base::{Deadline, Event, Finding, Holder, Inspection, Key, Namespace, Result};
use crate::doctor;
use crate::engine::{Cursor, Engine};

impl Locker {
    /// Returns the holders and waiters of a lock, without taking it. On Redis one round trip.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidName`](crate::Error::InvalidName) for a name that isn't 1 to 512 bytes long.
    /// - [`Error::Unavailable`](crate::Error::Unavailable), [`Error::Denied`](crate::Error::Denied),
    ///   [`Error::Conflict`](crate::Error::Conflict) and [`Error::Engine`](crate::Error::Engine) when the engine fails.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// let locker = crosslock::Locker::open("memory:")?;
    /// let _guard = locker.lock("inspect-example")?;
    /// let seen = locker.inspect("inspect-example")?;
    /// assert_eq!(seen.holders.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn inspect(&self, name: &str) -> Result<Inspection> {
        let key = Key::new(&self.namespace, name)?;
        let ask = |engine: &dyn Engine, by: &Deadline| engine.inspect(&key, by);
        self.calls().ask(name, ask)
    }

    /// Lists the names in use that begin with `prefix`, in no order. All names begin with an empty one.
    ///
    /// A name is in use while somebody holds it. A name that is taken or released meanwhile may be listed or not. The
    /// iterator asks the server for one page at a time. On Redis it uses `SCAN`, which doesn't block other clients.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`](crate::Error::Unsupported) when the engine can't list. The iterator gives the errors of
    /// [`inspect`](Self::inspect), and ends with the first.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// let locker = crosslock::Locker::open("memory:")?;
    /// let _guard = locker.lock("list-example-1")?;
    /// let names: Vec<String> = locker.list("list-example-")?.collect::<Result<_, _>>()?;
    /// assert_eq!(names, ["list-example-1"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn list(&self, prefix: &str) -> Result<Names> {
        Ok(Names {
            locker: self.clone(),
            namespace: self.namespace.clone(),
            prefix: prefix.to_owned(),
            next: Some(Cursor::default()),
            page: VecDeque::new(),
            told: HashSet::default(),
        })
    }

    /// Takes a lock from its holders and passes it to the first waiter. Returns the former holders. On Redis one round
    /// trip.
    ///
    /// All leases of the name end, including leases of readers and of permits. Their guards are lost with
    /// [`LostReason::Broken`](crate::LostReason::Broken). On Redis, a holder learns of it at once if its process is
    /// receiving messages from the server, which it does while one of its threads waits for a lock and for a while
    /// after. On ZooKeeper it learns of it at once, too. Otherwise it learns of it at the next renewal, and believes
    /// until then that it holds the lock. The fencing token increases, so storage that checks tokens rejects an
    /// exclusive holder's writes as soon as the next holder has written.
    ///
    /// If an exclusive holder had the lock, the next holder finds it [abandoned](crate::LockGuard::was_abandoned).
    ///
    /// # Errors
    ///
    /// The errors of [`inspect`](Self::inspect). After [`Error::Unavailable`](crate::Error::Unavailable) it is unknown
    /// whether the lock was broken.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// let locker = crosslock::Locker::open("memory:")?;
    /// let guard = locker.lock("break-example")?;
    /// let broken = locker.break_lock("break-example")?;
    /// assert_eq!(broken[0].token, Some(guard.fencing_token()));
    /// assert!(guard.verify().is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn break_lock(&self, name: &str) -> Result<Vec<Holder>> {
        let key = Key::new(&self.namespace, name)?;
        let ask = |engine: &dyn Engine, by: &Deadline| engine.break_lock(&key, by);
        let broken = self.calls().ask(name, ask)?;
        if !broken.is_empty() {
            self.core().options.observer.tell(|| Event::Broken {
                namespace: key.namespace(),
                name: key.name(),
                holders: broken.len(),
            });
        }
        Ok(broken)
    }

    /// Checks the place where the locks live: its version, what it keeps through a restart, what this user may do, how
    /// fast it answers, and which guarantees don't hold there.
    ///
    /// It takes no lock. On Redis it sends about 70 commands, one after the other; they use one key of this namespace,
    /// which expires. In a directory it locks a file of its own, and removes it.
    ///
    /// If the server hides something from this user, its finding is [`Unknown`](crate::Verdict::Unknown). No finding
    /// contains a password. If one of several servers doesn't answer, that is a finding too, and the others are
    /// checked.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`](crate::Error::Unavailable) and [`Error::Denied`](crate::Error::Denied) when the place
    /// can't be reached or entered.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> crosslock::Result<()> {
    /// let locker = crosslock::Locker::open("memory:")?;
    /// for finding in locker.diagnose()? {
    ///     println!("{} is {}: {}", finding.check, finding.verdict, finding.found);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn diagnose(&self) -> Result<Vec<Finding>> {
        let core = self.core();
        doctor::diagnose(&*core.engine, &self.namespace, &core.options)
    }
}

/// Iterates over the names of locks in use. [`Locker::list`] makes it.
///
/// # Examples
///
/// ```
/// # fn main() -> crosslock::Result<()> {
/// let locker = crosslock::Locker::open("memory:")?;
/// for name in locker.list("names-example-")? {
///     println!("{}", name?);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "an iterator does nothing until it is asked"]
pub struct Names {
    locker: Locker,
    namespace: Namespace,
    prefix: String,
    /// `None` behind the last page.
    next: Option<Cursor>,
    page: VecDeque<String>,
    /// An engine may give a name on two pages.
    told: HashSet<String>,
}

impl Names {
    fn turn_page(&mut self, cursor: Cursor) -> Result<()> {
        let of = (&self.namespace, &*self.prefix);
        let ask = |engine: &dyn Engine, by: &Deadline| engine.list(of, cursor, by);
        let page = self.locker.calls().ask(&self.prefix, ask)?;
        (self.page, self.next) = (page.names.into(), page.next);
        Ok(())
    }
}

impl Iterator for Names {
    type Item = Result<String>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            while let Some(name) = self.page.pop_front() {
                if self.told.insert(name.clone()) {
                    return Some(Ok(name));
                }
            }
            let cursor = self.next.take()?;
            if let Err(e) = self.turn_page(cursor) {
                return Some(Err(e));
            }
        }
    }
}
