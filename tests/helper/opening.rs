//! Where locks are when nothing says so, and who may use what is there.

use crosslock::Error;

use super::*;
use support::say;

pub(crate) fn open() {
    let opened = match env::var(URL) {
        Ok(url) => Locker::open(&url),
        Err(_) => Locker::from_env(),
    };
    let outcome = match opened {
        Ok(lock) => match lock.lock("a") {
            Ok(_) => "Ok".to_owned(),
            Err(Error::Denied { source, engine, .. }) => format!("Denied {engine} {source}"),
            Err(error) => format!("locking {error}"),
        },
        Err(Error::Denied { source, engine, .. }) => format!("Denied {engine} {source}"),
        Err(error @ Error::InvalidUrl { .. }) => format!("InvalidUrl {error}"),
        Err(error) => format!("another error {error}"),
    };
    say(&outcome);
}
