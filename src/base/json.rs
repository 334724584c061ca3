//! How findings and inspections are written as JSON, and in other forms that serde knows.

use std::time::Duration;

use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::diagnosis::{Finding, Verdict};
use super::inspection::{Holder, Inspection, LockState, Party, Waiter, Wants};

fn millis(duration: Option<Duration>) -> Option<u64> {
    duration.map(|it| it.as_millis().try_into().unwrap_or(u64::MAX))
}

impl Serialize for Inspection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (state, taken, of, remaining) = match self.state {
            LockState::Free => ("free", None, None, None),
            LockState::Exclusive => ("exclusive", None, None, None),
            LockState::Shared => ("shared", None, None, None),
            LockState::Permits { taken, of } => ("permits", Some(taken), of, None),
            LockState::Kept { remaining } => ("kept", None, None, remaining),
        };
        let mut all = serializer.serialize_struct("Inspection", 8)?;
        all.serialize_field("name", &self.name)?;
        all.serialize_field("state", state)?;
        all.serialize_field("permits_taken", &taken)?;
        all.serialize_field("permits", &of)?;
        all.serialize_field("kept_ms", &millis(remaining))?;
        all.serialize_field("holders", &self.holders)?;
        all.serialize_field("waiters", &self.waiters)?;
        all.serialize_field("last_token", &self.last_token)?;
        all.end()
    }
}

impl Serialize for Holder {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut all = serializer.serialize_struct("Holder", 5)?;
        all.serialize_field("party", &self.party)?;
        all.serialize_field("permits", &self.permits)?;
        all.serialize_field("held_ms", &millis(self.held_for))?;
        all.serialize_field("remaining_ms", &millis(self.remaining))?;
        all.serialize_field("token", &self.token)?;
        all.end()
    }
}

impl Serialize for Waiter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (wants, permits) = match self.wants {
            Wants::Exclusive => ("exclusive", None),
            Wants::Shared => ("shared", None),
            Wants::Permits { count } => ("permits", Some(count)),
        };
        let mut all = serializer.serialize_struct("Waiter", 4)?;
        all.serialize_field("party", &self.party)?;
        all.serialize_field("wants", wants)?;
        all.serialize_field("permits", &permits)?;
        all.serialize_field("waited_ms", &millis(self.waited_for))?;
        all.end()
    }
}

impl Serialize for Party {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut all = serializer.serialize_struct("Party", 4)?;
        all.serialize_field("host", &self.host)?;
        all.serialize_field("pid", &self.pid)?;
        all.serialize_field("thread", &self.thread)?;
        all.serialize_field("label", &self.label)?;
        all.end()
    }
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (consequence, advice) = match &self.verdict {
            Verdict::Fine => (None, None),
            Verdict::Weak {
                consequence,
                advice,
            } => (Some(consequence), Some(advice)),
            Verdict::Unknown { advice } => (None, Some(advice)),
        };
        let mut all = serializer.serialize_struct("Finding", 5)?;
        all.serialize_field("check", self.check)?;
        all.serialize_field("verdict", &self.verdict.to_string())?;
        all.serialize_field("found", &self.found)?;
        all.serialize_field("consequence", &consequence)?;
        all.serialize_field("advice", &advice)?;
        all.end()
    }
}
