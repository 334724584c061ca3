//! How locks stood at one look.

use std::collections::BTreeMap;

use crosslock::{Inspection, LockState, Locker};

use crate::ls;
use crate::status::Failure;

/// The locks that were taken, by name.
pub(super) type View = BTreeMap<String, Inspection>;

/// One lock, or all of them.
pub(super) fn look(locker: &Locker, name: Option<&str>) -> Result<View, Failure> {
    let locks = match name {
        Some(name) => vec![locker.inspect(name)?],
        None => ls::taken(locker, "")?,
    };
    let locks = locks.into_iter();
    let taken = locks.filter(|seen| seen.state != LockState::Free || !seen.waiters.is_empty());
    Ok(taken.map(|seen| (seen.name.clone(), seen)).collect())
}
