//! How leases of several parts become one: all have its token, and last for another ttl.

use super::call::Call;
use super::{Commands, bytes, millis, needs_of_renewal};
use crate::base::token::Token;
use crate::engine::Request;

impl Commands {
    pub(super) fn raising<'a>(&'a self, request: Request<'a>, token: Token) -> Call<'a> {
        let arguments = [
            request.owner.as_str().as_bytes().into(),
            bytes(millis(request.ttl)),
            bytes(token.number.to_string()),
        ];
        let needs = needs_of_renewal(request.ttl);
        Call::new(&self.raise, request, needs, arguments)
    }
}
