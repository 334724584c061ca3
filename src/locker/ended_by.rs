//! What ends the calls of a locker with tokens.
//!
//! A call has one [`Cancel`]. Of a locker without tokens it is that of the core, which `close` sets; of a locker with tokens
//! it follows theirs and the core's, for as long as the locker lives.

use std::sync::Arc;

use crate::base::cancel::{Cancel, CancelToken, Registration};
use crate::base::fork::{AfterFork, ForkLocal};
use crate::core::Core;

/// What ends the calls of a locker with tokens.
#[derive(Debug)]
pub(super) struct EndedBy {
    tokens: Vec<CancelToken>,
    core: Arc<ForkLocal<Core>>,
    any: Cancel,
    _registrations: Vec<Registration>,
}

impl EndedBy {
    pub(super) fn new(tokens: Vec<CancelToken>, core: Arc<ForkLocal<Core>>) -> Self {
        let parents = tokens.iter().map(CancelToken::cancellation);
        let (any, registrations) = Cancel::of_any(parents.chain([core.get().closed()]));
        EndedBy {
            tokens,
            core,
            any,
            _registrations: registrations,
        }
    }

    pub(super) fn tokens(&self) -> &[CancelToken] {
        &self.tokens
    }

    pub(super) fn cancel(&self) -> &Cancel {
        &self.any
    }
}

impl AfterFork for EndedBy {
    fn after_fork(&self) -> Self {
        EndedBy::new(self.tokens.clone(), self.core.clone())
    }
}
