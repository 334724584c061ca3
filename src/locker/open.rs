//! Where every program begins: a locker for a URL.

use std::env::{self, VarError};

use super::Locker;
use super::builder::LockerBuilder;
use crate::base::error::{Error, Result};

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
                let place = locker.core().engine.place();
                log::warn!(
                    "{VARIABLE} isn't set: locks live in {place}, and exclude only processes of this user on this host"
                );
                Ok(locker)
            }
            Err(VarError::NotUnicode(_)) => invalid("…", "isn't UTF-8"),
            Ok(url) if url.is_empty() => {
                invalid("", "is set but empty: unset it, or name an engine")
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
}
