//! What a history says of errors.

use crosslock::{Error, LostReason};

/// Why a lease was lost.
pub(super) fn reason(error: &Error) -> &'static str {
    match error {
        Error::Lost { reason, .. } => match reason {
            LostReason::Expired => "expired",
            LostReason::NotOwner => "not the owner",
            LostReason::Broken => "broken",
            LostReason::Closed => "closed",
            _ => "another reason",
        },
        _ => "",
    }
}

pub(super) fn kind(error: &Error) -> &'static str {
    match error {
        Error::Busy { .. } => "busy",
        Error::Cancelled { .. } => "cancelled",
        Error::Lost { .. } => "lost",
        Error::Unavailable { .. } => "unavailable",
        Error::Denied { .. } => "denied",
        Error::Conflict { .. } => "conflict",
        Error::Engine { .. } => "engine",
        _ => "another error",
    }
}
