//! What a directory is like, and which promise doesn't hold there.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use uuid::Uuid;

use super::moment;
use crate::base::diagnosis::Finding;

mod kind;
mod space;

pub(super) fn diagnose(directory: &Path) -> io::Result<Vec<Finding>> {
    Ok(vec![
        rights(directory, &fs::metadata(directory)?),
        kind::kind(directory)?,
        locking(directory)?,
        space::space(directory)?,
        boot(),
        table_of_locks(),
    ])
}

fn rights(directory: &Path, found: &Metadata) -> Finding {
    const CHECK: &str = "directory";
    let (mode, owner) = (found.mode() & 0o7777, found.uid());
    let text = format!("{}, of user {owner}, mode {mode:04o}", directory.display());
    let may_write = |class: u32| mode >> class & 0o3 == 0o3;
    if !may_write(0) {
        let who = if may_write(3) {
            "its group uses the same locks"
        } else {
            "one user's locks"
        };
        return Finding::fine(CHECK, format!("{text}: {who}"));
    }
    Finding::weak(
        CHECK,
        format!("{text}: every user of this host may write there"),
        "every user of this host can take, free and fake every lock",
        "a directory of a group, such as mode 2770; or this one, if you trust all users",
    )
}

/// Locks a file of its own twice.
fn locking(directory: &Path) -> io::Result<Finding> {
    const CHECK: &str = "locking";
    let path = directory.join(format!(".{}", Uuid::new_v4()));
    let mut options = OpenOptions::new();
    let first = options.write(true).create_new(true).open(&path)?;
    let tried = File::open(&path).map(|second| (first.try_lock(), second.try_lock()));
    fs::remove_file(&path)?;
    Ok(match tried? {
        (Ok(()), Err(TryLockError::WouldBlock)) => {
            Finding::fine(CHECK, "the second of two that lock a file is refused")
        }
        (Ok(()), Ok(())) => Finding::weak(
            CHECK,
            "two locked the same file",
            "nothing is excluded here",
            "a directory on a local disk",
        ),
        (Err(e), _) | (_, Err(e)) => Finding::weak(
            CHECK,
            format!("a file can't be locked: {e}"),
            "no lock can be taken here",
            "a directory on a local disk",
        ),
    })
}

/// A kept lock is kept by the clock of one boot.
fn boot() -> Finding {
    const CHECK: &str = "reboots";
    if moment::boot().is_some() {
        return Finding::fine(CHECK, "this host tells one boot from another");
    }
    Finding::weak(
        CHECK,
        "this host doesn't tell one boot from another",
        "a lock that `at_least_for` keeps is kept by the wall clock: when that is set, it becomes free too early or too late",
        "mount /proc",
    )
}

/// Where the kernel tells which process has a lock.
fn table_of_locks() -> Finding {
    const CHECK: &str = "holders";
    const TABLE: &str = "/proc/locks";
    match fs::read(TABLE) {
        Ok(_) => Finding::fine(CHECK, format!("{TABLE} tells which process holds a lock")),
        Err(e) => Finding::unknown(
            CHECK,
            format!("{TABLE} can't be read, so it isn't seen which process holds a lock: {e}"),
            "mount /proc",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn directory_for_everybody_is_weak() {
        let directory = tempfile::tempdir().unwrap();
        for (mode, verdict) in [
            (0o700, "fine"),
            (0o2770, "fine"),
            (0o755, "fine"),
            (0o777, "weak"),
            (0o1777, "weak"),
        ] {
            fs::set_permissions(directory.path(), Permissions::from_mode(mode)).unwrap();
            let found = rights(directory.path(), &fs::metadata(directory.path()).unwrap());
            assert_eq!(found.verdict.to_string(), verdict, "{mode:o}");
        }
    }

    #[test]
    fn trial_excludes_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let finding = locking(directory.path()).unwrap();
        assert_eq!(finding.verdict.to_string(), "fine", "{finding:?}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
