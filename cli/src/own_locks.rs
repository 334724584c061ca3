//! Says that the locks of `file:` are those of one user.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use crate::output::Words;

const TEXT: &str = "locks of `file:` are those of this user alone: other users' commands run beside this one; \
                    for locks of all users of this host, use --url file:///var/lock/crosslock, a directory where all of them may write";

/// What all verbs say of it.
pub(crate) fn tell(words: Words) {
    words.say("hint", &[("reason", TEXT.into())], TEXT);
}

/// Whether another user of this host has such locks, too: then two may believe that they exclude each other.
#[cfg(target_os = "linux")]
pub(crate) fn has_other_user() -> bool {
    let own = rustix::process::geteuid().as_raw();
    let entries = fs::read_dir("/tmp").into_iter().flatten().flatten();
    let mut users = entries.filter_map(|entry| {
        let name = entry.file_name();
        let user = name
            .to_str()?
            .strip_prefix("crosslock-")?
            .parse::<u32>()
            .ok()?;
        // Anybody can make a directory with that name.
        let found = entry.metadata().ok()?;
        (found.is_dir() && found.uid() == user).then_some(user)
    });
    users.any(|user| user != own)
}
