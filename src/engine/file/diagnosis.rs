//! What a directory is like, and which promise doesn't hold there.

use std::fs::{Metadata, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::OFlags;

use super::boot::BootId;
use super::create::draft_name;
use super::dir::Dir;
use super::presence::{Presence, is_gone};
use crate::base::diagnosis::Finding;

mod kind;
mod space;

pub(super) fn diagnose(directory: &Arc<Dir>, is_private: bool) -> io::Result<Vec<Finding>> {
    Ok(vec![
        rights(directory.path(), is_private, &directory.metadata()?),
        kind::kind(directory)?,
        locking(directory)?,
        space::space(directory)?,
        reboots(),
        doors(directory),
    ])
}

fn rights(directory: &Path, is_private: bool, found: &Metadata) -> Finding {
    const CHECK: &str = "directory";
    let (mode, owner) = (found.mode() & 0o7777, found.uid());
    let text = format!("{}, of user {owner}, mode {mode:04o}", directory.display());
    let may_write = |class: u32| mode >> class & 0o3 == 0o3;
    if is_private {
        let others = "another user's `file:` is another directory, with other locks: \
                      for those of several users, use file:///var/lock/<directory>";
        return Finding::fine(CHECK, format!("{text}: for this user alone; {others}"));
    }
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
fn locking(directory: &Dir) -> io::Result<Finding> {
    const CHECK: &str = "locking";
    let name = draft_name();
    let first = directory.create_file(&name, 0o600)?;
    let second = directory.open_file(&name, OFlags::RDONLY, 0);
    let tried = second.map(|second| (first.try_lock(), second.try_lock()));
    directory.remove(&name)?;
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
fn reboots() -> Finding {
    const CHECK: &str = "reboots";
    if BootId::current().is_known() {
        return Finding::fine(CHECK, "this host tells one boot from another");
    }
    Finding::weak(
        CHECK,
        "this host doesn't tell one boot from another",
        "a lock that `at_least_for` keeps may stay taken for as long again as the host was up before a reboot",
        "mount /proc",
    )
}

/// Makes a door, and sees that others find it open, and then gone.
fn doors(directory: &Arc<Dir>) -> Finding {
    const CHECK: &str = "holders";
    let tried = Presence::make(directory).and_then(|door| {
        let id = door.id();
        let is_open = !is_gone(directory, id)?;
        drop(door);
        Ok(is_open && is_gone(directory, id)?)
    });
    match tried {
        Ok(true) => Finding::fine(CHECK, "a FIFO tells whether the process of a holder lives"),
        Ok(false) => Finding::weak(
            CHECK,
            "a FIFO doesn't tell whether the process of a holder lives",
            "a lock may be taken from a holder that lives, or stay taken by one that died",
            "a directory on a local disk",
        ),
        Err(e) => Finding::weak(
            CHECK,
            format!("a FIFO can't be made: {e}"),
            "no lock can be taken here",
            "a directory on a local disk, with room and rights",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
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
            let found = fs::metadata(directory.path()).unwrap();
            let found = rights(directory.path(), false, &found);
            assert_eq!(found.verdict.to_string(), verdict, "{mode:o}");
        }
    }

    #[test]
    fn private_directory_is_told_to_be_of_one_user() {
        let directory = tempfile::tempdir().unwrap();
        let found = fs::metadata(directory.path()).unwrap();
        for (is_private, is_told) in [(true, true), (false, false)] {
            let finding = rights(directory.path(), is_private, &found);
            assert_eq!(finding.verdict.to_string(), "fine");
            assert_eq!(finding.found.contains("file:///var/lock/"), is_told);
        }
    }

    #[test]
    fn trial_excludes_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let finding = locking(&Dir::at(directory.path()).unwrap()).unwrap();
        assert_eq!(finding.verdict.to_string(), "fine", "{finding:?}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
