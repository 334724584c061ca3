//! How a locker begins, from a URL; and how its calls are ended, by a token or for good.

use std::env::{self, VarError};
use std::sync::Arc;

use super::{EndedBy, Locker, builder::LockerBuilder};
use crate::base::{CancelToken, Error, ForkLocal, Result};

/// The variable that [`Locker::from_env`] reads.
const VARIABLE: &str = "CROSSLOCK_URL";

impl Locker {
    /// Opens the engine that `url` names, with the default options.
    ///
    /// On Redis it connects and asks the server what it is: two round trips, four with a password and a database
    /// number.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidUrl`] when a part of the URL isn't understood, or names something impossible.
    /// - [`Error::Unavailable`] when the server can't be reached within the connect timeout of 2 s, or is a replica.
    /// - [`Error::Denied`] when the server refuses the user or the password, or the directory can't be used.
    /// - [`Error::Engine`] when something other than Redis answers, its certificate isn't trusted, or it has no
    ///   database of that number.
    /// - [`Error::Unsupported`] when the engine isn't part of this build, or the server is a Sentinel or a node of a
    ///   cluster.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// let locker = crosslock::Locker::open("redis://127.0.0.1/")?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn open(url: &str) -> Result<Self> {
        Locker::builder(url).build()
    }

    /// Opens the engine that the environment variable `CROSSLOCK_URL` names, or `file:` when it isn't set.
    ///
    /// Without the variable, the log warns that only processes of this user on this host exclude each other.
    ///
    /// # Errors
    ///
    /// The errors of [`open`](Self::open). A variable that is set but empty gives [`Error::InvalidUrl`].
    ///
    /// # Examples
    ///
    /// ```no_run
    /// let locker = crosslock::Locker::from_env()?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn from_env() -> Result<Self> {
        let invalid = |url: &str, reason: &str| {
            let (url, reason) = (url.to_owned(), format!("{VARIABLE} {reason}"));
            Err(Error::InvalidUrl { url, reason })
        };
        match env::var(VARIABLE) {
            Err(VarError::NotPresent) => {
                let locker = Locker::open("file:")?;
                let endpoint = locker.core().engine.endpoint();
                log::warn!(
                    "{VARIABLE} isn't set: using {endpoint}, whose locks exclude only processes of this user on this \
                     host"
                );
                Ok(locker)
            }
            Err(VarError::NotUnicode(_)) => invalid("…", "isn't UTF-8"),
            Ok(url) if url.is_empty() => {
                invalid("", "is set but empty: unset it, or set it to a URL")
            }
            Ok(url) => Locker::open(&url).map_err(|e| match e {
                Error::InvalidUrl { url, reason } => Error::InvalidUrl {
                    url,
                    reason: format!("{reason} (from {VARIABLE})"),
                },
                e => e,
            }),
        }
    }

    /// Returns a builder, to set options before the engine is opened.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// let locker = crosslock::Locker::builder("memory:")
    ///     .namespace("deploy")
    ///     .ttl(Duration::from_secs(30))
    ///     .build()?;
    /// # Ok::<(), crosslock::Error>(())
    /// ```
    pub fn builder(url: &str) -> LockerBuilder {
        LockerBuilder::new(url)
    }

    /// Returns a clone whose waits end when `token` is cancelled.
    ///
    /// It shares connections, and the queue of threads, with this locker. When the token is cancelled, each of its
    /// calls that waits or asks returns [`Error::Cancelled`](crate::Error::Cancelled) within 50 ms, whatever the
    /// network does, and leaves the lock's queue as a call does whose timeout is over. A later call returns it at once,
    /// and asks nothing; so does [`try_lock`](Self::try_lock). The token also ends the calls of what the clone makes,
    /// such as a [`semaphore`](Self::semaphore).
    ///
    /// If the lock is granted at the moment of the cancel, the call may return the guard. Guards stay as they are.
    ///
    /// If this locker already has a token, either token ends the calls of the clone.
    ///
    /// # Examples
    ///
    /// ```
    /// # use std::time::Duration;
    /// use crosslock::{CancelToken, Error, Locker};
    ///
    /// # fn main() -> crosslock::Result<()> {
    /// let locker = Locker::open("memory:")?;
    /// let token = CancelToken::new();
    /// let cancelled = locker.with_cancel(&token);
    /// let guard = cancelled.lock("cancel-example")?;
    /// token.cancel();
    /// assert!(guard.is_held());
    /// assert!(matches!(cancelled.lock("other-example"), Err(Error::Cancelled { .. })));
    /// drop(locker.lock("other-example")?);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "it is the clone that ends by the token"]
    pub fn with_cancel(&self, token: &CancelToken) -> Self {
        let mut tokens = match &self.ended_by {
            Some(ended_by) => ended_by.get().tokens.clone(),
            None => Vec::new(),
        };
        tokens.push(token.clone());
        let ended_by = EndedBy::new(tokens, self.core.clone());
        Locker {
            ended_by: Some(Arc::new(ForkLocal::new(ended_by))),
            ..self.clone()
        }
    }

    /// Ends the locker and all its clones: for a program that shuts down, when its work has stopped.
    ///
    /// - **Waits end**, in all namespaces: the calls return [`Error::Cancelled`](crate::Error::Cancelled) within 50 ms.
    ///   So does every later call, at once.
    /// - **Guards are lost** with [`LostReason::Closed`](crate::LostReason::Closed), and their locks are released: the
    ///   next waiter gets them. Their [`at_least_for`](crate::LockGuard::at_least_for) counts, a value that was changed
    ///   and not stored is dropped. What isn't released in time is free when its ttl is over.
    /// - **It waits** until that is done, and until other threads' calls and releases are over, but returns within 500
    ///   ms, whatever the network does. Then the program may exit.
    ///
    /// Any thread may call it, also several, and again. In a child made by `fork` it closes the locker of the child
    /// only.
    ///
    /// # Examples
    ///
    /// ```
    /// use crosslock::{Error, Locker, LostReason};
    ///
    /// # fn main() -> crosslock::Result<()> {
    /// let locker = Locker::open("memory:")?;
    /// let guard = locker.lock("close-example")?;
    /// locker.close();
    /// let lost = guard.lost().recv().expect("one message");
    /// assert_eq!(lost.reason, LostReason::Closed);
    /// assert!(matches!(locker.lock("close-example"), Err(Error::Cancelled { .. })));
    ///
    /// let other = Locker::open("memory:")?;
    /// assert!(other.try_lock("close-example")?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn close(&self) {
        self.core().close();
    }
}
