//! How findings are written as JSON, and in other forms that serde knows.

use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::{Finding, Verdict};

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
