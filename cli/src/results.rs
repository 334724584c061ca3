//! What a verb was asked for, on standard output.

use std::io::{ErrorKind, Write as _, stdout};

use serde::Serialize;

use crate::status::{FAILED, Failure};

/// Writes a result. `false`: nobody reads any more, which ends the work without a word.
pub(crate) fn print(text: &str) -> Result<bool, Failure> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(e) => {
            let text = format!("standard output can't be written: {e}");
            Err(Failure::new(FAILED, text))
        }
    }
}

/// Each value on a line of its own.
pub(crate) fn json_lines<T: Serialize>(values: &[T]) -> Result<String, Failure> {
    let mut lines = String::new();
    for value in values {
        let line = serde_json::to_string(value);
        lines += &line.map_err(|e| Failure::new(FAILED, format!("a result is no JSON: {e}")))?;
        lines.push('\n');
    }
    Ok(lines)
}
