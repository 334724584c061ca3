//! The vocabulary: names, errors, options, time, owners and tokens.

pub(crate) mod backoff;
pub(crate) mod claim;
pub(crate) mod clock;
pub(crate) mod error;
pub(crate) mod fork;
pub(crate) mod limits;
pub(crate) mod name;
pub(crate) mod options;
pub(crate) mod owner;
#[cfg(test)]
pub(crate) mod random;
pub(crate) mod token;
pub(crate) mod validity;
pub(crate) mod value;
