//! What the rules use of the seam, and the rules themselves.

#[path = "../../../../src/engine/change.rs"]
mod change;
#[path = "../../../../src/engine/line/order.rs"]
mod line;
#[path = "../../../../src/engine/rules/mod.rs"]
pub(crate) mod rules;
pub(crate) mod subject;

pub(crate) use self::change::{Answer, Change, Grant, Outcome, Release, Request};
