//! What an engine with a server needs: sockets with deadlines, and a resolver.

pub(super) mod resolver;
pub(super) mod socket;
