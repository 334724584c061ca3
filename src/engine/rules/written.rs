//! A name as plain data, for an engine that writes it down.

use crate::base::claim::Mode;
use crate::base::clock::BootInstant;
use crate::base::owner::Owner;
use crate::base::token::Token;

/// What is written of a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) struct Written {
    /// The last number that the counter had.
    pub(in crate::engine) counter: u64,
    /// Whether the next exclusive holder is to be told that the one before never released.
    pub(in crate::engine) abandoned: bool,
    /// First the holders, then the waiters, both in the order in which they came.
    pub(in crate::engine) entries: Vec<Entry>,
    /// Those whose lease was broken, and who haven't been told.
    pub(in crate::engine) broken: Vec<Owner>,
}

/// One that holds, or waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) struct Entry {
    /// `None` of a name that is kept taken for nobody.
    pub(in crate::engine) owner: Option<Owner>,
    pub(in crate::engine) standing: Standing,
    pub(in crate::engine) mode: Mode,
    /// Since when it holds or waits.
    pub(in crate::engine) since: BootInstant,
    /// Until when, if it does nothing.
    pub(in crate::engine) until: BootInstant,
}

/// How it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Standing {
    Has(Token),
    /// It has it, and may not know it yet.
    Given(Token),
    /// The name was granted to it, and it hasn't asked since.
    Granted,
    /// Nobody has it, and nobody gets it.
    Kept,
    Waits {
        /// Before readers.
        first: bool,
        /// It wants other names, too.
        more: bool,
    },
}
