//! What the server keeps through a restart.

use super::facts::{ALLOW_INFO, Facts};
use super::probe::Probe;
use crate::base::diagnosis::Finding;
use crate::base::error::Result;

const CHECK: &str = "persistence";

const TOKENS_GO_ON: &str = "fencing tokens go on increasing, by the server's clock";

pub(super) fn persistence(probe: &Probe<'_>, facts: &Facts) -> Result<Finding> {
    let appends = match facts.get("aof_enabled") {
        Some(enabled) => Some(enabled == "1"),
        None => probe.setting("appendonly")?.map(|it| it == "yes"),
    };
    if let Some(refusing) = refusing(facts) {
        return Ok(refusing);
    }
    Ok(match appends {
        Some(true) => with_log(probe.setting("appendfsync")?.as_deref()),
        Some(false) => without_log(probe.setting("save")?.as_deref()),
        None => Finding::unknown(
            CHECK,
            "this user may not see what a restart of the server keeps",
            ALLOW_INFO,
        ),
    })
}

/// Of a server that takes no writes, because it couldn't store the last ones.
fn refusing(facts: &Facts) -> Option<Finding> {
    let failed = |field: &&str| facts.get(field).is_some_and(|status| status != "ok");
    let field = ["aof_last_write_status", "rdb_last_bgsave_status"];
    let field = field.iter().find(|field| failed(field))?;
    Some(Finding::weak(
        CHECK,
        format!("its last write to disk failed ({field})"),
        "it may refuse all locks, and a restart loses those that it has",
        "look into the server's log, and at its disk",
    ))
}

fn with_log(fsync: Option<&str>) -> Finding {
    let found = |when: &str| format!("an append-only file, {when}");
    match fsync {
        Some("always") => Finding::fine(CHECK, found("written to disk before each answer")),
        Some(every) => Finding::weak(
            CHECK,
            found(match every {
                "everysec" => "written to disk each second",
                _ => "written to disk when the system does so",
            }),
            format!(
                "a restart of the server keeps all locks, but one after a power failure or a crash of its machine frees the \
                 newest, although their holders live; {TOKENS_GO_ON}"
            ),
            "appendfsync always; or have storage check the fencing token",
        ),
        None => Finding::unknown(
            CHECK,
            found("but this user may not see when it is written to disk"),
            "allow this user CONFIG GET (ACL SETUSER: +config|get), or ask who runs the server for appendfsync",
        ),
    }
}

fn without_log(save: Option<&str>) -> Finding {
    let found = match save {
        Some("") => "nothing is kept",
        Some(_) => "snapshots now and then, no append-only file",
        None => "no append-only file",
    };
    Finding::weak(
        CHECK,
        found,
        format!(
            "a restart of the server frees locks, although their holders live, which find out at their next renewal; \
             {TOKENS_GO_ON}"
        ),
        "appendonly yes, appendfsync always; or have storage check the fencing token",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_log_that_is_written_at_once_keeps_all() {
        assert_eq!(with_log(Some("always")).verdict.to_string(), "fine");
        assert_eq!(with_log(Some("everysec")).verdict.to_string(), "weak");
        assert_eq!(with_log(None).verdict.to_string(), "unknown");
        for save in [None, Some(""), Some("3600 1")] {
            assert_eq!(without_log(save).verdict.to_string(), "weak");
        }
    }

    #[test]
    fn server_that_cannot_write_is_told() {
        let facts = "aof_last_write_status:ok\r\nrdb_last_bgsave_status:err";
        assert!(refusing(&Facts::of(facts)).is_some());
        assert!(refusing(&Facts::of("aof_last_write_status:ok")).is_none());
        assert!(refusing(&Facts::default()).is_none());
    }
}
