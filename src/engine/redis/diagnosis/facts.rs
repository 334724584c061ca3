//! What INFO tells.

use std::collections::HashMap;

use super::probe::Probe;
use crate::base::error::Result;

/// What would show the facts that INFO has.
pub(super) const ALLOW_INFO: &str = "allow this user INFO (ACL SETUSER: +info)";

/// The fields of INFO; none, if the server doesn't show them.
#[derive(Debug, Default)]
pub(super) struct Facts(HashMap<String, String>);

impl Facts {
    pub(super) fn ask(probe: &Probe<'_>) -> Result<Self> {
        let text = probe.text(&::redis::cmd("INFO"))?;
        Ok(Facts::of(&text.unwrap_or_default()))
    }

    pub(super) fn of(text: &str) -> Self {
        let pairs = text.lines().filter_map(|line| line.split_once(':'));
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Facts(pairs.collect())
    }

    pub(super) fn get(&self, field: &str) -> Option<&str> {
        self.0.get(field).map(String::as_str)
    }

    pub(super) fn number(&self, field: &str) -> Option<u64> {
        self.get(field)?.parse().ok()
    }
}
