//! The fields of a request, in the JSON of etcd's gateway.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;

use super::http::{INVALID, Refusal, UNIMPLEMENTED};
use super::request::{Result, Unfit};

/// Refuses fields that etcd knows, and this doesn't: a client would take the answer for etcd's.
pub(super) fn unknown(of: &Value, fields: &[&str]) -> Result<()> {
    match fields.iter().find(|field| of.get(field).is_some()) {
        Some(field) => Err(not_simulated(field)),
        None => Ok(()),
    }
}

pub(super) fn not_simulated(what: &str) -> Unfit {
    Refusal::new(UNIMPLEMENTED, &format!("not simulated: {what}")).into()
}

fn misread(field: &str) -> Unfit {
    Unfit::Body(INVALID, format!("{field} isn't understood"))
}

pub(super) fn bytes(of: &Value, field: &str) -> Result<Vec<u8>> {
    match of.get(field) {
        None => Ok(Vec::new()),
        Some(text) => {
            let text = text.as_str().ok_or_else(|| misread(field))?;
            BASE64.decode(text).map_err(|_| misread(field))
        }
    }
}

/// A number, as text or as such.
pub(super) fn number(of: &Value, field: &str) -> Result<i64> {
    let number = match of.get(field) {
        None => Some(0),
        Some(Value::String(digits)) => digits.parse().ok(),
        Some(number) => number.as_i64(),
    };
    number.ok_or_else(|| misread(field))
}

/// One of several words, of which the first counts when there is none.
pub(super) fn one_of<T: Copy>(of: &Value, field: &str, words: &[(&str, T)]) -> Result<T> {
    let Some(word) = of.get(field) else {
        return Ok(words[0].1);
    };
    let found = words.iter().find(|(name, _)| word.as_str() == Some(name));
    found
        .map(|(_, meaning)| *meaning)
        .ok_or_else(|| misread(field))
}

pub(super) fn string(of: &Value, field: &str) -> Result<String> {
    let text = of.get(field).map_or(Some(""), Value::as_str);
    text.map(str::to_owned).ok_or_else(|| misread(field))
}

pub(super) fn flag(of: &Value, field: &str) -> Result<bool> {
    of.get(field)
        .map_or(Some(false), Value::as_bool)
        .ok_or_else(|| misread(field))
}

pub(super) fn list<'a>(of: &'a Value, field: &str) -> Result<&'a [Value]> {
    match of.get(field) {
        None => Ok(&[]),
        Some(list) => list
            .as_array()
            .map(Vec::as_slice)
            .ok_or_else(|| misread(field)),
    }
}
