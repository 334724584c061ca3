//! What always holds.

/// A rule of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    Exclusion,
    Tokens,
    Counter,
    Service,
    Order,
    Ttl,
    NothingLeft,
    Unlock,
    Abandoned,
}
