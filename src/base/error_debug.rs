//! How an error is printed by `{:?}`, and so by a `main` that returns one: as a sentence first, then by its fields.

use std::fmt::{Debug, Formatter, Result};

use crate::base::error::{Error, Whole};

/// The text with all causes, then the variant and its fields in parentheses.
impl Debug for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{} (", Whole(self))?;
        fields(self, f)?;
        f.write_str(")")
    }
}

fn fields(error: &Error, f: &mut Formatter<'_>) -> Result {
    let mut shown = |variant: &str, fields: &[(&str, &dyn Debug)]| {
        let mut shown = f.debug_struct(variant);
        for (name, field) in fields {
            shown.field(name, field);
        }
        shown.finish()
    };
    match error {
        Error::InvalidUrl { url, reason } => {
            shown("InvalidUrl", &[("url", url), ("reason", reason)])
        }
        Error::InvalidName { name, reason } => {
            shown("InvalidName", &[("name", name), ("reason", reason)])
        }
        Error::InvalidOption { option, reason } => {
            shown("InvalidOption", &[("option", option), ("reason", reason)])
        }
        Error::Busy { name, attempts } => shown("Busy", &[("name", name), ("attempts", attempts)]),
        Error::Cancelled { name } => shown("Cancelled", &[("name", name)]),
        Error::Lost { name, reason } => shown("Lost", &[("name", name), ("reason", reason)]),
        Error::Unsupported { what } => shown("Unsupported", &[("what", what)]),
        Error::Conflict { name, key, reason } => shown(
            "Conflict",
            &[("name", name), ("key", key), ("reason", reason)],
        ),
        Error::Corrupt { name, key, reason } => shown(
            "Corrupt",
            &[("name", name), ("key", key), ("reason", reason)],
        ),
        Error::InvalidValue { name, reason } => {
            shown("InvalidValue", &[("name", name), ("reason", reason)])
        }
        // Their sources are in the text, and may be errors of this type.
        Error::Unavailable { name, engine, .. } => {
            shown("Unavailable", &[("name", name), ("engine", engine)])
        }
        Error::Denied { name, engine, .. } => {
            shown("Denied", &[("name", name), ("engine", engine)])
        }
        Error::Engine { name, engine, .. } => {
            shown("Engine", &[("name", name), ("engine", engine)])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_of_main_reads_as_a_sentence() {
        let cause = std::io::Error::other("connection refused");
        let error = Error::unavailable(Some("a"), "redis://h", cause);
        assert_eq!(
            format!("{error:?}"),
            "lock \"a\": redis://h can't be reached, or can't serve now: check the server and the network: \
             connection refused (Unavailable { name: Some(\"a\"), engine: \"redis://h\" })"
        );
        let error = Error::cancelled("a");
        assert_eq!(
            format!("{error:?}"),
            format!("{error} (Cancelled {{ name: \"a\" }})")
        );
    }
}
